from __future__ import annotations

import io
import pickle
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from opchain.runtime.columnar.spark_types import SparkField, SparkType, struct_type
from opchain.runtime.connectors.arrow_sink import ColumnFileSink, ColumnWriters
from opchain.runtime.errors import RecordSchemaError

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = struct_type(
    [SparkField("word", SparkType("string")), SparkField("n", SparkType("integer"))]
)


def test_a_file_is_visible_once_it_is_committed(tmp_path: Path) -> None:
    sink = pickle.loads(pickle.dumps(ColumnFileSink(str(tmp_path / "out"), COLUMNS, "'counts'")))
    context: Any = SimpleNamespace(get_index_of_this_subtask=lambda: 3)
    writer = sink.create_writer(context)
    writer.write_batch([("a", 1), {"word": None, "n": 2}], None)
    writer.flush(end_of_input=False)
    committables = writer.prepare_commit()
    (staging,) = (tmp_path / "out").iterdir()
    assert staging.name == ".opchain"
    for _ in range(2):
        sink.create_committer().commit(committables)
        (file,) = (tmp_path / "out").iterdir()
        assert re.fullmatch(r"part-0003[0-9a-f-]{32}-0\.parquet", file.name)
    assert pq.read_table(file).to_pydict() == {"word": ["a", None], "n": [1, 2]}
    writer.flush(end_of_input=True)
    assert writer.prepare_commit() == []  # without records no file is written


def test_records_that_are_single_values_become_one_column() -> None:
    stream = io.BytesIO()
    writer = ColumnWriters(SparkType("long"), "'numbers'").create(stream)
    writer.add_batch([1, None])
    writer.finish()
    assert pq.read_table(stream).to_pydict() == {"value": [1, None]}


def test_the_error_names_a_record_that_does_not_fit() -> None:
    writer = ColumnWriters(COLUMNS, "'counts' (clicks.py:3)").create(io.BytesIO())
    writer.add_element(("a", "b"))
    with pytest.raises(RecordSchemaError, match=r"'counts' \(clicks.py:3\): column 'n' got 'b'"):
        writer.flush()
