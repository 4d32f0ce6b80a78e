"""Of a run and the run that takes over, exactly one publishes the next epoch, in every order of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.epoch_files import (
    completed_checkpoints,
    fence_document,
    fence_next_epoch,
    last_file,
    metadata_name,
    name_to_publish,
    publish_adopted,
)
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.errors import CheckpointInUseError, CorruptCheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.storage import CheckpointStorage


def no_later_run() -> None:
    """The check passes: no later run has taken over."""


def publish(storage: CheckpointStorage, epoch: int, run: int) -> None:
    storage.publish(name_to_publish(storage, epoch, run), b"checkpoint of run %d" % run)


def fence(storage: CheckpointStorage, run: int) -> None:
    fence_next_epoch(storage, run, no_later_run)


def test_a_checkpoint_published_before_the_fence_is_complete(
    any_storage: CheckpointStorage,
) -> None:
    publish(any_storage, 1, run=1)
    fence(any_storage, 2)
    assert completed_checkpoints(any_storage) == [1]
    with pytest.raises(FileExistsError):
        publish(any_storage, 2, run=1)
    publish(any_storage, 2, run=2)
    assert completed_checkpoints(any_storage) == [1, 2]
    last = last_file(any_storage, 2)
    assert last == ("chk-2/_metadata.2", b"checkpoint of run 2", None)


def test_a_file_name_chosen_before_the_fence_cannot_be_published_after_it(
    any_storage: CheckpointStorage,
) -> None:
    chosen = name_to_publish(any_storage, 1, 1)
    fence(any_storage, 2)
    with pytest.raises(FileExistsError):
        any_storage.publish(chosen, b"late")
    assert completed_checkpoints(any_storage) == []
    with pytest.raises(CorruptCheckpointError, match="chk-1/_metadata is missing"):
        read_metadata(any_storage, 1)


def test_each_fence_stops_all_earlier_runs(any_storage: CheckpointStorage) -> None:
    chosen = []
    for run in (1, 2, 5):
        fence(any_storage, run)
        chosen.append(name_to_publish(any_storage, 1, run))
    fence(any_storage, 9)
    for name in chosen:
        with pytest.raises(FileExistsError):
            any_storage.publish(name, b"late")
    # A run that lists the files only now finds the fence of a later run, and does not pass it.
    for run in (1, 2, 5):
        with pytest.raises(FileExistsError):
            publish(any_storage, 1, run)
    publish(any_storage, 1, run=9)
    assert completed_checkpoints(any_storage) == [1]


def test_the_fence_moves_behind_a_checkpoint_published_meanwhile(
    any_storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(any_storage)
    published = kind.publish

    def late(storage: CheckpointStorage, name: str, data: bytes) -> None:
        monkeypatch.undo()
        published(storage, metadata_name(1), b"checkpoint of run 1")
        published(storage, name, data)

    monkeypatch.setattr(kind, "publish", late)
    fence(any_storage, 2)
    assert completed_checkpoints(any_storage) == [1]
    last = last_file(any_storage, 2)
    assert last is not None
    assert last.fenced_by == 2


def test_a_fence_whose_write_was_not_answered_is_found(any_storage: CheckpointStorage) -> None:
    any_storage.publish(metadata_name(1), fence_document(2))
    fence(any_storage, 2)
    assert any_storage.names() == ["chk-1/_metadata"]


def test_a_replaced_run_sets_no_fence(any_storage: CheckpointStorage) -> None:
    def require() -> None:
        raise CheckpointInUseError("taken over")

    with pytest.raises(CheckpointInUseError, match="taken over"):
        fence_next_epoch(any_storage, 1, require)
    assert any_storage.names() == []


def test_an_adopted_checkpoint_keeps_its_epoch(any_storage: CheckpointStorage) -> None:
    publish_adopted(any_storage, 7, b"adopted", 1, no_later_run)
    assert completed_checkpoints(any_storage) == [7]
    assert any_storage.names() == ["chk-7/_metadata"]


@pytest.mark.parametrize("is_late", [True, False], ids=["publishes late", "checks late"])
def test_a_replaced_run_adopts_no_checkpoint(
    any_storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    is_replaced = False

    def take_over() -> None:
        nonlocal is_replaced
        is_replaced = True
        fence(any_storage, 2)

    def require() -> None:
        if is_replaced:
            raise CheckpointInUseError("taken over")
        if is_late:
            take_over()  # after the check

    if not is_late:
        write = type(any_storage).write

        def late(storage: CheckpointStorage, name: str, data: bytes) -> None:
            monkeypatch.undo()
            take_over()
            write(storage, name, data)

        monkeypatch.setattr(type(any_storage), "write", late)
    with pytest.raises((FileExistsError, CheckpointInUseError)):
        publish_adopted(any_storage, 7, b"adopted", 1, require)
    assert completed_checkpoints(any_storage) == []
    publish(any_storage, 1, run=2)
    assert completed_checkpoints(any_storage) == [1]


@pytest.mark.parametrize("damage", [b"x", b"9" * 30, b""])
def test_a_damaged_fence_is_reported_as_a_damaged_checkpoint(
    any_storage: CheckpointStorage, damage: bytes
) -> None:
    any_storage.write(metadata_name(3), fence_document(7).replace(b"7", damage))
    with pytest.raises(CorruptCheckpointError, match="is not checkpoint metadata"):
        read_metadata(any_storage, 3)
