from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epoch_runs import EpochRun, given
from forms import seen
from opchain.datastream.functions import ProcessFunction
from opchain.runtime.epochs.live_tasks import live_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Opened(ProcessFunction[int, int]):
    """Emits how many records it has seen since it was opened: what no checkpoint keeps."""

    def open(self, runtime_context: Any) -> None:
        self.seen = 0

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        self.seen += 1
        yield self.seen


def draw(env: Any) -> None:
    seen(given(env, "numbers").process(Opened()), "seen")


def test_a_task_stays_open_while_its_checkpoint_is_the_last(tmp_path: Path) -> None:
    run = EpochRun(draw, tmp_path)
    assert run.run(numbers=[5, 5]).records("seen") == [1, 2]
    assert run.run(numbers=[5]).records("seen") == [3]
    run.close()


def test_a_task_of_another_checkpoint_is_made_anew(tmp_path: Path) -> None:
    run = EpochRun(draw, tmp_path)
    run.run(numbers=[5])
    before = run.latest
    assert run.run(numbers=[5]).records("seen") == [2]
    # The second epoch was never completed: it is run again, by a task that has seen nothing of it.
    run.latest = before
    assert run.run(numbers=[5]).records("seen") == [1]
    run.close()


def test_the_tasks_of_one_run_are_kept_and_those_of_others_dropped() -> None:
    first = live_tasks("first")
    assert live_tasks("first") is first
    assert live_tasks("second") is not first
    assert live_tasks("first") is not first
