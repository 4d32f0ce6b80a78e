"""Sources of opchain as data sources of Spark, without a job of opchain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import opchain.spark
from opchain.common import Row
from opchain.runtime.connectors.collection import CollectionSource
from opchain.runtime.connectors.data_generator import DataGeneratorSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def registered(session: SparkSession) -> None:
    opchain.spark.register(session)


def test_a_sequence_is_read(session: SparkSession) -> None:
    numbers = session.read.format("opchain-sequence").options(start=5, end=11, partitions=3).load()
    assert numbers.schema.simpleString() == "struct<value:bigint>"
    assert numbers.rdd.getNumPartitions() == 3
    assert [row.value for row in numbers.collect()] == list(range(5, 12))


def test_generated_data_does_not_depend_on_the_number_of_partitions(session: SparkSession) -> None:
    def rows(partitions: int) -> list[Any]:
        reader = session.read.format("opchain-datagen").schema(
            "Id bigint, word string, price decimal(8,2), ok boolean"
        )
        options = {
            "number-of-rows": "20",
            "fields.Id.kind": "sequence",
            "fields.Id.start": "7",
            "fields.Id.end": "99",
            "fields.word.length": "5",
            "fields.price.null-rate": "0.5",
            "partitions": str(partitions),
        }
        return reader.options(**options).load().orderBy("Id").collect()

    one = rows(1)
    assert [row.Id for row in one] == list(range(7, 27))
    assert {len(row.word) for row in one} == {5}
    assert 0 < sum(row.price is None for row in one) < 20
    assert rows(4) == one


@pytest.mark.parametrize(
    ("name", "schema", "options", "said"),
    [
        ("opchain-sequence", None, {"start": 1}, "missing: end"),
        ("opchain-sequence", None, {"start": 1, "end": 2, "step": 3}, "unknown: step"),
        ("opchain-sequence", None, {"start": 1, "end": 2, "partitions": 0}, "must be at least 1"),
        ("opchain-datagen", None, {}, "needs a schema: set it with spark.read.schema"),
        ("opchain-datagen", "d date", {"number-of-rows": 1}, "cannot generate the column 'd'"),
        ("opchain-datagen", "n int", {}, "is unbounded, but spark.read needs a bounded source"),
    ],
)
def test_sources_that_spark_cannot_read_are_refused(
    session: SparkSession, name: str, schema: str | None, options: dict[str, Any], said: str
) -> None:
    reader = session.read.format(name).options(**options)
    with pytest.raises(Exception, match=said):
        (reader if schema is None else reader.schema(schema)).load().collect()


def test_a_users_source_is_read(session: SparkSession) -> None:
    records = [Row(id=1, tags=["a"]), Row(id=2, tags=None)]
    source = CollectionSource(records)
    opchain.spark.register_source(session, "mine", source, "id int, tags array<string>")
    read = session.read.format("mine").load().orderBy("id").collect()
    assert [(row.id, row.tags) for row in read] == [(1, ["a"]), (2, None)]
    with pytest.raises(Exception, match="has no options, got size"):
        session.read.format("mine").option("size", 3).load().collect()


def test_records_that_are_not_rows_are_read_as_one_column(session: SparkSession) -> None:
    opchain.spark.register_source(session, "texts", DataGeneratorSource(str, 5), "text string")
    assert [row.text for row in session.read.format("texts").load().collect()] == list("01234")
