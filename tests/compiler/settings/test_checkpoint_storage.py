"""Numbers and refusals are those that Flink 2.3's storages print."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.compiler.settings.state_backend import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from opchain.runtime.errors import UnsupportedFeatureError


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("file://var/checkpoints/", "file://var/checkpoints"),
        ("file:///tmp/a", "file:///tmp/a"),
        ("s3://bucket/key/", "s3://bucket/key"),
    ],
)
def test_files_have_a_place(given: str, path: str) -> None:
    storage = FileSystemCheckpointStorage(given)
    assert storage.get_checkpoint_path() == path
    assert storage.get_savepoint_path() is None
    assert path in str(storage)


def test_the_defaults_are_flinks() -> None:
    files = FileSystemCheckpointStorage("file:///a/b")
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (20480, 4096)
    memory = JobManagerCheckpointStorage()
    assert memory.get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
    assert JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == 5242880
    assert memory.get_checkpoint_path() is memory.get_savepoint_path() is None
    assert str(memory) == "checkpoints in the driver, states of up to 5242880 bytes"


def test_numbers_can_be_set() -> None:
    files = FileSystemCheckpointStorage("file:///a/b", 5, 3)
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (5, 3)
    memory = JobManagerCheckpointStorage("file:///a/b", 100)
    assert (memory.get_checkpoint_path(), memory.get_max_state_size()) == ("file:///a/b", 100)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (None, "needs a checkpoint_path"),
        ("", "has no scheme"),
        ("/tmp/a/", "'/tmp/a/' has no scheme; write it as 'file:///tmp/a/'"),  # noqa: S108
        ("rel/x", "has no scheme"),
        ("s3://bucket/", "'s3://bucket/' is a root; name a directory below it"),
    ],
)
def test_a_path_must_name_a_place(path: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FileSystemCheckpointStorage(path)


@pytest.mark.parametrize("threshold", [-2, 1048577])
def test_a_threshold_has_bounds(threshold: int) -> None:
    with pytest.raises(ValueError, match=rf"is {threshold}; it must be 0 to 1048576, or -1"):
        FileSystemCheckpointStorage("file:///a/b", threshold)


@pytest.mark.parametrize("size", [0, -1])
def test_a_state_size_is_positive(size: int) -> None:
    with pytest.raises(ValueError, match=rf"max_state_size is {size}"):
        JobManagerCheckpointStorage(max_state_size=size)


def test_a_java_storage_is_not_there() -> None:
    with pytest.raises(UnsupportedFeatureError, match="use FileSystemCheckpointStorage"):
        CustomCheckpointStorage(None)


def test_storages_are_values() -> None:
    storages: list[CheckpointStorage] = [
        JobManagerCheckpointStorage(),
        JobManagerCheckpointStorage(max_state_size=7),
        FileSystemCheckpointStorage("file:///a/b"),
    ]
    for storage in storages:
        copy = pickle.loads(pickle.dumps(storage))
        assert copy == storage
        assert hash(copy) == hash(storage)
        assert [other == storage for other in storages].count(True) == 1
    assert repr(storages[1]) == (
        "JobManagerCheckpointStorage(checkpoint_path=None, max_state_size=7)"
    )
