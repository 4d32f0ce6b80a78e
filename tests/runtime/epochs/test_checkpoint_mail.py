"""A checkpoint is mail of the task, and so is the notification that it completed or was aborted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen

from opchain.datastream.functions import CheckpointListener, KeyedProcessFunction, MapFunction
from opchain.runtime.epochs.epoch_task import EpochTask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.runtime.checkpoint.epoch import Epoch


class Heard(MapFunction[Any, Any], CheckpointListener):
    """Emits each record with the notifications before it."""

    def open(self, runtime_context: Any) -> None:
        self.heard: list[tuple[str, int]] = []

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.heard.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.heard.append(("aborted", checkpoint_id))

    def map(self, value: Any) -> Any:
        return value, tuple(self.heard)


class KeyedHeard(KeyedProcessFunction[Any, Any, Any], CheckpointListener):
    def open(self, runtime_context: Any) -> None:
        self.heard: list[int] = []

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.heard.append(checkpoint_id)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, tuple(self.heard)


def heard(env: Any) -> None:
    numbers = given(env, "numbers")
    seen(numbers.map(Heard()), "heard")
    seen(numbers.key_by(lambda value: value).process(KeyedHeard()), "keyed")


def test_functions_are_notified_of_a_checkpoint_before_the_next_record(tmp_path: Path) -> None:
    run = EpochRun(heard, tmp_path)
    assert run.run(numbers=[1]).records("heard") == [(1, ())]
    ran = run.run(numbers=[2])
    assert ran.records("heard") == [(2, (("complete", 1),))]
    assert ran.records("keyed") == [(2, (1,))]
    ran = run.run(numbers=[3])
    assert ran.records("heard") == [(3, (("complete", 1), ("complete", 2)))]
    assert ran.records("keyed") == [(3, (1, 2))]
    run.close()


def test_an_epoch_that_is_run_again_notifies_of_its_aborted_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = EpochRun(heard, tmp_path)
    run.run(numbers=[1])
    begin = EpochTask.run_epoch
    monkeypatch.setattr(
        EpochTask,
        "run_epoch",
        lambda task, epoch, *others: begin(task, replace(epoch, aborted=(2, 2)), *others),
    )
    (record,) = run.run(numbers=[2]).records("heard")
    assert record == (2, (("aborted", 2), ("aborted", 2), ("complete", 1)))
    run.close()


class FailsToListen(Heard):
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        raise ValueError(f"can't take checkpoint {checkpoint_id}")


def test_an_error_in_notify_checkpoint_complete_fails_the_task(tmp_path: Path) -> None:
    run = EpochRun(lambda env: seen(given(env, "numbers").map(FailsToListen()), "out"), tmp_path)
    run.run(numbers=[1])
    with pytest.raises(ValueError, match="can't take checkpoint 1"):
        run.run(numbers=[2])
    run.close()


def test_the_checkpoint_is_mail_whose_future_completes_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran_before: list[bool] = []
    checkpoints: list[Any] = []
    trigger = EpochTask.trigger_checkpoint

    def noted(task: EpochTask, epoch: Epoch, *others: Any) -> Any:
        executor = task.processor.mailbox_executor()
        executor.execute(lambda: ran_before.append(checkpoints[-1].done()), "before")
        checkpoints.append(trigger(task, epoch, *others))
        assert task.state is None or task.state.checkpoint_id < epoch.checkpoint_id
        return checkpoints[-1]

    monkeypatch.setattr(EpochTask, "trigger_checkpoint", noted)
    run = EpochRun(lambda env: seen(given(env, "numbers"), "out"), tmp_path)
    for number in (1, 2):
        ran = run.run(numbers=[number])
        assert ran.records("out") == [number]
        assert ran_before == [False] * number
        assert [future.done() for future in checkpoints] == [True] * number
        (vertex,) = ran.outcome.metrics.vertices
        assert vertex.mails >= 2
        assert vertex.longest_mail_queue >= 2
    run.close()
