"""Checkpoints in a directory, with the standard library alone."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.storage import TEMPORARY, CheckpointStorage, require_safe_name
from opchain.runtime.errors import CheckpointError, CorruptCheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""How file systems say that they know no hard links."""


class LocalStorage(CheckpointStorage):
    """A directory of this machine, or one that all machines have mounted; made when first written to.

    Only the user who runs the job can read the files and folders that are made here: state holds records.
    """

    def __init__(self, path: str, key: CheckpointKey | None = None) -> None:
        self._root = Path(path).absolute()
        self.url = str(self._root)
        self.key = key

    def write(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        temporary = self._written(path, data)
        try:
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)

    def publish(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        temporary = self._written(path, data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise CheckpointError(
                f"{path} can't be published: the file system has no hard links "
                f"({error.strerror}); keep checkpoints on another file system"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(path.parent)

    def read(self, name: str) -> bytes:
        """See CheckpointStorage."""
        path = self._path(name)
        self._require_inside(path)
        return path.read_bytes()

    def names(self, prefix: str = "") -> list[str]:
        """See CheckpointStorage."""
        root = self._root
        return sorted(
            path.relative_to(root).as_posix()
            for path in (self._path(prefix) if prefix else root).rglob("*")
            if path.suffix != TEMPORARY and path.is_file()
        )

    def children(self, folder: str = "") -> list[str]:
        """See CheckpointStorage."""
        try:
            found = list((self._path(folder) if folder else self._root).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(path.name for path in found if path.suffix != TEMPORARY)

    def delete(self, name: str) -> None:
        """See CheckpointStorage; folders that are left empty go, too."""
        path = self._path(name)
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not empty, or gone already
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()

    def _written(self, path: Path, data: bytes) -> Path:
        """A temporary file beside a path, whose content is on disk."""
        self._root.parent.mkdir(parents=True, exist_ok=True)
        self._root.mkdir(0o700, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _path(self, name: str) -> Path:
        """Where a file is; the folder that it is in is below the root, whatever links there are."""
        require_safe_name(name, self.url)
        path = self._root / name
        self._require_inside(path.parent)
        return path

    def _require_inside(self, path: Path) -> None:
        root, real = os.path.realpath(self._root), os.path.realpath(path)
        if real != root and not real.startswith(f"{root.rstrip(os.sep)}{os.sep}"):
            raise CorruptCheckpointError(
                str(path),
                f"is refused: a symbolic link leads from it to {real}, which is outside of {self.url}; keep the "
                "files of checkpoints in their directory itself",
            )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync_directory(path: Path) -> None:
    """Puts the names in a directory on disk, where the system has such a thing."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
