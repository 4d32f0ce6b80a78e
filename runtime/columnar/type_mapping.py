"""Spark's types and the types of records, both ways.

    Spark                      TypeInformation                record
    boolean                    BOOLEAN                        bool
    tinyint, smallint, int     BYTE, SHORT, INT               int
    bigint                     LONG                           int
    float, double              FLOAT, DOUBLE                  float
    decimal(p, s)              BIG_DEC, BigDecimalTypeInfo    Decimal
    string, char, varchar      STRING                         str
    binary                     PRIMITIVE_ARRAY(BYTE)          bytes
    date                       SQL_DATE                       date
    timestamp                  ZONED_TIMESTAMP                datetime in UTC
    timestamp_ntz              LocalTimeTypeInfo, date-time   datetime without zone
    time                       SQL_TIME                       time
    interval day to second     PICKLED_BYTE_ARRAY             timedelta
    array, map, struct         OBJECT_ARRAY, MAP, ROW_NAMED   list, dict, Row
    void                       PICKLED_BYTE_ARRAY             None

ZONED_TIMESTAMP is an SQL_TIMESTAMP that keeps time zone and microseconds. Elements of an array may be null, which LIST
refuses.

In the other direction, BIG_DEC is decimal(38, 18), BIG_INT decimal(38, 0), CHAR a string, INSTANT a timestamp,
SQL_TIMESTAMP a timestamp_ntz, LIST an array, and a tuple a struct of f0, f1, ... A type that is not a row becomes a
single column `value`, as in Spark.

A decimal type that does not fit into decimal(38, 18), before or after the point, is a BigDecimalTypeInfo with 38 digits
and the scale of the column. The other decimal types are BIG_DEC, which leaves room for sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkField, SparkType, decimal_type, struct_type
from opchain.runtime.errors import GraphError
from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.record_types import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.time_types import (
    DEFAULT_PRECISION,
    DEFAULT_SCALE,
    ZONED_TIMESTAMP,
    BigDecimalTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Callable


VALUE = "value"
"""The column of records that are not rows."""

_LocalTime = LocalTimeTypeInfo.TimeType

_TYPE_OF_KIND: dict[str, Callable[[], TypeInformation[Any]]] = {
    "boolean": Types.BOOLEAN,
    "byte": Types.BYTE,
    "short": Types.SHORT,
    "integer": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "string": Types.STRING,
    "binary": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "date": Types.SQL_DATE,
    "timestamp": lambda: ZONED_TIMESTAMP,
    "timestamp_ntz": lambda: LocalTimeTypeInfo(_LocalTime.LOCAL_DATE_TIME),
    "time": Types.SQL_TIME,
    "day_time_interval": Types.PICKLED_BYTE_ARRAY,
    "void": Types.PICKLED_BYTE_ARRAY,
}

_BASIC = {
    BasicType.STRING: SparkType("string"),
    BasicType.BYTE: SparkType("byte"),
    BasicType.BOOLEAN: SparkType("boolean"),
    BasicType.SHORT: SparkType("short"),
    BasicType.INT: SparkType("integer"),
    BasicType.LONG: SparkType("long"),
    BasicType.FLOAT: SparkType("float"),
    BasicType.DOUBLE: SparkType("double"),
    BasicType.CHAR: SparkType("string"),
    BasicType.BIG_INT: decimal_type(DEFAULT_PRECISION, 0),
    BasicType.BIG_DEC: decimal_type(DEFAULT_PRECISION, DEFAULT_SCALE),
    BasicType.INSTANT: SparkType("timestamp"),
}

_LOCAL = {
    _LocalTime.LOCAL_DATE: SparkType("date"),
    _LocalTime.LOCAL_TIME: SparkType("time", "time(6)", 6),
    _LocalTime.LOCAL_DATE_TIME: SparkType("timestamp_ntz"),
}


def type_info_of(spark_type: SparkType) -> TypeInformation[Any]:
    """The type of records for a Spark type. A struct becomes a row type."""
    if spark_type.kind == "struct":
        return Types.ROW_NAMED(
            [field.name for field in spark_type.fields],
            [type_info_of(field.type) for field in spark_type.fields],
        )
    if spark_type.kind == "array":
        return Types.OBJECT_ARRAY(type_info_of(spark_type.item))
    if spark_type.kind == "map":
        assert spark_type.key is not None
        return Types.MAP(type_info_of(spark_type.key), type_info_of(spark_type.item))
    if spark_type.kind == "decimal":
        return _decimal(spark_type)
    return _TYPE_OF_KIND[spark_type.kind]()


def spark_type_of(type_info: TypeInformation[Any], path: str = "") -> SparkType:
    """The Spark type for a type of records. `path` is the name of the field in errors.

    Raises:
        GraphError: The type is not specific enough, or Spark has no such type.
    """
    if isinstance(type_info, ExternalTypeInfo):
        return spark_type_of(type_info.type_info, path)
    for of_type, make in _MAKERS:
        if isinstance(type_info, of_type):
            return make(type_info, path)
    where = f"the field '{path}' is" if path else "the records are"
    raise GraphError(
        f"{where} of type {type_info!r}, which has no columns: declare a type such as "
        "Types.ROW_NAMED(...), or pass a schema"
    )


def columns_of(spark_type: SparkType) -> SparkType:
    """The struct of a DataFrame's columns: the type itself, or one column of it."""
    if spark_type.kind == "struct":
        return spark_type
    return struct_type([SparkField(VALUE, spark_type)])


def _decimal(spark_type: SparkType) -> TypeInformation[Any]:
    scale = max(0, spark_type.scale)  # of a legacy setting's negative one only zeros are lost
    has_room_before = spark_type.precision - spark_type.scale <= DEFAULT_PRECISION - DEFAULT_SCALE
    if has_room_before and scale <= DEFAULT_SCALE:
        return Types.BIG_DEC()
    return BigDecimalTypeInfo.of(DEFAULT_PRECISION, scale)


def _struct(names: list[str], types: list[TypeInformation[Any]], path: str) -> SparkType:
    return struct_type(
        [
            SparkField(name, spark_type_of(each, f"{path}.{name}" if path else name))
            for name, each in zip(names, types, strict=True)
        ]
    )


def _tuple(type_info: TupleTypeInfo, path: str) -> SparkType:
    types = type_info.get_field_types()
    return _struct([f"f{position}" for position in range(len(types))], types, path)


def _array(type_info: Any, path: str) -> SparkType:
    is_primitive = isinstance(type_info, PrimitiveArrayTypeInfo)
    if is_primitive and type_info.element_type == Types.BYTE():
        return SparkType("binary")
    return SparkType("array", element=spark_type_of(type_info.element_type, f"{path}[]"))


def _timestamp(type_info: TimestampTypeInfo, _path: str) -> SparkType:
    return SparkType("timestamp" if type_info.keeps_zone else "timestamp_ntz")


def _map(type_info: MapTypeInfo[Any, Any], path: str) -> SparkType:
    return SparkType(
        "map",
        key=spark_type_of(type_info.key_type_info, f"{path} (key)"),
        element=spark_type_of(type_info.value_type_info, f"{path} (value)"),
    )


_MAKERS: tuple[tuple[Any, Callable[[Any, str], SparkType]], ...] = (
    (BigDecimalTypeInfo, lambda kind, _path: decimal_type(kind.precision, kind.scale)),
    (BasicTypeInfo, lambda basic, _path: _BASIC[basic.basic_type]),
    (RowTypeInfo, lambda row, path: _struct(row.get_field_names(), row.get_field_types(), path)),
    (TupleTypeInfo, _tuple),
    (PrimitiveArrayTypeInfo, _array),
    (BasicArrayTypeInfo, _array),
    (ObjectArrayTypeInfo, _array),
    (ListTypeInfo, _array),
    (MapTypeInfo, _map),
    (DateTypeInfo, lambda _type, _path: SparkType("date")),
    (TimestampTypeInfo, _timestamp),
    (TimeTypeInfo, lambda _type, _path: _LOCAL[_LocalTime.LOCAL_TIME]),
    (LocalTimeTypeInfo, lambda local, _path: _LOCAL[local.time_type]),
)
