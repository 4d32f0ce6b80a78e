from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.operators.async_wait.queues import QueuedMark, QueuedRecord


@pytest.mark.parametrize("results", [[], ["x"], ["x", "y"]])
def test_a_record_emits_its_results_with_its_timestamp(results: list[str]) -> None:
    record = QueuedRecord("in", 7)
    assert not record.is_done
    record.results = results
    assert record.is_done
    emitted: list[Any] = []
    record.emit(lambda value, timestamp: emitted.append((value, timestamp)))
    assert emitted == [(result, 7) for result in results]


def test_a_watermark_is_complete_from_the_start() -> None:
    passed: list[str] = []
    mark = QueuedMark(lambda: passed.append("watermark"))
    assert mark.is_done
    mark.emit(lambda value, timestamp: passed.append("record"))
    assert passed == ["watermark"]
