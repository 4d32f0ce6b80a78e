"""Types of table columns and of fields in files, with PyFlink's names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import refuses
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opchain.runtime.types.type_information import TypeInformation


@dataclass(frozen=True)
class DataType:
    """The type of a column: its name in SQL, its parameters, and whether None is allowed.

    >>> print(DataTypes.DECIMAL(10, 2, nullable=False))
    DECIMAL(10, 2) NOT NULL
    """

    name: str
    parameters: tuple[int, ...] = ()
    is_nullable: bool = True

    def __str__(self) -> str:
        parameters = f"({', '.join(map(str, self.parameters))})" if self.parameters else ""
        return f"{self.name}{parameters}{'' if self.is_nullable else ' NOT NULL'}"

    def not_null(self) -> DataType:
        """The same type without None."""
        return replace(self, is_nullable=False)

    def nullable(self) -> DataType:
        """The same type with None."""
        return replace(self, is_nullable=True)

    def type_information(self) -> TypeInformation[Any]:
        """The type of such values in a stream."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - loaded when a stream is made

        made: TypeInformation[Any] = getattr(Types, _TYPE_INFORMATION[self.name])()
        return made


@dataclass(frozen=True)
class DecimalType(DataType):
    """Decimals of a precision and a scale."""

    def type_information(self) -> TypeInformation[Any]:
        """A Decimal whose precision and scale formats can ask for."""
        from opchain.runtime.types.time_types import BigDecimalTypeInfo  # noqa: PLC0415 - as above

        return BigDecimalTypeInfo.of(*self.parameters)


@dataclass(frozen=True)
class BytesType(DataType):
    """Bytes of any number."""

    def type_information(self) -> TypeInformation[Any]:
        """An array of bytes."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - as above

        return Types.PRIMITIVE_ARRAY(Types.BYTE())


@dataclass(frozen=True)
class RawType(DataType):
    """Python objects of any class: the records of a stream without a declared type. Flink: RawType."""

    def __str__(self) -> str:
        return f"RAW('[B', '...'){'' if self.is_nullable else ' NOT NULL'}"

    def type_information(self) -> TypeInformation[Any]:
        """A pickled object."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - as above

        return Types.PICKLED_BYTE_ARRAY()


RAW = RawType("RAW")


class IntervalType(DataType):
    """INTERVAL: the value of an expression, but not of a column."""

    def type_information(self) -> TypeInformation[Any]:
        """Refuses the type.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            "a column of type INTERVAL is not supported; add the interval to a time or subtract it from a time, or use "
            "a number of milliseconds or months"
        )


INTERVAL = IntervalType("INTERVAL")


@dataclass(frozen=True)
class TimeType(DataType):
    """DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ."""


class LocalTimeType(TimeType):
    """A time as a value of Java's java.time package."""

    def type_information(self) -> TypeInformation[Any]:
        """A date and a time without time zone."""
        from opchain.runtime.types.time_types import LocalTimeTypeInfo  # noqa: PLC0415 - as above

        return LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME)


class ZonedTimeType(TimeType):
    """A TIMESTAMP_LTZ in a stream: a datetime with a time zone."""

    def type_information(self) -> TypeInformation[Any]:
        """SQL_TIMESTAMP that keeps time zone and microseconds."""
        from opchain.runtime.types.time_types import ZONED_TIMESTAMP  # noqa: PLC0415 - as above

        return ZONED_TIMESTAMP


@dataclass(frozen=True)
class ArrayType(DataType):
    """Lists of one type."""

    element_type: DataType = field(kw_only=True)

    def __str__(self) -> str:
        return f"ARRAY<{self.element_type}>{'' if self.is_nullable else ' NOT NULL'}"

    def type_information(self) -> TypeInformation[Any]:
        """A list. Its elements may be None."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - as above

        return Types.OBJECT_ARRAY(self.element_type.type_information())


@dataclass(frozen=True)
class MapType(DataType):
    """Dicts with one type of keys and one of values."""

    key_type: DataType = field(kw_only=True)
    value_type: DataType = field(kw_only=True)

    def __str__(self) -> str:
        return f"MAP<{self.key_type}, {self.value_type}>{'' if self.is_nullable else ' NOT NULL'}"

    def type_information(self) -> TypeInformation[Any]:
        """A dict."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - as above

        return Types.MAP(self.key_type.type_information(), self.value_type.type_information())


@dataclass(frozen=True)
class RowField:
    """One field of a row."""

    name: str
    data_type: DataType


@dataclass(frozen=True)
class RowType(DataType):
    """Rows of named fields."""

    fields: tuple[RowField, ...] = field(kw_only=True)

    def __str__(self) -> str:
        fields = ", ".join(f"`{field.name}` {field.data_type}" for field in self.fields)
        return f"ROW<{fields}>{'' if self.is_nullable else ' NOT NULL'}"

    def type_information(self) -> TypeInformation[Any]:
        """A row with these names."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - as above

        types = [field.data_type.type_information() for field in self.fields]
        return Types.ROW_NAMED([field.name for field in self.fields], types)


_TYPE_INFORMATION = {
    "CHAR": "STRING",
    "VARCHAR": "STRING",
    "STRING": "STRING",
    "BOOLEAN": "BOOLEAN",
    "DECIMAL": "BIG_DEC",
    "DATE": "SQL_DATE",
    "TIME": "SQL_TIME",
    "TIMESTAMP": "SQL_TIMESTAMP",
    "TIMESTAMP_LTZ": "INSTANT",
    "TINYINT": "BYTE",
    "SMALLINT": "SHORT",
    "INT": "INT",
    "BIGINT": "LONG",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
}
_NUMBER_OF_PARAMETERS = {
    "CHAR": 1,
    "VARCHAR": 1,
    "DECIMAL": 2,
    "TIME": 1,
    "TIMESTAMP": 1,
    "TIMESTAMP_LTZ": 1,
}
_DEFAULTS = {
    "CHAR": (1,),
    "DECIMAL": (10, 0),
    "TIME": (0,),
    "TIMESTAMP": (6,),
    "TIMESTAMP_LTZ": (6,),
}
_ALSO_CALLED = {
    "INTEGER": "INT",
    "TEXT": "STRING",
    "DOUBLE PRECISION": "DOUBLE",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP WITH LOCAL TIME ZONE": "TIMESTAMP_LTZ",
}
_SQL_TYPE = re.compile(
    r"\s*([A-Z_]+(?:\s+PRECISION)?)\s*(?:\(([\d\s,]*)\))?\s*"
    r"(?:WITHOUT\s+TIME\s+ZONE\s*)?(NOT NULL|NULL)?\s*",
    re.IGNORECASE,
)
_NESTED = re.compile(
    r"\s*(ARRAY|MAP|ROW)\s*[<(](.*)[>)]\s*(NOT NULL|NULL)?\s*", re.IGNORECASE | re.DOTALL
)
_FIELD = re.compile(r"(?:`([^`]+)`|(\w+))\s+(.*)", re.DOTALL)
_MISSING = (
    "columns are CHAR, VARCHAR, STRING, BOOLEAN, DECIMAL, numbers, BYTES, DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ARRAY, "
    "MAP or ROW"
)


def _simple(name: str) -> Callable[..., DataType]:
    def of(nullable: bool = True) -> DataType:
        return DataType(name, (), nullable)

    of.__doc__ = f"SQL's {name}."
    return of


_CLASSES: dict[str, type[DataType]] = {
    "DECIMAL": DecimalType,
    "BYTES": BytesType,
    **dict.fromkeys(("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"), TimeType),
}


class DataTypes:
    """Creates types of columns. Types that are not supported are refused when they are used."""

    STRING = staticmethod(_simple("STRING"))
    BOOLEAN = staticmethod(_simple("BOOLEAN"))
    TINYINT = staticmethod(_simple("TINYINT"))
    SMALLINT = staticmethod(_simple("SMALLINT"))
    INT = staticmethod(_simple("INT"))
    BIGINT = staticmethod(_simple("BIGINT"))
    FLOAT = staticmethod(_simple("FLOAT"))
    DOUBLE = staticmethod(_simple("DOUBLE"))

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Texts of one length."""
        return DataType("CHAR", (length,), nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Texts up to a length."""
        return DataType("VARCHAR", (length,), nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Decimals with `precision` digits, `scale` of them after the point."""
        return DecimalType("DECIMAL", (precision, scale), nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Bytes of any number."""
        return BytesType("BYTES", (), nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Dates."""
        return TimeType("DATE", (), nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Times of day."""
        return TimeType("TIME", (precision,), nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Datetimes without a zone."""
        return TimeType("TIMESTAMP", (precision,), nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Instants."""
        return TimeType("TIMESTAMP_LTZ", (precision,), nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Lists."""
        return ArrayType("ARRAY", (), nullable, element_type=_checked(element_type, "ARRAY"))

    @staticmethod
    def MAP(  # noqa: N802 - PyFlink's name
        key_type: DataType, value_type: DataType, nullable: bool = True
    ) -> DataType:
        """Dicts."""
        key, value = _checked(key_type, "MAP"), _checked(value_type, "MAP")
        return MapType("MAP", (), nullable, key_type=key, value_type=value)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:  # noqa: N802, ARG004 - PyFlink's
        """A field of a row. The description has no effect."""
        return RowField(name, _checked(data_type, "FIELD"))

    @staticmethod
    def ROW(row_fields: Sequence[RowField | DataType] = (), nullable: bool = True) -> RowType:  # noqa: N802 - PyFlink's name
        """Rows. Fields without names are called f0, f1, ..."""
        fields = (
            each if isinstance(each, RowField) else RowField(f"f{number}", _checked(each, "ROW"))
            for number, each in enumerate(row_fields)
        )
        return RowType("ROW", (), nullable, fields=tuple(fields))


def _checked(data_type: Any, of: str) -> DataType:
    if not isinstance(data_type, DataType):
        raise TypeError(f"DataTypes.{of} got {data_type!r}; it takes types such as DataTypes.INT()")
    return data_type


DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE = DataTypes.TIMESTAMP_LTZ  # type: ignore[attr-defined]  # PyFlink's long name
for _name in (
    *("NULL", "BINARY", "VARBINARY", "LIST_VIEW", "MAP_VIEW", "MULTISET"),
    *("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "INTERVAL"),
):
    setattr(DataTypes, _name, staticmethod(refuses(f"DataTypes.{_name}", _MISSING)))


def data_type_of(text: str) -> DataType:
    """The type that SQL's text names.

    >>> data_type_of("decimal(10, 2) not null")
    DecimalType(name='DECIMAL', parameters=(10, 2), is_nullable=False)
    >>> print(data_type_of("ROW<a INT, b ARRAY<STRING>>"))
    ROW<`a` INT, `b` ARRAY<STRING>>

    Raises:
        ValueError: The type is not supported, or has a wrong number of parameters.
    """
    match = _NESTED.fullmatch(text)
    if match is not None:
        return _nested(match[1].upper(), _split(match[2]), (match[3] or "").upper() != "NOT NULL")
    text = re.sub(r"(?i)^\s*TIMESTAMP(.*)WITH LOCAL TIME ZONE", r"TIMESTAMP_LTZ\1", text)
    text = re.sub(r"(?i)^\s*VARBINARY\s*\(2147483647\)", "BYTES", text)
    match = _SQL_TYPE.fullmatch(text)
    name = "" if match is None else " ".join(match[1].upper().split())
    name = _ALSO_CALLED.get(name, name)
    if match is None or (name not in _TYPE_INFORMATION and name != "BYTES"):
        raise ValueError(f"'{text}' is not a supported column type; {_MISSING}")
    parameters = tuple(int(each) for each in (match[2] or "").split(",") if each.strip())
    if name == "VARCHAR" and not parameters:
        name = "STRING"
    wanted = _NUMBER_OF_PARAMETERS.get(name, 0)
    if name in _DEFAULTS and len(parameters) < len(_DEFAULTS[name]):
        parameters += _DEFAULTS[name][len(parameters) :]
    elif len(parameters) != wanted:
        raise ValueError(f"'{text}' has {len(parameters)} parameters; a {name} has {wanted}")
    of = _CLASSES.get(name, DataType)
    return of(name, parameters, (match[3] or "").upper() != "NOT NULL")


def _nested(name: str, parts: list[str], nullable: bool) -> DataType:
    if name == "ARRAY":
        return DataTypes.ARRAY(data_type_of(parts[0]), nullable)
    if name == "MAP":
        return DataTypes.MAP(data_type_of(parts[0]), data_type_of(parts[1]), nullable)
    fields = []
    for part in parts:
        match = _FIELD.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part}' is not a field of a ROW; write a name and a type")
        fields.append(RowField(match[1] or match[2], data_type_of(match[3])))
    return DataTypes.ROW(fields, nullable)


def _split(text: str) -> list[str]:
    """Parts between commas that are outside of brackets."""
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def spark_schema(columns: Iterable[tuple[str, DataType]]) -> str:
    """Columns as Spark's DDL. Flink's TIMESTAMP has no zone."""
    return ", ".join(f"`{name}` {_spark_type(data_type)}" for name, data_type in columns)


def spark_types(columns: Iterable[tuple[str, DataType]]) -> dict[str, str]:
    """The columns with their Spark types."""
    return {name: _spark_type(data_type) for name, data_type in columns}


def _spark_type(of: DataType) -> str:
    if isinstance(of, RawType):
        raise UnsupportedFeatureError(
            "Spark SQL can't read a column of type RAW, whose values are Python objects; declare output_type=... on the "
            "operator before from_data_stream()"
        )
    if isinstance(of, ArrayType):
        return f"ARRAY<{_spark_type(of.element_type)}>"
    if isinstance(of, MapType):
        return f"MAP<{_spark_type(of.key_type)}, {_spark_type(of.value_type)}>"
    if isinstance(of, RowType):
        return f"STRUCT<{', '.join(f'`{each.name}`: {_spark_type(each.data_type)}' for each in of.fields)}>"
    if of.name == "DECIMAL":
        return f"DECIMAL({of.parameters[0]}, {of.parameters[1]})"
    return _SPARK_TYPES.get(of.name, of.name)


_SPARK_TYPES = {
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "BYTES": "BINARY",
    "TIME": "STRING",
    "CHAR": "STRING",
    "VARCHAR": "STRING",
}


def type_of_spark(text: str) -> DataType:
    """The type of a column of Spark. A nested type becomes STRING, which only appears as a name in results."""
    known = {"timestamp_ntz": "TIMESTAMP(6)", "timestamp": "TIMESTAMP_LTZ(6)", "binary": "BYTES"}
    try:
        return data_type_of(known.get(text, text))
    except ValueError:
        return data_type_of("STRING")


def type_of_stream(of: TypeInformation[Any]) -> DataType | None:
    """The type of a column for the type of a field in a stream; None if there is none."""
    for text in (
        *("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE"),
        *("TIME", "TIMESTAMP(9)", "TIMESTAMP_LTZ(9)", "BYTES"),
    ):
        data_type = data_type_of(text)
        if data_type.type_information() == of:
            return data_type
    if of == RAW.type_information():
        return RAW
    if "BigDecimal" in repr(of):
        return data_type_of("DECIMAL(38, 18)")
    return _nested_type_of(of)


def _nested_type_of(of: TypeInformation[Any]) -> DataType | None:
    from opchain.runtime.types.container_types import MapTypeInfo  # noqa: PLC0415 - mostly unused
    from opchain.runtime.types.record_types import RowTypeInfo  # noqa: PLC0415 - likewise

    if hasattr(of, "element_type"):
        element = type_of_stream(of.element_type)
        return None if element is None else DataTypes.ARRAY(element)
    if isinstance(of, MapTypeInfo):
        key, value = type_of_stream(of.key_type_info), type_of_stream(of.value_type_info)
        return None if key is None or value is None else DataTypes.MAP(key, value)
    if isinstance(of, RowTypeInfo):
        types = [type_of_stream(each) for each in of.get_field_types()]
        known = [each for each in types if each is not None]
        names = of.get_field_names()
        if len(known) == len(types):
            return DataTypes.ROW([RowField(*each) for each in zip(names, known, strict=True)])
    return None


def type_of_value(value: Any) -> DataType:
    """The type of a column for one of its values, as `from_elements` infers it.

    Raises:
        TypeError: There is none.
    """
    for classes, text in _TYPES_OF_VALUES:
        if isinstance(value, classes):
            return data_type_of(text)
    if isinstance(value, list) and value:
        return DataTypes.ARRAY(type_of_value(value[0]))
    if isinstance(value, dict) and value:
        key, item = next(iter(value.items()))
        return DataTypes.MAP(type_of_value(key), type_of_value(item))
    if isinstance(value, (tuple, Row)):
        types = map(type_of_value, value)
        fields = zip(names_of_fields(value), types, strict=True)
        return DataTypes.ROW([RowField(*each) for each in fields])
    raise TypeError(f"{value!r} has no type of a column; pass a schema of DataTypes")


def names_of_fields(value: tuple[Any, ...] | Row) -> list[str]:
    """The names of the fields of a tuple or Row: its own, or _1, _2 and so on."""
    own = getattr(value, "_fields", None)
    return list(own or [f"_{number}" for number in range(1, len(value) + 1)])


_TYPES_OF_VALUES: tuple[tuple[Any, str], ...] = (
    (bool, "BOOLEAN"),
    (int, "BIGINT"),
    (float, "DOUBLE"),
    (str, "STRING"),
    ((bytes, bytearray), "BYTES"),
    (Decimal, "DECIMAL(38, 18)"),
    (datetime, "TIMESTAMP(6)"),
    (date, "DATE"),
    (time, "TIME"),
)
