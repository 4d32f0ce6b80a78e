from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.table.data_types import DataType, DataTypes, data_type_of
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.time_types import BigDecimalTypeInfo


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("INT", DataTypes.INT()),
        (" integer ", DataTypes.INT()),
        ("bigint not null", DataTypes.BIGINT(nullable=False)),
        ("STRING NULL", DataTypes.STRING()),
        ("CHAR(3)", DataTypes.CHAR(3)),
        ("varchar( 30 )", DataTypes.VARCHAR(30)),
        ("VARCHAR", DataTypes.STRING()),
        ("CHAR", DataTypes.CHAR(1)),
        ("DECIMAL(10, 2)", DataTypes.DECIMAL(10, 2)),
    ],
)
def test_data_type_of_parses_types_of_sql(text: str, data_type: DataType) -> None:
    assert data_type_of(text) == data_type
    assert data_type_of(str(data_type)) == data_type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a supported column type"),
        ("INT(3)", "has 1 parameters; a INT has 0"),
        ("BINARY(3)", "is not a supported column type"),
    ],
)
def test_data_type_of_refuses_other_texts(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data_type_of(text)


def test_data_types_have_the_type_information_of_their_records() -> None:
    assert DataTypes.BIGINT().type_information() == Types.LONG()
    assert DataTypes.VARCHAR(3).type_information() == Types.STRING()
    assert DataTypes.DECIMAL(3, 1).type_information() == BigDecimalTypeInfo.of(3, 1)
    assert DataTypes.INT().not_null() == DataTypes.INT(nullable=False)
    assert DataTypes.INT(nullable=False).nullable() == DataTypes.INT()


def test_data_types_can_be_nested() -> None:
    row = DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.INT(nullable=False)),
            DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
            DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
            DataTypes.FIELD("sizes", DataTypes.MAP(DataTypes.STRING(), DataTypes.BYTES())),
            DataTypes.FIELD("inner", DataTypes.ROW([DataTypes.DATE(), DataTypes.TIME()])),
        ]
    )
    assert str(row) == (
        "ROW<`id` INT NOT NULL, `at` TIMESTAMP(3), `tags` ARRAY<STRING>, `sizes` MAP<STRING, BYTES>, "
        "`inner` ROW<`f0` DATE, `f1` TIME(0)>>"
    )
    assert repr(row.type_information()) == repr(
        Types.ROW_NAMED(
            ["id", "at", "tags", "sizes", "inner"],
            [
                Types.INT(),
                Types.SQL_TIMESTAMP(),
                Types.OBJECT_ARRAY(Types.STRING()),
                Types.MAP(Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())),
                Types.ROW_NAMED(["f0", "f1"], [Types.SQL_DATE(), Types.SQL_TIME()]),
            ],
        )
    )
    assert str(data_type_of(str(row))) == str(row)


def test_the_element_type_of_a_data_type_must_be_a_data_type() -> None:
    wrong: Any = int
    with pytest.raises(TypeError, match=r"DataTypes\.ARRAY got <class 'int'>; it takes types"):
        DataTypes.ARRAY(wrong)


@pytest.mark.parametrize("name", ["MULTISET", "INTERVAL", "BINARY"])
def test_unsupported_data_types_are_refused_by_name(name: str) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"DataTypes\.{name}\(\) \(test_data_types.py:"
    ):
        getattr(DataTypes, name)(3)
