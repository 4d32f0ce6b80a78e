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
def test_file_system_checkpoint_storage_has_a_path(given: str, path: str) -> None:
    storage = FileSystemCheckpointStorage(given)
    assert storage.get_checkpoint_path() == path
    assert storage.get_savepoint_path() is None
    assert path in str(storage)


def test_checkpoint_storages_have_flinks_defaults() -> None:
    files = FileSystemCheckpointStorage("file:///a/b")
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (20480, 4096)
    memory = JobManagerCheckpointStorage()
    assert memory.get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
    assert JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == 5242880
    assert memory.get_checkpoint_path() is memory.get_savepoint_path() is None
    assert str(memory) == "checkpoints in the driver, states of up to 5242880 bytes"


def test_thresholds_of_checkpoint_storages_can_be_set() -> None:
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
def test_a_checkpoint_path_must_name_a_folder(path: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FileSystemCheckpointStorage(path)


@pytest.mark.parametrize("threshold", [-2, 1048577])
def test_the_file_size_threshold_has_bounds(threshold: int) -> None:
    with pytest.raises(ValueError, match=rf"is {threshold}; it must be 0 to 1048576, or -1"):
        FileSystemCheckpointStorage("file:///a/b", threshold)


@pytest.mark.parametrize("size", [0, -1])
def test_the_max_state_size_must_be_positive(size: int) -> None:
    with pytest.raises(ValueError, match=rf"max_state_size is {size}"):
        JobManagerCheckpointStorage(max_state_size=size)


def test_a_custom_java_checkpoint_storage_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="use FileSystemCheckpointStorage"):
        CustomCheckpointStorage(None)


def test_checkpoint_storages_compare_by_value_and_can_be_pickled() -> None:
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
