"""CheckpointCoordinator on real files: the life of a checkpoint, and several competing coordinators."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.checkpoint import coordinator as coordinator_module
from opchain.runtime.checkpoint.coordinator import (
    CheckpointCoordinator,
    DeclineReason,
)
from opchain.runtime.checkpoint.epoch_files import (
    completed_checkpoints,
    fence_document,
    metadata_name,
)
from opchain.runtime.checkpoint.metadata import (
    Committable,
    EpochInput,
    OperatorMetadata,
    TaskMetadata,
    read_metadata,
)
from opchain.runtime.checkpoint.state_files import TaskState, write_task_state
from opchain.runtime.checkpoint.storage import CheckpointStorage, checkpoint_storage
from opchain.runtime.errors import CheckpointError, CheckpointInUseError, CorruptCheckpointError
from opchain.runtime.state.operator_snapshot import OperatorSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata

OPERATOR = "a" * 32
OPERATORS = (OperatorMetadata(OPERATOR, "count", "job.py:3", 0, 2, 128, is_keyed=True),)


@pytest.fixture
def coordinator(storage: CheckpointStorage) -> Iterator[CheckpointCoordinator]:
    found = open_(storage)
    yield found
    found.close()


def open_(storage: CheckpointStorage, run_id: str = "run-1", **settings: Any) -> Any:
    settings = {"keeps_alive": False, **settings}
    return CheckpointCoordinator.open(storage, "clicks", run_id, **settings)


class Tasks:
    """Two tasks that write a byte of state each epoch, a base every `base_every` epochs."""

    def __init__(self, storage: CheckpointStorage, base_every: int = 3) -> None:
        self.storage, self.base_every = storage, base_every
        self.states: list[TaskState | None] = [None, None]

    def write(self, epoch: int) -> list[TaskState]:
        for task, previous in enumerate(self.states):
            is_changes = previous is not None and len(previous.files) < self.base_every
            snapshot = OperatorSnapshot({task: b"%d" % epoch}, is_changes=is_changes)
            self.states[task] = write_task_state(
                self.storage, epoch, task, "0", {OPERATOR: snapshot}, previous
            )
        return [state for state in self.states if state is not None]


def run_epoch(coordinator: CheckpointCoordinator, tasks: Tasks, epoch: int) -> CheckpointMetadata:
    pending = coordinator.begin(epoch, [0, 1])
    for state in tasks.write(epoch):
        pending.acknowledge(TaskMetadata(state.task, "v", state.task, state, b"event time"))
    return coordinator.complete(pending, OPERATORS)


def test_a_checkpoint_completes_when_all_tasks_have_acknowledged(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator
) -> None:
    pending = coordinator.begin(4, [0, 1])
    first, second = Tasks(storage).write(4)
    prepared = Committable("c" * 32, 1, b"file-1")
    pending.acknowledge(TaskMetadata(1, "v", 1, second, b"event time"))
    assert pending.missing == [0]
    with pytest.raises(CheckpointError, match=r"of 2 tasks, 1 have not acknowledged \(0\)"):
        coordinator.complete(pending, OPERATORS)
    assert completed_checkpoints(storage) == []
    pending.acknowledge(TaskMetadata(0, "v", 0, first))
    epoch_input = EpochInput(batch=3, clock_ms=17)
    metadata = coordinator.complete(
        pending, OPERATORS, epoch_input=epoch_input, committables=[prepared], plan={"a": 1}
    )
    assert coordinator.latest() == metadata == read_metadata(storage, 4)
    assert [task.event_time for task in metadata.tasks] == [b"", b"event time"]
    assert metadata.committables == (prepared,)
    assert metadata.input == epoch_input
    assert (metadata.run_id, metadata.job_name, metadata.plan) == ("run-1", "clicks", {"a": 1})
    assert metadata.tasks_of(OPERATORS[0]) == [first, second]


def test_epochs_increase_and_only_one_checkpoint_is_pending(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator
) -> None:
    run_epoch(coordinator, Tasks(storage), 5)
    with pytest.raises(
        CheckpointError, match="checkpoint 5 cannot start: checkpoint 5 is already complete"
    ):
        coordinator.begin(5, [0])
    pending = coordinator.begin(7, [0])
    with pytest.raises(
        CheckpointError, match="checkpoint 8 cannot start while checkpoint 7 is pending"
    ):
        coordinator.begin(8, [0])
    coordinator._tolerable_failures = 1
    coordinator.abort(pending, DeclineReason.IO_EXCEPTION, "test")
    with pytest.raises(CheckpointError, match="checkpoint 7 is not the pending checkpoint"):
        coordinator.complete(pending, ())


def test_consecutive_failures_are_tolerated_up_to_the_configured_number(
    storage: CheckpointStorage,
) -> None:
    coordinator = open_(storage, tolerable_failures=1)
    tasks = Tasks(storage)
    for epoch in (1, 3):
        coordinator.abort(coordinator.begin(epoch, [0, 1]), DeclineReason.IO_EXCEPTION, "disk full")
        run_epoch(coordinator, tasks, epoch + 1)
    coordinator.abort(coordinator.begin(5, [0, 1]), DeclineReason.IO_EXCEPTION, "disk full")
    with pytest.raises(
        CheckpointError,
        match=r"checkpoint 6 failed \(IO_EXCEPTION\): out; 2 in a row, tolerable: 1",
    ):
        coordinator.abort(coordinator.begin(6, [0, 1]), DeclineReason.IO_EXCEPTION, "out")


@pytest.mark.parametrize("retained", [1, 2, 4])
def test_checkpoints_and_their_files_are_kept_while_they_are_retained(
    storage: CheckpointStorage, retained: int
) -> None:
    coordinator, tasks = open_(storage, retained=retained), Tasks(storage)
    for epoch in range(1, 11):
        run_epoch(coordinator, tasks, epoch)
        epochs = list(range(max(1, epoch - retained + 1), epoch + 1))
        assert completed_checkpoints(storage) == epochs
        needed = {name for found in epochs for name in read_metadata(storage, found).files}
        assert set(storage.names("shared")) == needed


def test_retention_continues_in_the_next_run(storage: CheckpointStorage) -> None:
    tasks = Tasks(storage)
    first = open_(storage, retained=5)
    for epoch in range(1, 6):
        run_epoch(first, tasks, epoch)
    first.close()
    second = open_(storage, "run-2", retained=2)
    run_epoch(second, Tasks(storage), 6)
    assert completed_checkpoints(storage) == [5, 6]
    with pytest.raises(ValueError, match="the number of retained checkpoints is 0"):
        open_(storage, retained=0)


def test_a_damaged_checkpoint_before_the_last_is_dropped(
    storage: CheckpointStorage, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks(storage)
    first = open_(storage, retained=3)
    for epoch in (1, 2, 3):
        run_epoch(first, tasks, epoch)
    first.close()
    storage.write(metadata_name(2), b"{}")
    second = open_(storage, "run-2", retained=3)
    run_epoch(second, Tasks(storage), 4)
    assert completed_checkpoints(storage) == [1, 3, 4]
    assert "checkpoint 2 is discarded, because a later one is complete: " in caplog.text
    second.sweep()
    needed = {name for found in (1, 3, 4) for name in read_metadata(storage, found).files}
    assert set(storage.names("shared")) == needed


def test_an_earlier_checkpoint_damaged_during_the_run_does_not_stop_it(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coordinator_module, "_COMPLETED_BETWEEN_SWEEPS", 3)
    coordinator, tasks = open_(storage, retained=3), Tasks(storage)
    for epoch in (1, 2):
        run_epoch(coordinator, tasks, epoch)
    storage.write(metadata_name(1), b"{}")
    third = run_epoch(coordinator, tasks, 3)
    assert coordinator.latest() == third
    assert "old checkpoint files" in caplog.text
    assert metadata_name(1) in caplog.text


def test_sweep_removes_files_of_attempts_that_lost(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator
) -> None:
    tasks = Tasks(storage)
    run_epoch(coordinator, tasks, 1)
    zombie = write_task_state(storage, 1, 0, "zombie", {OPERATOR: OperatorSnapshot({0: b"?"})})
    ahead = write_task_state(storage, 2, 0, "ahead", {OPERATOR: OperatorSnapshot({0: b"?"})})
    before = read_metadata(storage, 1)
    assert coordinator.sweep() == [zombie.files[0].name]
    assert read_metadata(storage, 1) == before
    assert storage.get(ahead.files[0])
    run_epoch(coordinator, tasks, 2)
    assert coordinator.sweep() == [ahead.files[0].name]
    assert set(storage.names("shared")) == set(read_metadata(storage, 2).files)


def test_sweep_keeps_files_of_an_aborted_epoch_that_later_chains_use(
    storage: CheckpointStorage,
) -> None:
    coordinator, tasks = open_(storage, tolerable_failures=1), Tasks(storage)
    run_epoch(coordinator, tasks, 1)
    tasks.write(2)
    coordinator.abort(coordinator.begin(2, [0, 1]), DeclineReason.IO_EXCEPTION, "late")
    assert coordinator.sweep() == []
    metadata = run_epoch(coordinator, tasks, 3)
    assert len(metadata.tasks[0].state.files) == 3
    assert coordinator.sweep() == []
    assert set(storage.names("shared")) == set(metadata.files)


def test_a_file_that_cannot_be_removed_does_not_stop_the_run(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator, tasks = open_(storage), Tasks(storage)
    run_epoch(coordinator, tasks, 1)
    with monkeypatch.context() as patch:

        def failing(*_: Any) -> None:
            raise PermissionError("read only")

        patch.setattr(type(storage), "delete", failing)
        run_epoch(coordinator, tasks, 2)
    assert "old checkpoint files" in caplog.text
    assert "read only" in caplog.text
    latest = coordinator.latest()
    assert latest is not None
    assert latest.checkpoint_id == 2


def test_discard_after_skips_a_damaged_checkpoint(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator
) -> None:
    coordinator._retained = 3
    tasks = Tasks(storage)
    for epoch in (1, 2, 3):
        run_epoch(coordinator, tasks, epoch)
    coordinator.close()
    storage.write(metadata_name(3), b"{}")
    again = open_(storage, "run-2", retained=3)
    with pytest.raises(
        CorruptCheckpointError, match=r"checkpoint 2 is complete: to resume .*chk-2"
    ):
        again.latest()
    assert again.discard_after(2) == [3]
    latest = again.latest()
    assert latest is not None
    assert latest.checkpoint_id == 2
    again.begin(3, [0])


def test_a_second_run_is_refused_while_the_first_is_alive(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator
) -> None:
    with pytest.raises(CheckpointInUseError, match="is in use by run run-1 of 'clicks'"):
        open_(storage, "run-2")
    coordinator.close()
    open_(storage, "run-2").close()


def test_a_replaced_run_cannot_complete_a_checkpoint(storage: CheckpointStorage) -> None:
    now = [0]
    first = open_(storage, now_ms=lambda: now[0])
    tasks = Tasks(storage)
    pending = first.begin(1, [0, 1])
    for state in tasks.write(1):
        pending.acknowledge(TaskMetadata(state.task, "v", state.task, state))
    now[0] += 60_000
    second = open_(storage, "run-2", now_ms=lambda: now[0])
    with pytest.raises(CheckpointInUseError, match="taken over by run run-2"):
        first.complete(pending, OPERATORS)
    assert completed_checkpoints(storage) == []
    run_epoch(second, Tasks(storage), 1)
    with pytest.raises(CheckpointInUseError):
        first.begin(2, [0])
    with pytest.raises(CheckpointInUseError):
        first.sweep()


def test_of_two_runs_that_hold_the_lease_only_the_later_completes_the_epoch(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0]
    first = open_(storage, now_ms=lambda: now[0])
    now[0] += 60_000
    second = open_(storage, "run-2", now_ms=lambda: now[0])
    with monkeypatch.context() as patch:
        patch.setattr(first.lease, "require", lambda: None)  # the lease was checked just before
        with pytest.raises(
            CheckpointInUseError,
            match=r"checkpoint 1 of .* can't be completed: run number 2 has taken over .*run run-1 ",
        ):
            run_epoch(first, Tasks(storage), 1)
    assert second.latest() is None
    run_epoch(second, Tasks(storage), 1)
    latest = second.latest()
    assert latest is not None
    assert latest.run_id == "run-2"


def test_a_closed_run_is_fenced_only_if_one_of_its_publishes_is_unsettled(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_(storage)
    run_epoch(first, Tasks(storage), 1)
    first.close()
    second = open_(storage, "run-2")
    assert storage.children("chk-2") == []

    def late(*_: object) -> None:
        raise TimeoutError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "publish", late)
        with pytest.raises(TimeoutError):
            run_epoch(second, Tasks(storage), 2)
    second.close()
    third = open_(storage, "run-3")
    with pytest.raises(FileExistsError):
        storage.publish("chk-2/_metadata", b"of run-2, which the storage takes now")
    run_epoch(third, Tasks(storage), 2)
    assert storage.children("chk-2") == ["_metadata", "_metadata.3"]
    assert read_metadata(storage, 2).run_id == "run-3"


def test_the_next_run_sets_the_fence_if_a_run_died_before_it_did(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0]
    first = open_(storage, now_ms=lambda: now[0])
    now[0] += 60_000

    def fail(*_: object) -> None:
        raise OSError("no route to host")

    with monkeypatch.context() as patch:
        patch.setattr("opchain.runtime.checkpoint.coordinator.fence_next_epoch", fail)
        with pytest.raises(OSError, match="no route"):
            open_(storage, "run-2", now_ms=lambda: now[0])
    third = open_(storage, "run-3", now_ms=lambda: now[0])
    monkeypatch.setattr(first.lease, "require", lambda: None)
    with pytest.raises(CheckpointInUseError, match="run number 3"):
        run_epoch(first, Tasks(storage), 1)
    run_epoch(third, Tasks(storage), 1)


def test_a_late_fence_of_a_replaced_run_does_not_stop_its_successor(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tasks = [0], Tasks(storage)
    open_(storage, now_ms=lambda: now[0])
    now[0] += 60_000
    second = open_(storage, "run-2", now_ms=lambda: now[0])
    run_epoch(second, tasks, 1)
    publish = type(storage).publish

    def late(self: Any, name: str, data: bytes) -> None:
        monkeypatch.undo()
        publish(self, name, fence_document(1))  # of run-1, which was frozen while it took over
        publish(self, name, data)

    monkeypatch.setattr(type(storage), "publish", late)
    run_epoch(second, tasks, 2)
    assert read_metadata(storage, 2).run_id == "run-2"
    assert storage.children("chk-2") == ["_metadata", "_metadata.1"]


def test_a_replaced_run_that_discards_late_keeps_checkpoints_of_its_successor(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0]
    first = open_(storage, now_ms=lambda: now[0], retained=3)
    tasks = Tasks(storage)
    for epoch in (1, 2):
        run_epoch(first, tasks, epoch)
    write = type(storage).write

    def late(self: Any, name: str, data: bytes) -> None:
        monkeypatch.undo()
        now[0] += 60_000
        second = open_(storage, "run-2", now_ms=lambda: now[0], retained=3)
        second.discard_after(1)
        run_epoch(second, Tasks(storage), 2)
        write(self, name, data)

    monkeypatch.setattr(type(storage), "write", late)
    first.discard_after(1)
    assert completed_checkpoints(storage) == [1, 2]
    assert read_metadata(storage, 2).run_id == "run-2"


@pytest.mark.parametrize("retained", [1, 3])
def test_a_run_frozen_before_its_publish_is_stopped_after_it(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch, retained: int
) -> None:
    now = [0]
    first = open_(storage, now_ms=lambda: now[0])
    publish = type(storage).publish

    def late(self: Any, name: str, data: bytes) -> None:
        monkeypatch.undo()
        now[0] += 60_000
        second = open_(storage, "run-2", now_ms=lambda: now[0], retained=retained)
        tasks = Tasks(storage)
        for epoch in (1, 2, 3):
            run_epoch(second, tasks, epoch)
        publish(self, name, data)

    monkeypatch.setattr(type(storage), "publish", late)
    with pytest.raises(CheckpointInUseError, match="which must stop"):
        run_epoch(first, Tasks(storage), 1)
    assert completed_checkpoints(storage) == [1, 2, 3][-retained:]
    assert {read_metadata(storage, epoch).run_id for epoch in completed_checkpoints(storage)} == {
        "run-2"
    }


def test_a_publish_that_succeeded_but_was_not_answered_is_not_a_failure(
    storage: CheckpointStorage,
    coordinator: CheckpointCoordinator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish = type(storage).publish

    def twice(self: Any, name: str, data: bytes) -> None:
        publish(self, name, data)
        publish(self, name, data)

    monkeypatch.setattr(type(storage), "publish", twice)
    assert run_epoch(coordinator, Tasks(storage), 1).checkpoint_id == 1


def test_a_checkpoint_completed_by_an_aborted_attempt_ends_the_run(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator, tasks = open_(storage, tolerable_failures=1), Tasks(storage)
    publish = type(storage).publish

    def fail_behind(self: Any, name: str, data: bytes) -> None:
        publish(self, name, data)
        raise OSError("no route to host")

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "publish", fail_behind)
        with pytest.raises(OSError, match="no route"):
            run_epoch(coordinator, tasks, 1)
    assert coordinator._pending is not None
    coordinator.abort(coordinator._pending, DeclineReason.IO_EXCEPTION, "no route to host")
    with pytest.raises(
        CheckpointError, match=r"is complete, although.*start the job again"
    ) as caught:
        run_epoch(coordinator, Tasks(storage), 1)
    assert not isinstance(caught.value, CheckpointInUseError)


RUN = """
import sys
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
from opchain.runtime.checkpoint.metadata import TaskMetadata
from opchain.runtime.checkpoint.state_files import write_task_state
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.errors import CheckpointInUseError
from opchain.runtime.state.operator_snapshot import OperatorSnapshot

place, run_id = sys.argv[1:]
storage = checkpoint_storage(place)
sys.stdin.readline()
try:
    # A lease that is over at once: only the fence is left.
    coordinator = CheckpointCoordinator.open(storage, "clicks", run_id, lease_ms=0, keeps_alive=False)
    latest = coordinator.latest()
    for epoch in range(1 if latest is None else latest.checkpoint_id + 1, 41):
        pending = coordinator.begin(epoch, [0])
        states = {"a": OperatorSnapshot({0: run_id.encode()})}
        state = write_task_state(storage, epoch, 0, run_id, states)
        pending.acknowledge(TaskMetadata(0, "v", 0, state))
        coordinator.complete(pending, ())
        print(epoch, flush=True)
except CheckpointInUseError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""


def test_two_concurrent_processes_complete_each_epoch_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(tmp_path / "place"), f"run-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outcomes = [(*process.communicate(), process.returncode) for process in processes]
    epochs = [int(line) for out, _, _ in outcomes for line in out.split()]
    assert sorted(epochs) == sorted(set(epochs))
    assert all(code == 0 or (code == 3 and "run" in err) for _, err, code in outcomes), outcomes
    # The process that took over last stops, too, if another one has already completed its first epoch.
    # On a busy machine, a process that starts late may find all epochs completed.
    assert [code for out, _, code in outcomes if out].count(0) <= 1
    storage = checkpoint_storage(str(tmp_path / "place"))
    # A run that was replaced just before its publish does not count its last epoch, which is complete.
    latest = completed_checkpoints(storage)[-1]
    assert latest - max(epochs, default=0) in (0, 1)
    (last,) = read_metadata(storage, latest).files.values()
    storage.get(last)
