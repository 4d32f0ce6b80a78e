"""The storage of a running job's state (StateBackend), and of its checkpoints (CheckpointStorage)."""

from __future__ import annotations

import re
from abc import ABC
from enum import Enum
from typing import Any, ClassVar
from urllib.parse import urlsplit

from opchain.runtime.java_objects import no_java

_DEFAULT_TRANSFER_THREADS = 4


class StateBackend(ABC):  # noqa: B024 - the kinds have nothing in common but the name
    """The root of the kinds of backend."""


class HashMapStateBackend(StateBackend):
    """Keeps state as objects in the memory of the Python worker.

    Values are not copied: who changes one in place changes the state.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashMapStateBackend)

    def __hash__(self) -> int:
        return hash(HashMapStateBackend.__name__)

    def __repr__(self) -> str:
        return "HashMapStateBackend()"


class PredefinedOptions(Enum):
    """RocksDB's settings for kinds of machines. Remembered for programs that name them, and not used."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state on the local disk of the executor, for more of it than memory holds.

    Needs `pip install 'opchain[rocksdb]'` on the executors. Values are copied, going in and coming out: who
    changes one in place has to give it back. The list or map of a key is one entry, read and written as a
    whole. Timers are in memory. Batch mode keeps its state in memory. Checkpoints and savepoints are the same
    as with HashMapStateBackend, and hold changes only: a job may continue with the other one.

    Args:
        enable_incremental_checkpointing: Whether a checkpoint holds the changes since the last one
            only; it does anyway.

    Raises:
        TypeError: it is something else.
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(
                "EmbeddedRocksDBStateBackend: enable_incremental_checkpointing is "
                f"{enable_incremental_checkpointing!r}; it must be True, False or None"
            )
        self._enable_incremental_checkpointing = enable_incremental_checkpointing
        self._db_storage_paths: tuple[str, ...] = ()
        self._predefined_options = PredefinedOptions.DEFAULT
        self._number_of_transfer_threads = _DEFAULT_TRANSFER_THREADS

    def set_db_storage_paths(self, *paths: str) -> None:
        """Sets the local directories for the files; none at all leaves it to the executor.

        Raises:
            ValueError: a path is relative, or not on a local disk.
        """
        self._db_storage_paths = tuple(_local(path) for path in paths)

    def get_db_storage_paths(self) -> list[str]:
        """The local directories; empty where they are left to the executor."""
        return list(self._db_storage_paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint holds the changes only; False unless set."""
        return bool(self._enable_incremental_checkpointing)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Names the kind of machine."""
        if not isinstance(options, PredefinedOptions):
            raise TypeError(f"set_predefined_options() takes PredefinedOptions, not {options!r}")
        self._predefined_options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """The kind of machine; DEFAULT unless set."""
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        """Not available: the factory is a Java class.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise no_java(f"set_options({options_factory_class_name!r})", "use set_predefined_options")

    def get_options(self) -> str | None:
        """None: there is no factory."""
        return None

    def get_number_of_transfer_threads(self) -> int:
        """How many threads move files to and from the checkpoint storage; 4 unless set."""
        return self._number_of_transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Sets how many threads move files to and from the checkpoint storage.

        Raises:
            ValueError: it is not positive.
        """
        if number_of_transfering_threads <= 0:
            raise ValueError(
                f"set_number_of_transfer_threads({number_of_transfering_threads}): it must be at "
                f"least 1"
            )
        self._number_of_transfer_threads = number_of_transfering_threads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmbeddedRocksDBStateBackend) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(EmbeddedRocksDBStateBackend.__name__)

    def __repr__(self) -> str:
        return (
            f"EmbeddedRocksDBStateBackend(incremental={self._enable_incremental_checkpointing}, "
            f"paths={list(self._db_storage_paths)}, options={self._predefined_options.name}, "
            f"transfer_threads={self._number_of_transfer_threads})"
        )


class CustomStateBackend(StateBackend):
    """A Java backend; not available.

    Raises:
        UnsupportedFeatureError: When it is made.
    """

    def __init__(self, j_custom_state_backend: Any) -> None:  # noqa: ARG002 - PyFlink's
        raise no_java(
            "CustomStateBackend", "use HashMapStateBackend or EmbeddedRocksDBStateBackend"
        )


def _local(path: str) -> str:
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        raise ValueError(
            f"EmbeddedRocksDBStateBackend: storage path {path!r} is not on a local disk; "
            "name a local directory (checkpoints go to the checkpoint storage)"
        )
    if not parts.path.startswith("/"):
        raise ValueError(f"EmbeddedRocksDBStateBackend: storage path {path!r} must be absolute")
    # As Hadoop's Path writes it.
    return re.sub("/+", "/", parts.path).rstrip("/") or "/"


class CheckpointStorage(ABC):  # noqa: B024 - the kinds have nothing in common but the name
    """The root of the kinds of storage. They are values: equal when their settings are."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(vars(self).values())))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name.lstrip('_')}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


class JobManagerCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints in the driver's memory, for experiments: they are lost when the driver ends.

    Args:
        checkpoint_path: Where the metadata of retained checkpoints goes; None to retain none.
        max_state_size: The most bytes that one state of one subtask may have; 5 MiB if None.

    Raises:
        ValueError: the size is not positive, or the path names no place; see
            FileSystemCheckpointStorage.
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(
        self, checkpoint_path: str | None = None, max_state_size: int | None = None
    ) -> None:
        size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        if size <= 0:
            raise ValueError(
                f"JobManagerCheckpointStorage: max_state_size is {size}; it must be > 0"
            )
        self._checkpoint_path = None if checkpoint_path is None else _checked(checkpoint_path, self)
        self._max_state_size = size

    def get_checkpoint_path(self) -> str | None:
        """The path of the metadata, or None."""
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        """The most bytes of a state."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """None: savepoints go where the command that draws them says."""
        return None

    def __str__(self) -> str:
        place = "the driver" if self._checkpoint_path is None else self._checkpoint_path
        return f"checkpoints in {place}, states of up to {self._max_state_size} bytes"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints as files.

    Args:
        checkpoint_path: A directory with its scheme: `file:///checkpoints`, `s3://bucket/jobs`.
        file_state_size_threshold: States of less bytes go into the metadata; 20,480 if None or -1.
        write_buffer_size: Bytes that are written at once; -1 for 4,096.

    Raises:
        ValueError: the path is missing, has no scheme or names a root, or the threshold is not in
            -1 to 1,048,576.
    """

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024
    _DEFAULT_THRESHOLD: ClassVar[int] = 20 * 1024
    _DEFAULT_BUFFER: ClassVar[int] = 4096

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if checkpoint_path is None:
            raise ValueError("FileSystemCheckpointStorage needs a checkpoint_path")
        threshold = -1 if file_state_size_threshold is None else file_state_size_threshold
        if not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ValueError(
                f"FileSystemCheckpointStorage: file_state_size_threshold is {threshold}; it must be "
                f"0 to {self.MAX_FILE_STATE_THRESHOLD}, or -1 for {self._DEFAULT_THRESHOLD}"
            )
        self._checkpoint_path = _checked(checkpoint_path, self)
        self._min_file_size_threshold = self._DEFAULT_THRESHOLD if threshold < 0 else threshold
        self._write_buffer_size = (
            self._DEFAULT_BUFFER if write_buffer_size < 0 else write_buffer_size
        )

    def get_checkpoint_path(self) -> str:
        """The directory, without a slash at its end."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """None: savepoints go where the command that draws them says."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """States of less bytes go into the metadata."""
        return self._min_file_size_threshold

    def get_write_buffer_size(self) -> int:
        """Bytes that are written at once."""
        return self._write_buffer_size

    def __str__(self) -> str:
        return f"checkpoints in {self._checkpoint_path}"


class CustomCheckpointStorage(CheckpointStorage):
    """A Java storage; not available.

    Raises:
        UnsupportedFeatureError: When it is made.
    """

    def __init__(self, j_custom_checkpoint_storage: Any) -> None:  # noqa: ARG002 - PyFlink's
        raise no_java("CustomCheckpointStorage", "use FileSystemCheckpointStorage")


def _checked(path: str, storage: CheckpointStorage) -> str:
    kind = type(storage).__name__
    parts = urlsplit(path)
    if not parts.scheme:
        raise ValueError(
            f"{kind}: checkpoint_path {path!r} has no scheme; write it as 'file://{path}', "
            "'hdfs://...' or 's3://...'"
        )
    if not parts.path.strip("/"):
        raise ValueError(f"{kind}: checkpoint_path {path!r} is a root; name a directory below it")
    return path.rstrip("/")
