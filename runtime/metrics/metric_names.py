"""Flink's names of what operators and tasks count. Flink: `MetricNames`."""

from __future__ import annotations

NUM_RECORDS_IN = "numRecordsIn"
NUM_RECORDS_OUT = "numRecordsOut"
NUM_BYTES_IN = "numBytesIn"
NUM_BYTES_OUT = "numBytesOut"
NUM_BUFFERS_IN = "numBuffersIn"
NUM_BUFFERS_OUT = "numBuffersOut"
PER_SECOND = "PerSecond"
"""Ends the name of the rate of a count."""

CURRENT_INPUT_WATERMARK = "currentInputWatermark"
CURRENT_OUTPUT_WATERMARK = "currentOutputWatermark"

BUSY_TIME = "busyTimeMsPerSecond"
IDLE_TIME = "idleTimeMsPerSecond"
BACK_PRESSURED_TIME = "backPressuredTimeMsPerSecond"

MAILBOX_MAILS = "mailboxMailsPerSecond"
MAILBOX_LATENCY = "mailboxLatencyMs"

LATENCY = "latency"
"""Time that latency markers took from a source; one histogram for each source operator."""

NUM_LATE_RECORDS_DROPPED = "numLateRecordsDropped"
"""Registered in the group of each window operator. Flink: `WindowOperator`."""


def input_watermark_name(number: int) -> str:
    """The name of the watermark of one of several inputs, `number` counting from 0.

    >>> input_watermark_name(0)
    'currentInput1Watermark'
    """
    return f"currentInput{number + 1}Watermark"
