"""Which files are removed and which are kept; test_coordinator tests when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.coordinator import drop_checkpoint, sweep
from opchain.runtime.checkpoint.epoch_files import metadata_name
from opchain.runtime.checkpoint.metadata import CheckpointMetadata, TaskMetadata, encode
from opchain.runtime.checkpoint.state_files import TaskState
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.storage import CheckpointStorage


def checkpoint(storage: CheckpointStorage, epoch: int, *names: str) -> CheckpointMetadata:
    files = tuple(storage.put(f"shared/{name}", b"") for name in names)
    task = TaskMetadata(0, "v", 0, TaskState(0, epoch, files))
    metadata = CheckpointMetadata(epoch, 0, "j", "r", tasks=(task,))
    storage.write(metadata_name(epoch), encode(metadata))
    return metadata


def test_a_file_is_removed_with_the_last_checkpoint_that_refers_to_it(
    any_storage: CheckpointStorage,
) -> None:
    first = checkpoint(any_storage, 1, "1/a", "1/b")
    second = checkpoint(any_storage, 2, "1/b", "2/c")
    assert drop_checkpoint(any_storage, first, [second]) == ["shared/1/a"]
    assert any_storage.names() == ["chk-2/_metadata", "shared/1/b", "shared/2/c"]
    assert drop_checkpoint(any_storage, second, []) == ["shared/1/b", "shared/2/c"]
    assert any_storage.names() == []


def test_sweep_keeps_files_that_may_still_be_needed(any_storage: CheckpointStorage) -> None:
    any_storage.write("shared/1/orphan", b"")
    assert sweep(any_storage) == []  # nothing is complete yet
    checkpoint(any_storage, 2, "1/a", "2/b")
    for name in ("2/orphan", "3/ahead", "other"):
        any_storage.write(f"shared/{name}", b"")
    assert sweep(any_storage) == ["shared/1/orphan", "shared/2/orphan"]
    assert any_storage.names("shared") == [
        "shared/1/a",
        "shared/2/b",
        "shared/3/ahead",
        "shared/other",
    ]


def test_sweep_removes_nothing_while_a_checkpoint_cannot_be_read(
    storage: CheckpointStorage,
) -> None:
    checkpoint(storage, 1, "1/a")
    storage.write(metadata_name(2), b"{}")
    storage.write("shared/1/orphan", b"")
    with pytest.raises(CorruptCheckpointError, match="chk-2"):
        sweep(storage)
    assert storage.names("shared") == ["shared/1/a", "shared/1/orphan"]
