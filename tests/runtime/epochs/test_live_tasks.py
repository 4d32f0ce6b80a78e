from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from epoch_runs import EpochRun, given
from forms import seen

from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction, ProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.epochs.live_tasks import live_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


class Opened(ProcessFunction[int, int]):
    """Emits how many records it has seen since it was opened, which no checkpoint contains."""

    def open(self, runtime_context: Any) -> None:
        self.seen = 0

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        self.seen += 1
        yield self.seen


def draw(env: Any) -> None:
    seen(given(env, "numbers").process(Opened()), "seen")


def test_a_task_stays_open_while_its_checkpoint_is_the_latest(tmp_path: Path) -> None:
    run = EpochRun(draw, tmp_path)
    assert run.run(numbers=[5, 5]).records("seen") == [1, 2]
    assert run.run(numbers=[5]).records("seen") == [3]
    run.close()


def test_a_task_at_another_checkpoint_is_rebuilt(tmp_path: Path) -> None:
    run = EpochRun(draw, tmp_path)
    run.run(numbers=[5])
    before = run.latest
    assert run.run(numbers=[5]).records("seen") == [2]
    # The second epoch was never completed, so a rebuilt task runs it again.
    run.latest = before
    assert run.run(numbers=[5]).records("seen") == [1]
    run.close()


def test_tasks_of_one_run_are_kept_and_those_of_other_runs_are_dropped() -> None:
    first = live_tasks("first")
    assert live_tasks("first") is first
    assert live_tasks("second") is not first
    assert live_tasks("first") is not first


class Ended:
    """A task that records that it was closed, and may fail at it."""

    def __init__(self, number: int, notes: list[int], *, fails: bool = False) -> None:
        self.info = SimpleNamespace(task=number)
        self.notes = notes
        self.fails = fails

    def close(self) -> None:
        self.notes.append(self.info.task)
        if self.fails:
            raise ZeroDivisionError


def test_tasks_of_a_finished_run_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    notes: list[int] = []
    tasks: list[Any] = [Ended(number, notes, fails=number == 2) for number in (1, 2, 3)]
    before = live_tasks("over")
    for task in tasks:
        before.keep(task)
    assert live_tasks("over") is before
    assert notes == []
    live_tasks("next")
    assert sorted(notes) == [1, 2, 3]
    assert "a task of a job that has ended could not be closed" in caplog.text


class Counting(KeyedProcessFunction[str, str, tuple[str, int, int]]):
    """Counts the records of a key in state, and those since it was opened in memory."""

    def open(self, runtime_context: Any) -> None:
        self.here = 0
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Iterator[tuple[str, int, int]]:
        self.here += 1
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value(), self.here


def counted(env: Any) -> None:
    seen(given(env, "words").key_by(lambda word: word).process(Counting()), "counts")


def test_a_task_that_ran_in_another_process_reads_the_changes_without_reopening(
    tmp_path: Path,
) -> None:
    run = EpochRun(counted, tmp_path, processes=2)
    # Enough records that no new base file is written, since only the writing process would know it.
    run.run(words=[f"word {number}" for number in range(500)])
    last = []
    for process in (0, 1, 1, 0, 0, 1):
        run.process_of = lambda _, process=process: process  # type: ignore[misc]
        last.append(run.run(words=["a", "b", "a"]).records("counts")[-1])
    in_state, since_opened = [count for _, count, _ in last], [here for _, _, here in last]
    assert in_state == [2, 4, 6, 8, 10, 12]
    assert since_opened == [503, 3, 6, 506, 509, 9]
    run.close()
