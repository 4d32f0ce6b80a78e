"""DataFrameSource, with a stand-in for a DataFrame that has nothing but a schema."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from forms import job_of

from opchain.common import Row, Types, WatermarkStrategy
from opchain.runtime.connectors.dataframe_source import DataFrameSource, SparkRows
from opchain.runtime.errors import GraphError, InternalError, UnsupportedFeatureError

SCHEMA = {
    "type": "struct",
    "fields": [{"name": "word", "type": "string", "nullable": True, "metadata": {}}],
}


def dataframe(**changes: Any) -> Any:
    facts: dict[str, Any] = {
        "schema": SimpleNamespace(jsonValue=lambda: SCHEMA),
        "isStreaming": False,
        "_jdf": None,
        "sparkSession": SimpleNamespace(sparkContext="the context"),
    }
    return SimpleNamespace(**{**facts, **changes})


def chunk(words: list[str | None], of: Any) -> bytes:
    batch = pa.record_batch([pa.array(words, of)], names=["word"])
    return bytes(batch.serialize().to_pybytes())


@pytest.mark.parametrize(("of", "is_large"), [(pa.string(), False), (pa.large_string(), True)])
def test_arrow_chunks_become_rows_in_batches(of: Any, is_large: bool) -> None:
    source = pickle.loads(pickle.dumps(DataFrameSource(dataframe())))
    feed = SparkRows(json.dumps(SCHEMA), [chunk(["a", None, "c"], of), chunk(["d"], of)], is_large)
    batches = list(source.read(feed, 2))
    assert batches == [
        [Row(word="a"), Row(word=None)],
        [Row(word="c")],
        [Row(word="d")],
    ]


def test_generated_code_reads_rows_field_by_field() -> None:
    def draw(env: Any) -> None:
        rows = env.from_source(
            DataFrameSource(dataframe()), WatermarkStrategy.no_watermarks(), "rows"
        )
        rows.map(lambda row: row.word.upper()).print()

    code = job_of(draw).vertices[0].source
    assert code is not None
    assert "for field_0 in values.rows():" in code
    assert "field_0.upper()" in code


def test_rows_have_the_types_of_the_columns() -> None:
    source = DataFrameSource(dataframe())
    assert source.get_produced_type() == Types.ROW_NAMED(["word"], [Types.STRING()])
    assert repr(source) == "DataFrameSource(word)"


def test_the_dataframe_is_not_pickled() -> None:
    given = dataframe(something="that pickle refuses: " + repr(lambda: None))
    assert "something" not in repr(DataFrameSource(given).__getstate__())
    session = SimpleNamespace(sparkContext="the context")
    assert DataFrameSource(given).dataframe(session) is given


def test_a_dataframe_of_a_stopped_spark_context_is_refused() -> None:
    session = SimpleNamespace(sparkContext="another context")
    with pytest.raises(GraphError, match="belongs to a SparkContext that was stopped"):
        DataFrameSource(dataframe()).dataframe(session)


def test_dataframe_source_creates_no_splits() -> None:
    with pytest.raises(InternalError, match="does not create splits"):
        DataFrameSource(dataframe()).splits(2)


def test_an_object_that_is_not_a_dataframe_is_refused() -> None:
    for given in (5, None, "select 1"):
        with pytest.raises(GraphError, match="is not a Spark DataFrame"):
            DataFrameSource(given)


def test_a_dataframe_of_spark_connect_is_refused() -> None:
    given = dataframe()
    del given._jdf
    with pytest.raises(UnsupportedFeatureError, match="Spark Connect, which has no RDDs"):
        DataFrameSource(given)
