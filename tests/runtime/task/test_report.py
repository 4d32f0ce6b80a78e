from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.errors import UnpicklableRecordError, WireFormatError
from opchain.runtime.measurements.task_metrics import TaskMetrics
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.program.vertex_program import DRIVER
from opchain.runtime.records.wire import PayloadKind, kind_of
from opchain.runtime.task.report import (
    ITEMS_PER_BUFFER,
    DriverChannel,
    TaskReport,
    read_items,
    read_records,
    record_key,
)

if TYPE_CHECKING:
    from opchain.runtime.records.elements import Buffer


HISTOGRAM = HistogramValue()
REPORT = TaskReport(7, "attempt", TaskMetrics(0, 0, *[0] * 9, True, 0, HISTOGRAM, ()))


def channel() -> tuple[DriverChannel, list[Buffer]]:
    sent: list[Buffer] = []
    return DriverChannel(7, sent.append), sent


def test_acknowledgements_are_sent_before_the_report_and_apart_from_records() -> None:
    driver, sent = channel()
    driver.send(("commit", 1, "file a"))
    driver.send(("collect", "sink", [1, 2]))
    driver.send(("print", False, ["a line"]))
    driver.send(("collect", "sink", [3]))
    driver.finish(REPORT)
    assert [(buffer.target, buffer.channel, buffer.sequence) for buffer in sent] == [
        (DRIVER, 7, number) for number in range(3)
    ]
    assert [kind_of(buffer.payload) for buffer in sent] == [
        PayloadKind.RECORDS,
        PayloadKind.RECORDS,
        PayloadKind.REPORT,
    ]
    assert record_key(sent[0]) == ("collect", "sink")
    assert read_records(sent[0]) == [1, 2, 3]
    assert record_key(sent[1]) == ("print", False)
    assert read_records(sent[1]) == ["a line"]
    assert read_items(sent[2]) == [("commit", 1, "file a"), REPORT]


def test_many_items_are_sent_in_several_buffers() -> None:
    driver, sent = channel()
    for number in range(ITEMS_PER_BUFFER + 1):
        driver.send(("commit", 0, number))
    driver.send(("collect", "sink", list(range(ITEMS_PER_BUFFER))))
    assert len(sent) == 2
    driver.finish(REPORT)
    commits = [item for buffer in (sent[0], sent[2]) for item in read_items(buffer)]
    assert [value for _, _, value in commits[:-1]] == list(range(ITEMS_PER_BUFFER + 1))
    assert read_records(sent[1]) == list(range(ITEMS_PER_BUFFER))


def test_the_error_names_a_record_that_cannot_be_pickled() -> None:
    driver, _ = channel()
    driver.send(("collect", "sink", ["fine", threading.Lock()]))
    with pytest.raises(UnpicklableRecordError, match=r"the record <unlocked _thread.lock"):
        driver.flush()


def test_records_are_not_mistaken_for_a_report() -> None:
    driver, sent = channel()
    driver.send(("collect", "sink", [1]))
    driver.flush()
    with pytest.raises(WireFormatError, match="kind 3, expected kind 2"):
        read_items(sent[0])


@pytest.mark.parametrize("payload", [b"", b"OPCH", bytes(5)])
def test_a_payload_that_is_too_short_has_no_kind(payload: bytes) -> None:
    assert kind_of(payload) == 0


def test_flushing_without_items_sends_no_buffer() -> None:
    driver, sent = channel()
    driver.flush()
    assert sent == []


def test_records_are_copied_when_they_are_sent() -> None:
    driver, sent = channel()
    records = [1]
    driver.send(("collect", "sink", records))
    records.append(2)
    driver.flush()
    assert read_records(sent[0]) == [1]
