"""The connector `datagen`: generated rows, with a generator per column.

The options are Flink's: `rows-per-second` (default 10,000), `number-of-rows` (default unlimited), and for each column
`fields.NAME.kind` (`random` or `sequence`), `.min`, `.max`, `.max-past`, `.length`, `.var-len`, `.null-rate`, `.start`,
`.end`. The parts of a nested column are `NAME.element`, `NAME.key`, `NAME.value` and `NAME.FIELD`. Flink draws other
numbers in every run. Here the rows are the same in every run, except for times, which are those of the clock.

Flink: `DataGenTableSourceFactory`, `RandomGeneratorVisitor`, `SequenceGeneratorVisitor`.
"""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.options import Options, TableSource
from opchain.compiler.table.connectors.row_types import row_type
from opchain.compiler.table.data_types import (
    ArrayType,
    DataType,
    DataTypes,
    MapType,
    RowType,
)
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.runtime.connectors.data_generator import (
    ALL_DIGITS,
    DataGeneratorSource,
    DictGenerator,
    ListGenerator,
    RandomBoolean,
    RandomBytes,
    RandomDecimal,
    RandomFloat,
    RandomInteger,
    RandomText,
    RandomTime,
    RowGenerator,
    SequenceGenerator,
    SometimesNull,
    ValueGenerator,
    seed_of,
)
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.runtime.columnar.spark_types import SparkType


ROWS_PER_SECOND = "10000"
TEXT_LENGTH = "100"
COLLECTION_LENGTH = "3"

_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LARGEST_FLOAT = {"FLOAT": (2 - 2**-23) * 2.0**127, "DOUBLE": math.nextafter(math.inf, 0)}
_TEXTS = ("CHAR", "VARCHAR", "STRING")
_SEQUENCE_OF = {"FLOAT": float, "DOUBLE": float, "DECIMAL": decimal.Decimal}


def read_datagen(options: Options) -> TableSource:
    """A table of generated rows as a source."""
    return TableSource.of_rows(datagen_source(options.descriptor), row_type(options.columns))


def datagen_source(descriptor: TableDescriptor) -> DataGeneratorSource[Any]:
    """The source of a described table.

    Raises:
        ValueError: An option has no meaning, or a value that it cannot have.
    """
    return _Options(descriptor).source()


class _Options:
    """The options of one table; those that are left over when all are read are mistakes."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        assert descriptor.schema is not None
        self._columns = descriptor.schema.columns
        self._left = dict(descriptor.options)
        self._ends: list[int] = []

    def source(self) -> DataGeneratorSource[Any]:
        per_second = self._number("rows-per-second", ROWS_PER_SECOND, float)
        rows = self._number("number-of-rows", None, int)
        rows_of = RowGenerator(tuple((name, self._column(name, of)) for name, of in self._columns))
        if self._left:
            raise ValueError(
                f"datagen does not know the option '{min(self._left)}'; its columns are "
                f"{', '.join(repr(name) for name, _ in self._columns)}"
            )
        # A table ends with the first of its sequences.
        ends = [*self._ends, *(() if rows is None else (rows,))]
        return DataGeneratorSource(rows_of, min(ends, default=None), per_second)

    def _column(self, name: str, data_type: DataType) -> ValueGenerator:
        kind = self._left.pop(f"fields.{name}.kind", "random")
        if kind == "sequence":
            return self._sequence(name, data_type)
        if kind != "random":
            raise ValueError(
                f"datagen: fields.{name}.kind is '{kind}'; it must be 'random' or 'sequence'"
            )
        generator = self._random(name, data_type)
        null_rate = self._number(f"fields.{name}.null-rate", "0", float)
        if not 0 <= null_rate <= 1:
            raise ValueError(f"datagen: fields.{name}.null-rate is {null_rate}; it must be 0 to 1")
        if null_rate and not data_type.is_nullable:
            raise ValueError(
                f"datagen: fields.{name}.null-rate is {null_rate}, but '{name}' is {data_type}; set it to 0, or "
                "declare the column without NOT NULL"
            )
        if not null_rate:
            return generator
        return SometimesNull(seed_of(f"null {name}"), null_rate, generator)

    def _random(self, name: str, data_type: DataType) -> ValueGenerator:  # noqa: PLR0911 - one for each kind of type
        seed, of = seed_of(name), data_type.name
        if of == "BOOLEAN":
            return RandomBoolean(seed)
        if of in _TEXTS or of == "BYTES":
            default = str(data_type.parameters[0]) if data_type.parameters else TEXT_LENGTH
            length = self._number(f"fields.{name}.length", default, int)
            varies = self._left.pop(f"fields.{name}.var-len", "false").lower() == "true"
            return (RandomBytes if of == "BYTES" else RandomText)(seed, length, varies)
        if isinstance(data_type, (ArrayType, MapType)):
            return self._collection(name, data_type)
        if isinstance(data_type, RowType):
            fields = (
                (each.name, f"{name}.{each.name}", each.data_type) for each in data_type.fields
            )
            return RowGenerator(tuple((own, self._column(path, of)) for own, path, of in fields))
        if of in ("DATE", "TIME"):
            return RandomTime(seed, of)
        if of.startswith("TIMESTAMP"):
            past = self._left.pop(f"fields.{name}.max-past", "0 ms")
            return RandomTime(seed, of, Duration.parse(past).to_millis())
        if of in _INTEGER_BITS:
            largest = (1 << (_INTEGER_BITS[of] - 1)) - 1
            return RandomInteger(seed, *self._bounds(name, -largest - 1, largest, int))
        if of == "DECIMAL":
            precision, scale = data_type.parameters
            largest_decimal = decimal.Decimal(10**precision - 1).scaleb(-scale, context=ALL_DIGITS)
            bounds = self._bounds(name, -largest_decimal, largest_decimal, decimal.Decimal)
            return RandomDecimal(seed, *bounds, scale)
        largest_float = _LARGEST_FLOAT[of]
        return RandomFloat(seed, *self._bounds(name, -largest_float, largest_float, float))

    def _collection(self, name: str, data_type: ArrayType | MapType) -> ValueGenerator:
        length = self._number(f"fields.{name}.length", COLLECTION_LENGTH, int)
        if isinstance(data_type, ArrayType):
            return ListGenerator(length, self._column(f"{name}.element", data_type.element_type))
        keys = self._column(f"{name}.key", data_type.key_type)
        values = self._column(f"{name}.value", data_type.value_type)
        return DictGenerator(ListGenerator(length, keys), ListGenerator(length, values))

    def _sequence(self, name: str, data_type: DataType) -> ValueGenerator:
        if data_type.name not in (*_INTEGER_BITS, *_SEQUENCE_OF, *_TEXTS):
            raise ValueError(f"datagen: '{name}' is {data_type}, which has no sequence")
        start, end = (
            self._number(f"fields.{name}.{bound}", None, int) for bound in ("start", "end")
        )
        if start is None or end is None or start > end:
            raise ValueError(
                f"datagen: the sequence '{name}' goes from {start} to {end}; fields.{name}.start and "
                f"fields.{name}.end must be set, and start must not be after end"
            )
        self._ends.append(end - start + 1)
        of_text = str if data_type.name in _TEXTS else int
        return SequenceGenerator(start, _SEQUENCE_OF.get(data_type.name, of_text))

    def _bounds(
        self, name: str, least: Any, most: Any, kind: Callable[[str], Any]
    ) -> tuple[Any, Any]:
        found = (
            self._number(f"fields.{name}.min", str(least), kind),
            self._number(f"fields.{name}.max", str(most), kind),
        )
        if found[0] > found[1]:
            raise ValueError(
                f"datagen: fields.{name}.min is {found[0]}, but fields.{name}.max is {found[1]}; min must not be "
                "greater than max"
            )
        return found

    def _number(self, option: str, default: str | None, kind: Callable[[str], Any]) -> Any:
        text = self._left.pop(option, default)
        if text is None:
            return None
        try:
            return kind(text)
        except (ValueError, decimal.InvalidOperation):
            raise ValueError(f"datagen: {option} is '{text}'; it must be a number") from None


NAME = "opchain-datagen"

_TYPES = {
    "boolean": DataTypes.BOOLEAN,
    "byte": DataTypes.TINYINT,
    "short": DataTypes.SMALLINT,
    "integer": DataTypes.INT,
    "long": DataTypes.BIGINT,
    "float": DataTypes.FLOAT,
    "double": DataTypes.DOUBLE,
    "string": DataTypes.STRING,
}


def datagen_of(options: Mapping[str, str], columns: SparkType) -> DataGeneratorSource[Any]:
    """The source for a Spark schema and options of the connector `datagen`.

    Without `rows-per-second`, rows are generated as fast as possible, because a DataFrame waits for all of them.
    """
    schema = Schema.new_builder()
    for field in columns.fields:
        schema = schema.column(field.name, _data_type(field.name, field.type))
    builder = TableDescriptor.for_connector("datagen").schema(schema.build())
    for key, value in options.items():
        builder = builder.option(_in_case(key, columns), value)
    source = datagen_source(builder.build())
    if "rows-per-second" in options:
        return source
    return DataGeneratorSource(source.generator_function, source.count)


def _in_case(option: str, columns: SparkType) -> str:
    """Spark's options come in lower case; a column has its own."""
    for field in columns.fields:
        prefix = f"fields.{field.name}."
        if option.lower().startswith(prefix.lower()):
            return prefix + option[len(prefix) :]
    return option


def _data_type(name: str, of: SparkType) -> DataType:
    if of.kind == "decimal":
        return DataTypes.DECIMAL(of.precision, of.scale)
    make = _TYPES.get(of.kind)
    if make is None:
        raise UnsupportedFeatureError(
            f"the format '{NAME}' cannot generate the column '{name}' of type {of.sql}: it "
            f"generates booleans, numbers and strings"
        )
    return make()
