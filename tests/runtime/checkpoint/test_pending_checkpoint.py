"""A pending checkpoint waits for one acknowledgement of each of its tasks."""

from __future__ import annotations

import pytest

from opchain.runtime.checkpoint.coordinator import PendingCheckpoint
from opchain.runtime.checkpoint.metadata import TaskMetadata
from opchain.runtime.checkpoint.state_files import TaskState
from opchain.runtime.checkpoint.storage import StoredFile
from opchain.runtime.errors import CheckpointError


def file_of(epoch: int) -> StoredFile:
    return StoredFile(f"shared/{epoch}/0-a.state", 9, "")


def acknowledgement(task: int, epoch: int = 5) -> TaskMetadata:
    return TaskMetadata(task, "v", task, TaskState(task, epoch, (file_of(4), file_of(epoch))))


def test_require_all_returns_the_tasks_in_order() -> None:
    pending = PendingCheckpoint(5, 0, [2, 0, 1])
    for task in (1, 0, 2):
        assert task in pending.missing
        pending.acknowledge(acknowledgement(task))
    assert pending.missing == []
    assert [found.task for found in pending.require_all()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (acknowledgement(7), "task 7 acknowledges checkpoint 5, which does not include that task"),
        (acknowledgement(0), "task 0 acknowledges checkpoint 5 a second time"),
        (acknowledgement(1, epoch=4), "task 1 acknowledges checkpoint 5 with the state of epoch 4"),
    ],
)
def test_a_wrong_acknowledgement_is_refused(found: TaskMetadata, message: str) -> None:
    pending = PendingCheckpoint(5, 0, [0, 1])
    pending.acknowledge(acknowledgement(0))
    with pytest.raises(CheckpointError, match=message):
        pending.acknowledge(found)


def test_the_error_names_tasks_that_have_not_acknowledged() -> None:
    pending = PendingCheckpoint(5, 0, range(14))
    pending.acknowledge(acknowledgement(1))
    with pytest.raises(CheckpointError, match=r"of 14 tasks, 13 .*\(0, 2, 3.*, 10 and 3 more\)"):
        pending.require_all()
