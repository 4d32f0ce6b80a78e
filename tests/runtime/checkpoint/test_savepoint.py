"""Checkpoints found by path, savepoints as self-contained copies, and damage that is detected."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.epoch_files import metadata_name
from opchain.runtime.checkpoint.metadata import (
    NO_BATCH,
    CheckpointMetadata,
    EpochInput,
    TaskMetadata,
    encode,
)
from opchain.runtime.checkpoint.run_lease import LEASE_MS, RunLease
from opchain.runtime.checkpoint.savepoint import (
    OFFSETS,
    Located,
    adopt,
    find_checkpoint,
    problems_of,
    write_savepoint,
)
from opchain.runtime.checkpoint.state_files import TaskState, write_task_state
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.delivered_sources import FoundFilesLog
from opchain.runtime.epochs.input_log import log_offset, offset_of
from opchain.runtime.epochs.source_positions import POSITIONS
from opchain.runtime.errors import CheckpointError, CorruptCheckpointError
from opchain.runtime.files.file_systems import FileStatus
from opchain.runtime.state.operator_snapshot import OperatorSnapshot

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.checkpoint.storage import CheckpointStorage


@pytest.fixture
def place(any_storage: CheckpointStorage) -> CheckpointStorage:
    """A directory with checkpoints 1 and 2 of a task."""
    state: TaskState | None = None
    for epoch in (1, 2):
        snapshot = OperatorSnapshot({0: b"%d" % epoch}, is_changes=state is not None)
        state = write_task_state(any_storage, epoch, 0, "0", {"a": snapshot}, state)
        task = TaskMetadata(0, "v", 0, state)
        metadata = CheckpointMetadata(epoch, 0, "clicks", "run-1", tasks=(task,))
        any_storage.publish(metadata_name(epoch), encode(metadata))
    return any_storage


def test_find_checkpoint_takes_the_directory_the_checkpoint_or_its_metadata(
    place: CheckpointStorage,
) -> None:
    assert find_checkpoint(place.url).metadata.checkpoint_id == 2
    for end in ("", "/", "/_metadata"):
        assert find_checkpoint(f"{place.url}/chk-1{end}").metadata.checkpoint_id == 1
    with pytest.raises(CorruptCheckpointError, match="chk-9/_metadata is missing"):
        find_checkpoint(f"{place.url}/chk-9")


def test_a_directory_without_checkpoints_is_an_error(any_storage: CheckpointStorage) -> None:
    with pytest.raises(
        CheckpointError, match=r"has no checkpoint and is not a savepoint; pass|there is no folder"
    ):
        find_checkpoint(any_storage.url)


def test_the_error_about_a_missing_folder_suggests_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for name in ("chekpoints", "chekpoints/chk-3"):
        with pytest.raises(
            CheckpointError, match=r"no folder .*/chekpoints; did you mean .*/checkpoints\?"
        ):
            find_checkpoint(str(tmp_path / name))


def test_a_savepoint_can_be_moved_and_outlives_its_checkpoints(
    place: CheckpointStorage, tmp_path: Path
) -> None:
    target = str(tmp_path / "savepoints/first")
    before = find_checkpoint(place.url)
    written = write_savepoint(before, target)
    for name in place.names():
        place.delete(name)
    moved = str(tmp_path / "moved")
    shutil.move(target, moved)
    for url in (moved, f"{moved}/_metadata", f"file://{moved}"):
        found = find_checkpoint(url)
        assert found.metadata == written
        assert problems_of(found) == []
    assert (written.kind, written.checkpoint_id) == ("savepoint", 2)
    assert written.files == before.metadata.files


def test_a_target_that_is_not_empty_is_refused(place: CheckpointStorage, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("")
    with pytest.raises(CheckpointError, match="full is not empty"):
        write_savepoint(find_checkpoint(place.url), str(tmp_path / "full"))


def test_a_damaged_checkpoint_is_detected_and_not_copied(
    place: CheckpointStorage, tmp_path: Path
) -> None:
    found = find_checkpoint(place.url)
    first, second = found.metadata.files
    place.delete(first)
    place.write(second, place.read(second)[:-1])
    assert [problem.problem.split()[0] for problem in problems_of(found)] == ["is", "has"]
    target = tmp_path / "savepoint"
    with pytest.raises(CorruptCheckpointError, match="is missing"):
        write_savepoint(found, str(target))
    assert not (target / "_metadata").exists()


def test_a_target_that_is_a_file_is_refused(place: CheckpointStorage, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(
        CheckpointError, match=r"file/.* can't be created: .*/file is not a directory"
    ):
        write_savepoint(find_checkpoint(place.url), str(tmp_path / "file"))


def test_a_run_that_adopts_a_savepoint_without_sparks_log_has_no_micro_batch(
    any_storage: CheckpointStorage,
) -> None:
    read = EpochInput(batch=6, clock_ms=9)
    metadata = CheckpointMetadata(7, 0, "clicks", "run-1", input=read, kind="savepoint")
    found = Located(any_storage, metadata)
    assert found.adopted().input == EpochInput(batch=NO_BATCH, clock_ms=9)
    any_storage.write(f"{OFFSETS}/offsets/6", b"v1")
    assert found.adopted() == replace(metadata, kind="checkpoint")


def test_offsets_that_spark_removes_during_the_copy_are_left_out(
    place: CheckpointStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write(f"{OFFSETS}/offsets/2", b"v1")
    names = place.names(OFFSETS)
    found = find_checkpoint(place.url)
    gone = f"{OFFSETS}/offsets/.3.temporary"
    monkeypatch.setattr(
        type(found.storage), "names", lambda _, prefix="": [gone, *names] if prefix else []
    )
    target = str(tmp_path / "saved")
    write_savepoint(found, target)
    monkeypatch.undo()
    assert checkpoint_storage(target).names(OFFSETS) == names


@pytest.mark.parametrize("copies", ["savepoint", "adopted"])
def test_a_log_of_found_files_that_is_merged_during_the_copy_is_copied_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: str
) -> None:
    storage = checkpoint_storage(str(tmp_path / "job"))
    storage.publish(metadata_name(1), encode(CheckpointMetadata(1, 0, "clicks", "run-1")))
    folder = f"{OFFSETS}/watched/source"
    log = FoundFilesLog(f"{storage.url}/{folder}")
    for number in range(99):
        log.append(number, [FileStatus(f"/in/{number}", 1)])
    read = type(storage).read

    def merging(self: CheckpointStorage, name: str) -> bytes:
        if name == f"{folder}/{50:012}":
            monkeypatch.undo()
            log.append(99, [FileStatus("/in/99", 1)])
        return read(self, name)

    monkeypatch.setattr(type(storage), "read", merging)
    target = checkpoint_storage(str(tmp_path / "copy"))
    if copies == "savepoint":
        write_savepoint(find_checkpoint(storage.url), target.url)
    else:
        adopt(target, storage.url, RunLease.take(target, "clicks", "run-2", LEASE_MS, lambda: 0))
    found = FoundFilesLog(f"{target.url}/{folder}").read()
    assert [file.path for file in found] == [f"/in/{number}" for number in range(100)]


def test_a_run_that_starts_from_a_savepoint_detects_a_damaged_position(
    tmp_path: Path,
) -> None:
    storage = checkpoint_storage(str(tmp_path / "job"))
    metadata = CheckpointMetadata(3, 0, "clicks", "run-1", input=EpochInput(1))
    storage.publish(metadata_name(3), encode(metadata))
    log = f"{storage.url}/{OFFSETS}"
    for batch in range(3):
        log_offset(log, batch, {POSITIONS: [10 * batch]}, 0)
    saved = checkpoint_storage(str(tmp_path / "saved"))
    write_savepoint(find_checkpoint(storage.url), saved.url)
    name = f"{OFFSETS}/offsets/1"
    saved.write(name, saved.read(name).replace(b"[10]", b"[11]"))
    target = checkpoint_storage(str(tmp_path / "new"))
    adopt(target, saved.url, RunLease.take(target, "clicks", "run-2", LEASE_MS, lambda: 0))
    assert target.children(f"{OFFSETS}/offsets") == [".0.crc", ".1.crc", "0", "1"]
    with pytest.raises(CorruptCheckpointError, match=r"offsets/1 does not match its checksums"):
        offset_of(f"{target.url}/{OFFSETS}", 1, POSITIONS)
