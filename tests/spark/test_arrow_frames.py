from __future__ import annotations

import pickle

from opchain.runtime.program.vertex_program import ARROW_SINK, DRIVER
from opchain.runtime.records.elements import Buffer
from opchain.runtime.spark.dataframes import BatchesOfSink, FramesForDriver, batches_of_frames
from opchain.runtime.spark.exchange import to_frame

REPORT = Buffer(DRIVER, 0, 7, 0, b"report")
OF_SINK_3 = Buffer(ARROW_SINK, 3, 5, 0, b"batch of operator 3, task 5")
OF_SINK_4 = Buffer(ARROW_SINK, 4, 5, 0, b"batch of operator 4, task 5")
OF_OTHER_VERTEX = Buffer(ARROW_SINK, 3, 9, 0, b"batch of operator 3, task 9")
FRAMES = [to_frame(buffer) for buffer in (REPORT, OF_SINK_3, OF_SINK_4, OF_OTHER_VERTEX)]


def test_the_driver_gets_only_reports_and_no_batches() -> None:
    assert list(FramesForDriver()(FRAMES)) == [to_frame(REPORT)]


def test_a_sink_gets_the_batches_of_its_operator_and_tasks() -> None:
    select = pickle.loads(pickle.dumps(BatchesOfSink(range(4, 6), 3)))
    assert list(select(FRAMES)) == [b"batch of operator 3, task 5"]


def test_a_dataframe_gets_only_batches() -> None:
    passing = [to_frame(REPORT), REPORT, OF_SINK_3]
    assert list(batches_of_frames(passing)) == [b"batch of operator 3, task 5"]
