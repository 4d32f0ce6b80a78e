"""The connector `datagen` as a format of Spark's reader, with its own options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.table.data_types import DataTypes
from opchain.compiler.table.datagen import datagen_source
from opchain.compiler.table.schema import Schema
from opchain.compiler.table.table_descriptor import TableDescriptor
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.compiler.table.data_types import DataType
    from opchain.runtime.columnar.spark_types import SparkType

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
    """The source for a schema of Spark's and options as of datagen.

    Without `rows-per-second` rows come as fast as they can, since a DataFrame waits for all of them.
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
            f"the format '{NAME}' cannot make up the column '{name}' of type {of.sql}: it makes booleans, "
            "numbers and strings"
        )
    return make()
