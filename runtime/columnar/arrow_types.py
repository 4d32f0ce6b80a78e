"""Arrow's types for Spark's: what Spark itself reads and writes them as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import imported

if TYPE_CHECKING:
    from types import ModuleType

    from opchain.runtime.columnar.spark_types import SparkType


def pyarrow() -> ModuleType:
    """The module.

    Raises:
        MissingLibraryError: It is not installed.
    """
    module: ModuleType = imported("pyarrow", "spark", "turning records into columns")
    return module


def arrow_schema(columns: SparkType, *, large: bool = False) -> Any:
    """The schema of a struct's fields.

    Args:
        columns: The struct.
        large: Whether strings and bytes have 64-bit offsets, as a setting of Spark may ask for.
    """
    arrow = pyarrow()
    return arrow.schema(
        [
            arrow.field(field.name, arrow_type(field.type, large=large), field.nullable)
            for field in columns.fields
        ]
    )


def arrow_type(spark_type: SparkType, *, large: bool = False) -> Any:
    """The Arrow type."""
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
