from __future__ import annotations

import pytest
from opchain.common import Types
from opchain.compiler.table.data_types import DataType, DataTypes, data_type_of
from opchain.runtime.errors import UnsupportedFeatureError


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("INT", DataTypes.INT()),
        (" integer ", DataTypes.INT()),
        ("bigint not null", DataTypes.BIGINT(nullable=False)),
        ("STRING NULL", DataTypes.STRING()),
        ("CHAR(3)", DataTypes.CHAR(3)),
        ("varchar( 30 )", DataTypes.VARCHAR(30)),
        ("DECIMAL(10, 2)", DataTypes.DECIMAL(10, 2)),
    ],
)
def test_sqls_text_names_a_type(text: str, data_type: DataType) -> None:
    assert data_type_of(text) == data_type
    assert data_type_of(str(data_type)) == data_type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TIMESTAMP(3)", "'TIMESTAMP\\(3\\)' is no supported type of a column"),
        ("", "is no supported type"),
        ("INT(3)", "has 1 parameters; a INT has 0"),
        ("DECIMAL(3)", "has 1 parameters; a DECIMAL has 2"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data_type_of(text)


def test_types_become_those_of_records() -> None:
    assert DataTypes.BIGINT().type_information() == Types.LONG()
    assert DataTypes.VARCHAR(3).type_information() == Types.STRING()
    assert DataTypes.DECIMAL(3, 1).type_information() == Types.BIG_DEC()
    assert DataTypes.INT().not_null() == DataTypes.INT(nullable=False)
    assert DataTypes.INT(nullable=False).nullable() == DataTypes.INT()


@pytest.mark.parametrize("name", ["TIMESTAMP", "ARRAY", "ROW", "BYTES"])
def test_a_type_that_is_missing_is_refused_by_name(name: str) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"DataTypes\.{name}\(\) \(test_data_types.py:"
    ):
        getattr(DataTypes, name)(3)
