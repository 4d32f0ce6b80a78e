from __future__ import annotations

import json
import pickle
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from opchain.common import Types
from opchain.runtime.columnar.spark_types import SparkType, arrow_schema, struct_type
from opchain.runtime.connectors.arrow_sink import DataFrameSink
from opchain.runtime.errors import GraphError, InternalError

ROW = Types.ROW_NAMED(["n"], [Types.LONG()])
COLUMNS = SparkType.read(
    {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]}
)


def test_the_declared_type_is_the_schema_if_none_is_given() -> None:
    assert DataFrameSink().for_type(ROW).schema_json == COLUMNS.to_json()
    assert DataFrameSink("n int").for_type(ROW).schema == "n int"
    assert DataFrameSink().schema_json is None
    assert DataFrameSink("n int").schema_json is None
    assert DataFrameSink(struct_type([])).schema_json == {"type": "struct", "fields": []}


def test_a_type_without_columns_is_refused() -> None:
    with pytest.raises(GraphError, match="which has no columns"):
        DataFrameSink().for_type(Types.PICKLED_BYTE_ARRAY())


def test_batches_are_sent_in_the_format_that_spark_reads() -> None:
    sent: list[bytes] = []
    sink = pickle.loads(pickle.dumps(DataFrameSink(COLUMNS)))
    writer = sink.arrow_writer(json.dumps(COLUMNS.to_json()), "'Sink'", sent.append)
    writer.write_batch([(1,), (2,)], None)
    writer.write((3,), 7)
    read = [pa.ipc.read_record_batch(pa.py_buffer(batch), arrow_schema(COLUMNS)) for batch in sent]
    assert [batch.column(0).to_pylist() for batch in read] == [[1, 2], [3]]


def test_dataframe_sink_creates_no_writer_in_process() -> None:
    context: Any = SimpleNamespace(get_index_of_this_subtask=lambda: 0)
    with pytest.raises(InternalError, match="was asked for a writer of subtask"):
        DataFrameSink().create_writer(context)
