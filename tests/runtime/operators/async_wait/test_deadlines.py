from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService
from opchain.runtime.operators.async_wait.calls import Deadlines
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_MS = 10


class Bench:
    """Deadlines on a manual clock; `due` has the items with the times at which they were due."""

    def __init__(self) -> None:
        self.processor = MailboxProcessor(lambda controller: None)
        self.executor = self.processor.mailbox_executor(0)
        self.clock = ManualClock()
        self.service = ProcessingTimeService(self.clock, self.executor)
        self.due: list[tuple[str, int]] = []
        self.deadlines: Deadlines[str] = Deadlines(self.service, TIMEOUT_MS, self._on_due)

    def _on_due(self, item: str) -> None:
        self.due.append((item, self.clock.current_processing_time()))

    def advance(self, by_ms: int) -> None:
        for _ in range(by_ms):
            self.clock.advance(1)
            while self.executor.try_yield():
                pass


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.processor.close()


def test_an_item_is_due_when_its_timeout_is_over(bench: Bench) -> None:
    bench.deadlines.add("a")
    bench.advance(TIMEOUT_MS - 1)
    assert bench.due == []
    bench.advance(1)
    assert bench.due == [("a", TIMEOUT_MS)]
    assert len(bench.deadlines) == 0
    assert bench.clock.waiting_calls == 0


def test_a_removed_item_is_never_due(bench: Bench) -> None:
    bench.deadlines.add("a")
    bench.advance(3)
    bench.deadlines.add("b")
    bench.deadlines.remove("a")
    bench.deadlines.remove("a")
    bench.advance(2 * TIMEOUT_MS)
    assert bench.due == [("b", 3 + TIMEOUT_MS)]


def test_one_timer_serves_all_items(bench: Bench) -> None:
    for item in "abc":
        bench.deadlines.add(item)
        bench.advance(1)
    assert bench.clock.waiting_calls == 1
    bench.deadlines.clear()
    assert bench.clock.waiting_calls == 0


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 15)), max_size=20),
)
def test_each_item_is_due_exactly_at_its_time(items: list[tuple[int, int]]) -> None:
    """Items are added every `gap` ms and removed after `lifetime` ms unless they were due before."""
    bench = Bench()
    removals: dict[int, list[str]] = {}
    expected = []
    now = 0
    comings: dict[int, list[str]] = {}
    for number, (gap, lifetime) in enumerate(items):
        now += gap
        comings.setdefault(now, []).append(f"item {number}")
        removals.setdefault(now + lifetime, []).append(f"item {number}")
        if lifetime >= TIMEOUT_MS:
            expected.append((f"item {number}", now + TIMEOUT_MS))
    for instant in range(now + 2 * TIMEOUT_MS + 16):
        for item in comings.get(instant, []):
            bench.deadlines.add(item)
        for item in removals.get(instant, []):
            bench.deadlines.remove(item)
        bench.advance(1)
    bench.processor.close()
    assert bench.due == sorted(expected, key=lambda pair: (pair[1], int(pair[0].split()[1])))
