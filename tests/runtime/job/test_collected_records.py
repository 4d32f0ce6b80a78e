from __future__ import annotations

import threading
from typing import Any

from opchain.runtime.job.run import CollectedRecords


def put(records: CollectedRecords, **found: list[Any]) -> None:
    for uid, values in found.items():
        records.put(uid, values)


def test_records_are_read_epoch_by_epoch_until_the_job_ends() -> None:
    records = CollectedRecords()
    put(records, a=[1, 2], b=["x"])
    put(records, a=[3], b=[])
    records.end()
    assert list(records.read("a")) == [1, 2, 3]
    assert list(records.read("b")) == ["x"]
    assert list(records.read("c")) == []


def test_a_reader_gets_records_before_the_job_ends() -> None:
    records = CollectedRecords()
    reading = records.read("a")
    threading.Thread(target=put, args=(records,), kwargs={"a": [1]}).start()
    assert next(reading) == 1
    records.end()
    assert list(reading) == []


def test_the_job_waits_for_a_slow_reader() -> None:
    records = CollectedRecords(1)
    put(records, a=[1])
    second = threading.Thread(target=put, args=(records,), kwargs={"a": [2]})
    second.start()
    reading = records.read("a")
    assert [next(reading), next(reading)] == [1, 2]
    second.join(240)
    assert not second.is_alive()


def test_a_job_that_ends_does_not_wait_for_readers() -> None:
    records = CollectedRecords(1)
    put(records, a=[1])
    waiting = threading.Thread(target=put, args=(records,), kwargs={"a": [2]})
    waiting.start()
    records.end()
    waiting.join(240)
    assert not waiting.is_alive()
    assert list(records.read("a")) == [1]
