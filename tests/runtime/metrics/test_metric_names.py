from __future__ import annotations

import pytest

from opchain.runtime.metrics import metric_group as metric_names


@pytest.mark.parametrize(
    ("name", "flinks"),
    [
        ("NUM_RECORDS_IN", "numRecordsIn"),
        ("NUM_RECORDS_OUT", "numRecordsOut"),
        ("NUM_BYTES_IN", "numBytesIn"),
        ("NUM_BYTES_OUT", "numBytesOut"),
        ("NUM_BUFFERS_IN", "numBuffersIn"),
        ("NUM_BUFFERS_OUT", "numBuffersOut"),
        ("CURRENT_INPUT_WATERMARK", "currentInputWatermark"),
        ("CURRENT_OUTPUT_WATERMARK", "currentOutputWatermark"),
        ("BUSY_TIME", "busyTimeMsPerSecond"),
        ("IDLE_TIME", "idleTimeMsPerSecond"),
        ("BACK_PRESSURED_TIME", "backPressuredTimeMsPerSecond"),
        ("MAILBOX_MAILS", "mailboxMailsPerSecond"),
        ("MAILBOX_LATENCY", "mailboxLatencyMs"),
        ("MAILBOX_QUEUE", "mailboxQueueSize"),
        ("NUM_LATE_RECORDS_DROPPED", "numLateRecordsDropped"),
    ],
)
def test_the_names_are_those_of_flink(name: str, flinks: str) -> None:
    assert getattr(metric_names, name) == flinks


def test_inputs_are_numbered_from_1() -> None:
    assert metric_names.input_watermark_name(1) == "currentInput2Watermark"
