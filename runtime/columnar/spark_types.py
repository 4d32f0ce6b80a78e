"""Spark's types as values: read from and written as Spark's JSON for schemas; and the Arrow types that Spark uses for them.

pyspark is not needed: programs are planned without it, and executors only have the JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, imported

if TYPE_CHECKING:
    from types import ModuleType

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_OF_LENGTH = re.compile(r"(?:char|varchar)\(\d+\)")
_TIME = re.compile(r"time\((\d+)\)")
_DAY_TIME = re.compile(r"interval (?:day|hour|minute|second)(?: to (?:hour|minute|second))?")
_COLLATED = re.compile(r"string collate \w+")

_SQL_NAMES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
}

_PLAIN = frozenset(
    {
        *("void", "boolean", "byte", "short", "integer", "long", "float", "double", "string"),
        *("binary", "date", "timestamp", "timestamp_ntz"),
    }
)

_UNSUPPORTED = {
    "interval": "cast it to a string or to an interval of days and seconds",
    "variant": "cast it to a string, by to_json()",
    "udt": "select its fields, or convert it to a struct or an array",
}


@dataclass(frozen=True, slots=True)
class SparkField:
    """A field of a struct."""

    name: str
    type: SparkType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class SparkType:
    """The type of a value in a DataFrame.

    `kind` is Spark's name ("long", "decimal", "array", ...). `text` is Spark's text for a type with parameters, such as
    `decimal(10,2)`. An array has an `element`, a map a `key` and an `element`.
    """

    kind: str
    text: str = ""
    precision: int = 0
    scale: int = 0
    fields: tuple[SparkField, ...] = ()
    element: SparkType | None = None
    key: SparkType | None = None
    contains_null: bool = True

    @property
    def sql(self) -> str:
        """The type in SQL, for messages.

        >>> SparkType.read({"type": "array", "elementType": "long", "containsNull": True}).sql
        'array<bigint>'
        """
        if self.kind == "struct":
            return (
                f"struct<{', '.join(f'{field.name}: {field.type.sql}' for field in self.fields)}>"
            )
        if self.kind == "array":
            return f"array<{self.item.sql}>"
        if self.kind == "map":
            assert self.key is not None
            return f"map<{self.key.sql}, {self.item.sql}>"
        return self.text or _SQL_NAMES.get(self.kind, self.kind)

    @property
    def item(self) -> SparkType:
        """The type of the elements of an array, or of the values of a map."""
        assert self.element is not None
        return self.element

    @staticmethod
    def read(given: Any, path: str = "") -> SparkType:
        """Reads a type from parsed JSON. `path` is the name of the column in errors.

        Raises:
            UnsupportedFeatureError: Records do not support the type.
        """
        if isinstance(given, str):
            return _read_name(given, path)
        kind = given["type"]
        if kind == "struct":
            return _read_struct(given, path)
        if kind == "array":
            element = SparkType.read(given["elementType"], f"{path}[]")
            return SparkType("array", element=element, contains_null=given["containsNull"])
        if kind == "map":
            key = SparkType.read(given["keyType"], f"{path} (key)")
            if key.kind in {"array", "struct"}:
                raise UnsupportedFeatureError(
                    f"column '{path}' is a map with keys of type {key.sql}, which cannot be keys "
                    f"of a dict: turn it into an array of structs with map_entries()"
                )
            value = SparkType.read(given["valueType"], f"{path} (value)")
            return SparkType(
                "map", key=key, element=value, contains_null=given["valueContainsNull"]
            )
        raise _unsupported(str(kind), path)

    @staticmethod
    def parse(text: str) -> SparkType:
        """Reads a type from JSON text."""
        return SparkType.read(json.loads(text))

    def to_json(self) -> Any:
        """The JSON that `read` reads."""
        if self.kind == "struct":
            fields = [
                {
                    "name": field.name,
                    "type": field.type.to_json(),
                    "nullable": field.nullable,
                    "metadata": {},
                }
                for field in self.fields
            ]
            return {"type": "struct", "fields": fields}
        if self.kind == "array":
            return {
                "type": "array",
                "elementType": self.item.to_json(),
                "containsNull": self.contains_null,
            }
        if self.kind == "map":
            assert self.key is not None
            return {
                "type": "map",
                "keyType": self.key.to_json(),
                "valueType": self.item.to_json(),
                "valueContainsNull": self.contains_null,
            }
        return self.text or self.kind


def decimal_type(precision: int, scale: int) -> SparkType:
    """A decimal type with this number of digits, of which `scale` are after the decimal point."""
    return SparkType("decimal", f"decimal({precision},{scale})", precision, scale)


def struct_type(fields: list[SparkField]) -> SparkType:
    """A struct type with these fields."""
    return SparkType("struct", fields=tuple(fields))


def _read_name(name: str, path: str) -> SparkType:
    if name in _PLAIN:
        return SparkType(name)
    if (found := _DECIMAL.fullmatch(name)) is not None:
        return decimal_type(int(found[1]), int(found[2]))
    if _OF_LENGTH.fullmatch(name):  # only tables keep to a length; a DataFrame's column is a string
        return SparkType("string")
    if _COLLATED.fullmatch(name):
        return SparkType("string", name)
    if (found := _TIME.fullmatch(name)) is not None:
        return SparkType("time", name, int(found[1]))
    if _DAY_TIME.fullmatch(name):
        return SparkType("day_time_interval", name)
    raise _unsupported(name, path)


def _read_struct(given: Any, path: str) -> SparkType:
    fields = []
    seen = set()
    for field in given["fields"]:
        name = field["name"]
        place = f"{path}.{name}" if path else name
        if name in seen:
            raise UnsupportedFeatureError(
                f"there are two columns '{place}', but fields of a record need different names: "
                f"rename one of them"
            )
        seen.add(name)
        fields.append(SparkField(name, SparkType.read(field["type"], place), field["nullable"]))
    return SparkType("struct", fields=tuple(fields))


def _unsupported(name: str, path: str) -> UnsupportedFeatureError:
    mend = _UNSUPPORTED.get(name, "cast it to another type")
    if name.startswith("interval"):
        mend = (
            "Python has no type for months without days; cast it to an int of months or to a string"
        )
    where = f"column '{path}' has" if path else "there is"
    return UnsupportedFeatureError(
        f"{where} the Spark type {name}, which records do not support: {mend}"
    )


def pyarrow() -> ModuleType:
    """Imports pyarrow.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    module: ModuleType = imported("pyarrow", "spark", "turning records into columns")
    return module


def arrow_schema(columns: SparkType, *, large: bool = False) -> Any:
    """The Arrow schema of a struct's fields.

    Args:
        columns: The struct.
        large: Whether strings and bytes have 64-bit offsets, which a setting of Spark may require.
    """
    arrow = pyarrow()
    return arrow.schema(
        [
            arrow.field(field.name, arrow_type(field.type, large=large), field.nullable)
            for field in columns.fields
        ]
    )


def arrow_type(spark_type: SparkType, *, large: bool = False) -> Any:
    """The Arrow type of a Spark type."""
    arrow = pyarrow()
    kind = spark_type.kind
    if kind == "struct":
        return arrow.struct(
            [
                arrow.field(field.name, arrow_type(field.type, large=large), field.nullable)
                for field in spark_type.fields
            ]
        )
    if kind == "array":
        item = arrow_type(spark_type.item, large=large)
        return arrow.list_(arrow.field("element", item, spark_type.contains_null))
    if kind == "map":
        assert spark_type.key is not None
        return arrow.map_(
            arrow.field("key", arrow_type(spark_type.key, large=large), nullable=False),
            arrow.field(
                "value", arrow_type(spark_type.item, large=large), spark_type.contains_null
            ),
        )
    if kind == "decimal":
        return arrow.decimal128(spark_type.precision, spark_type.scale)
    if kind in {"string", "binary"} and large:
        return arrow.large_string() if kind == "string" else arrow.large_binary()
    return {
        "void": arrow.null,
        "boolean": arrow.bool_,
        "byte": arrow.int8,
        "short": arrow.int16,
        "integer": arrow.int32,
        "long": arrow.int64,
        "float": arrow.float32,
        "double": arrow.float64,
        "string": arrow.string,
        "binary": arrow.binary,
        "date": arrow.date32,
        "timestamp": lambda: arrow.timestamp("us", tz="UTC"),
        "timestamp_ntz": lambda: arrow.timestamp("us"),
        "time": lambda: arrow.time64("ns"),
        "day_time_interval": lambda: arrow.duration("us"),
    }[kind]()
