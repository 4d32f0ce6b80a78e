from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Row
from opchain.compiler.table.connectors.datagen import datagen_of
from opchain.runtime.columnar.spark_types import SparkField, SparkType, decimal_type, struct_type
from opchain.runtime.errors import UnsupportedFeatureError


def columns(**types: SparkType) -> SparkType:
    return struct_type([SparkField(name, of) for name, of in types.items()])


def rows(options: dict[str, str], **types: SparkType) -> list[Any]:
    source = datagen_of(options, columns(**types))
    return [
        row for split in source.splits(1)[0] for batch in source.read(split, 10) for row in batch
    ]


def test_datagen_options_find_columns_in_any_case() -> None:
    options = {"fields.id.kind": "sequence", "fields.id.start": "3", "fields.id.end": "5"}
    assert rows(options, Id=SparkType("long")) == [Row(Id=3), Row(Id=4), Row(Id=5)]


@pytest.mark.parametrize(
    "of", ["boolean", "byte", "short", "integer", "long", "float", "double", "string"]
)
def test_the_datagen_format_generates_these_types(of: str) -> None:
    made = rows({"number-of-rows": "2"}, x=SparkType(of))
    assert len({type(row.x) for row in made}) == 1
    assert len(rows({"number-of-rows": "2"}, x=decimal_type(9, 2))) == 2


def test_rows_per_second_limits_the_rate_of_the_datagen_format() -> None:
    of = columns(x=SparkType("long"))
    assert datagen_of({"number-of-rows": "2"}, of).records_per_second is None
    paced = datagen_of({"number-of-rows": "2", "rows-per-second": "5"}, of)
    assert paced.records_per_second == 5


def test_the_datagen_format_refuses_other_types() -> None:
    with pytest.raises(
        UnsupportedFeatureError, match="cannot generate the column 'd' of type date"
    ):
        datagen_of({}, columns(d=SparkType("date")))
