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
    """The base class of state backends."""


class HashMapStateBackend(StateBackend):
    """Keeps state as objects in the memory of the Python worker.

    Values are not copied: changing a value in place changes the state.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashMapStateBackend)

    def __hash__(self) -> int:
        return hash(HashMapStateBackend.__name__)

    def __repr__(self) -> str:
        return "HashMapStateBackend()"


class PredefinedOptions(Enum):
    """RocksDB's presets for kinds of machines. Accepted without effect."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state on the local disk of the executor, for state that is larger than memory.

    The executors need `pip install 'opchain[rocksdb]'`. Values are copied when they are read and written: after
    changing a value in place, update the state with it. The list or map of a key is one entry, which is read and
    written as a whole. Timers are kept in memory. In batch mode, state is kept in memory too. Checkpoints and
    savepoints have the same format as those of HashMapStateBackend, so a job may continue with the other backend.

    Args:
        enable_incremental_checkpointing: Accepted without effect: checkpoints are always incremental.

    Raises:
        TypeError: The argument is not True, False or None.
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
        """Sets the local directories of the database files. Without an argument, the executor chooses them.

        Raises:
            ValueError: A path is relative, or not on a local disk.
        """
        self._db_storage_paths = tuple(_local(path) for path in paths)

    def get_db_storage_paths(self) -> list[str]:
        """The local directories. Empty if the executor chooses them."""
        return list(self._db_storage_paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """The value that was set; False by default. It has no effect."""
        return bool(self._enable_incremental_checkpointing)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Stores the preset. It has no effect."""
        if not isinstance(options, PredefinedOptions):
            raise TypeError(f"set_predefined_options() takes PredefinedOptions, not {options!r}")
        self._predefined_options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """The preset that was set; DEFAULT by default."""
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        """Not supported: the options factory is a Java class.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise no_java(f"set_options({options_factory_class_name!r})", "use set_predefined_options")

    def get_options(self) -> str | None:
        """Always None: options factories are not supported."""
        return None

    def get_number_of_transfer_threads(self) -> int:
        """The number of threads that copy files to and from the checkpoint storage; 4 unless set."""
        return self._number_of_transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Sets the number of threads that copy files to and from the checkpoint storage.

        Raises:
            ValueError: The number is not positive.
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
    """A Java backend; not supported.

    Raises:
        UnsupportedFeatureError: Always, in the constructor.
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
    """The base class of checkpoint storages. Two storages are equal if their settings are equal."""

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
        checkpoint_path: The directory for the metadata of retained checkpoints. None retains none.
        max_state_size: The maximum size in bytes of one state of one subtask. None: 5 MiB.

    Raises:
        ValueError: The size is not positive, or the path is invalid; see FileSystemCheckpointStorage.
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
        """The maximum size of a state in bytes."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """Always None: the command that takes a savepoint sets its path."""
        return None

    def __str__(self) -> str:
        place = "the driver" if self._checkpoint_path is None else self._checkpoint_path
        return f"checkpoints in {place}, states of up to {self._max_state_size} bytes"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints as files.

    Args:
        checkpoint_path: A directory with its scheme: `file:///checkpoints`, `s3://bucket/jobs`.
        file_state_size_threshold: Smaller states are stored in the metadata file; in bytes. None or -1: 20,480.
        write_buffer_size: The size of the write buffer in bytes. -1: 4,096.

    Raises:
        ValueError: The path is missing, has no scheme or is a root directory, or the threshold is not in -1 to
            1,048,576.
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
        """The directory, without a trailing slash."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """Always None: the command that takes a savepoint sets its path."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """The size in bytes below which state is stored in the metadata file."""
        return self._min_file_size_threshold

    def get_write_buffer_size(self) -> int:
        """The size of the write buffer in bytes."""
        return self._write_buffer_size

    def __str__(self) -> str:
        return f"checkpoints in {self._checkpoint_path}"


class CustomCheckpointStorage(CheckpointStorage):
    """A Java checkpoint storage; not supported.

    Raises:
        UnsupportedFeatureError: Always, in the constructor.
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
