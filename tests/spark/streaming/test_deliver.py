from __future__ import annotations

import json
from typing import Any

import pytest

from opchain.runtime.program.vertex_program import StageProgram
from opchain.runtime.spark.exchange import from_frame
from opchain.runtime.spark.remote_error import ErrorSeal
from opchain.runtime.spark.streaming.epoch_stages import Deliver

pa = pytest.importorskip("pyarrow")
COLUMNS = {"source": ("integer", pa.int32()), "subtask": ("integer", pa.int32())}
COLUMNS["data"] = ("binary", pa.binary())


def delivered(*rows: tuple[int, int, bytes]) -> list[tuple[int, bytes]]:
    """The tasks and payloads of the splits of a micro-batch with two sources of two subtasks."""
    fields: list[dict[str, Any]] = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, (kind, _) in COLUMNS.items()
    ]
    arrays = [
        pa.array(column, kind)
        for column, (_, kind) in zip(zip(*rows, strict=True), COLUMNS.values(), strict=True)
    ]
    chunk = pa.record_batch(arrays, list(COLUMNS)).serialize().to_pybytes()
    stage = StageProgram(0, range(4), (0, 1), ((0,), (1,), (2,), (3,)))
    columns = json.dumps({"type": "struct", "fields": fields})
    deliver = Deliver(columns, ((0, 2), (2, 2)), stage, has_large_types=False, seal=ErrorSeal())
    frames = list(deliver(0, [chunk]))[1::2]
    return [(buffer.target, buffer.payload) for buffer in map(from_frame, frames)]


def test_each_split_is_delivered_to_the_task_of_its_source() -> None:
    """Splits of several sources are in one batch."""
    found = delivered((0, 0, b"a"), (0, 1, b"b"), (1, 0, b"c"), (1, 1, b"d"), (0, 1, b"e"))
    assert found == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"), (1, b"e")]
