"""Checkpoints behind fsspec: object stores, HDFS, and what else it knows.

Object stores make an object in one step, and on the condition that there is none of that name: fsspec calls
it `mode="create"`. HDFS has no such condition, but its rename fails where the name is taken. A file system
that has neither can't tell which of two drivers was first, and is refused.

Tested with fsspec's memory; s3fs, gcsfs and adlfs have the condition since their releases of late 2024.
"""

from __future__ import annotations

import contextlib
import inspect
import secrets
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.storage import TEMPORARY, CheckpointStorage, require_safe_name
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey

_RENAMES_FAIL_WHERE_TAKEN = frozenset({"hdfs", "viewfs", "arrow_hdfs"})


class RemoteStorage(CheckpointStorage):
    """A URL that fsspec understands.

    Raises:
        CheckpointError: fsspec, or what it needs for such URLs, is not installed.
    """

    def __init__(self, url: str, key: CheckpointKey | None = None) -> None:
        self.url = url.rstrip("/")
        self.key = key
        self._root: str
        _ = self._fs  # a wrong URL is known at once

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStorage, (self.url, self.key)

    def write(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        if not self._renames:
            self._fs.pipe_file(path, data)
            return
        temporary = self._written_beside(path, data)
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(path)
        self._fs.mv(temporary, path)

    def publish(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        if self._renames:
            temporary = self._written_beside(path, data)
            try:
                self._fs.mv(temporary, path)
            except OSError:
                self._fs.rm_file(temporary)
                if self._fs.exists(path):
                    raise FileExistsError(path) from None
                raise
        elif _creates_on_condition(self._fs):
            self._fs.pipe_file(path, data, mode="create")
        else:
            raise CheckpointError(
                f"{self.url} can't keep checkpoints: {type(self._fs).__name__} of this fsspec "
                f"cannot create a file only if it does not exist; install a newer version, or "
                "keep checkpoints elsewhere"
            )

    def read(self, name: str) -> bytes:
        """See CheckpointStorage."""
        data: bytes = self._fs.cat_file(self._path(name))
        return data

    def names(self, prefix: str = "") -> list[str]:
        """See CheckpointStorage."""
        self._fs.invalidate_cache()
        folder = self._path(prefix).rstrip("/")
        found = self._fs.find(folder) if self._fs.exists(folder) else []
        return sorted(
            path[len(self._root) :].lstrip("/") for path in found if not path.endswith(TEMPORARY)
        )

    def children(self, folder: str = "") -> list[str]:
        """See CheckpointStorage."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(self._path(folder).rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        names = (path.rstrip("/").rpartition("/")[2] for path in found)
        return sorted(name for name in names if not name.endswith(TEMPORARY))

    def delete(self, name: str) -> None:
        """See CheckpointStorage."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        if name:
            require_safe_name(name, self.url)
        return f"{self._root}/{name}"

    def _written_beside(self, path: str, data: bytes) -> str:
        temporary = f"{path}.{secrets.token_hex(4)}{TEMPORARY}"
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(temporary, data)
        return temporary

    @property
    def _renames(self) -> bool:
        protocol = self._fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        return bool(protocols & _RENAMES_FAIL_WHERE_TAKEN)

    @cached_property
    def _fs(self) -> Any:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - local paths do without
        except ImportError:
            raise CheckpointError(
                f"{self.url} needs fsspec, which is not installed here: run pip install fsspec, "
                f"or use a local path"
            ) from None
        try:
            fs, root = url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise CheckpointError(f"{self.url} can't be opened: {error}") from error
        self._root = root.rstrip("/")
        return fs


def _creates_on_condition(fs: Any) -> bool:
    """Whether a file system has a way of its own to make a file only where there is none.

    fsspec's general way looks first and writes then, and so lets two writers through.
    """
    from fsspec.asyn import AsyncFileSystem  # noqa: PLC0415 - local paths do without
    from fsspec.spec import AbstractFileSystem  # noqa: PLC0415

    general = {AbstractFileSystem.pipe_file, getattr(AsyncFileSystem, "_pipe_file", None)}
    methods = (getattr(type(fs), name, None) for name in ("_pipe_file", "pipe_file"))
    return any(
        method is not None
        and method not in general
        and "mode" in inspect.signature(method).parameters
        for method in methods
    )
