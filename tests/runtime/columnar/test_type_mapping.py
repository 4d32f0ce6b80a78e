from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.runtime.columnar.spark_types import SparkType, decimal_type
from opchain.runtime.columnar.type_mapping import columns_of, spark_type_of, type_info_of
from opchain.runtime.errors import GraphError
from opchain.runtime.types.coders import coder_converter
from opchain.runtime.types.record_types import ExternalTypeInfo
from opchain.runtime.types.time_types import ZONED_TIMESTAMP, BigDecimalTypeInfo, LocalTimeTypeInfo

LOCAL = LocalTimeTypeInfo.TimeType

BOTH_WAYS: list[tuple[Any, str]] = [
    (Types.BOOLEAN(), "boolean"),
    (Types.BYTE(), "tinyint"),
    (Types.SHORT(), "smallint"),
    (Types.INT(), "int"),
    (Types.LONG(), "bigint"),
    (Types.FLOAT(), "float"),
    (Types.DOUBLE(), "double"),
    (Types.BIG_DEC(), "decimal(38,18)"),
    (BigDecimalTypeInfo.of(38, 2), "decimal(38,2)"),
    (BigDecimalTypeInfo.of(38, 30), "decimal(38,30)"),
    (Types.STRING(), "string"),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), "binary"),
    (Types.SQL_DATE(), "date"),
    (Types.SQL_TIME(), "time(6)"),
    (ZONED_TIMESTAMP, "timestamp"),
    (LocalTimeTypeInfo(LOCAL.LOCAL_DATE_TIME), "timestamp_ntz"),
    (Types.OBJECT_ARRAY(Types.OBJECT_ARRAY(Types.INT())), "array<array<int>>"),
    (Types.MAP(Types.STRING(), Types.DOUBLE()), "map<string, double>"),
    (
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.ROW_NAMED(["c"], [Types.STRING()])]),
        "struct<a: int, b: struct<c: string>>",
    ),
]

TO_SPARK: list[tuple[Any, str]] = [
    (Types.CHAR(), "string"),
    (Types.BIG_INT(), "decimal(38,0)"),
    (BigDecimalTypeInfo.of(10, 2), "decimal(10,2)"),
    (Types.INSTANT(), "timestamp"),
    (Types.SQL_TIMESTAMP(), "timestamp_ntz"),
    (LocalTimeTypeInfo(LOCAL.LOCAL_DATE), "date"),
    (LocalTimeTypeInfo(LOCAL.LOCAL_TIME), "time(6)"),
    (Types.TUPLE([Types.INT(), Types.STRING()]), "struct<f0: int, f1: string>"),
    (Types.ROW([Types.INT()]), "struct<f0: int>"),
    (Types.PRIMITIVE_ARRAY(Types.INT()), "array<int>"),
    (Types.BASIC_ARRAY(Types.STRING()), "array<string>"),
    (Types.LIST(Types.BIG_DEC()), "array<decimal(38,18)>"),
    (ExternalTypeInfo(Types.INT()), "int"),
]


@pytest.mark.parametrize(("type_info", "sql"), BOTH_WAYS + TO_SPARK)
def test_type_information_is_mapped_to_a_spark_type(type_info: Any, sql: str) -> None:
    assert spark_type_of(type_info).sql == sql


@pytest.mark.parametrize(("type_info", "sql"), BOTH_WAYS)
def test_a_mapped_spark_type_is_mapped_back_to_the_same_type_information(
    type_info: Any, sql: str
) -> None:
    assert type_info_of(spark_type_of(type_info)) == type_info


@pytest.mark.parametrize(
    ("precision", "scale", "sql"),
    [
        (10, 2, "decimal(38,18)"),
        (38, 18, "decimal(38,18)"),
        (20, 0, "decimal(38,18)"),
        (21, 0, "decimal(38,0)"),
        (23, 2, "decimal(38,2)"),
        (19, 19, "decimal(38,19)"),
        (20, -5, "decimal(38,0)"),
    ],
)
def test_every_decimal_of_a_column_fits_its_decimal_type(
    precision: int, scale: int, sql: str
) -> None:
    assert spark_type_of(type_info_of(decimal_type(precision, scale))).sql == sql


@pytest.mark.parametrize("kind", ["day_time_interval", "void"])
def test_spark_types_that_flink_does_not_have_become_pickled_objects(kind: str) -> None:
    assert type_info_of(SparkType(kind)) == Types.PICKLED_BYTE_ARRAY()


def test_an_operator_accepts_arrays_with_null_elements() -> None:
    convert = coder_converter(type_info_of(SparkType("array", element=SparkType("integer"))))
    assert convert is not None
    assert convert([1, None, 3]) == [1, None, 3]


def test_field_names_are_kept() -> None:
    row = type_info_of(spark_type_of(Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.INT()])))
    assert row.get_field_names() == ["x", "y"]  # type: ignore[attr-defined]


def test_a_type_that_is_not_a_row_becomes_one_column() -> None:
    assert columns_of(SparkType("long")).sql == "struct<value: bigint>"


@pytest.mark.parametrize(
    ("type_info", "said"),
    [
        (Types.PICKLED_BYTE_ARRAY(), "the records are of type PickledByteArrayTypeInfo"),
        (
            Types.ROW_NAMED(["a"], [Types.LIST(Types.PICKLED_BYTE_ARRAY())]),
            r"the field 'a\[\]' is of type",
        ),
    ],
)
def test_types_without_column_types_are_refused(type_info: Any, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        spark_type_of(type_info)
