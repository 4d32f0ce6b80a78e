"""Where checkpoints are kept."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar
from urllib.parse import urlsplit

from opchain.runtime.java_objects import no_java


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
    """Keeps checkpoints in the driver's memory: for trying things out, gone with the driver.

    Args:
        checkpoint_path: Where the metadata of checkpoints goes that are to stay; None for nowhere.
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
        """Where the metadata goes, or None."""
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
