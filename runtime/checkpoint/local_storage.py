"""Checkpoints in a directory, with the standard library alone."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from opchain.runtime.checkpoint.storage import TEMPORARY, CheckpointStorage
from opchain.runtime.errors import CheckpointError

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""How file systems say that they know no hard links."""


class LocalStorage(CheckpointStorage):
    """A directory of this machine, or one that all machines have mounted; made when first written to."""

    def __init__(self, path: str) -> None:
        self._root = Path(path).absolute()
        self.url = str(self._root)

    def write(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._root / name
        temporary = _written(path, data)
        try:
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)

    def publish(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._root / name
        temporary = _written(path, data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise CheckpointError(
                f"{path} can't be published: the file system has no hard links "
                f"({error.strerror}); keep checkpoints on another one"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(path.parent)

    def read(self, name: str) -> bytes:
        """See CheckpointStorage."""
        return (self._root / name).read_bytes()

    def names(self, prefix: str = "") -> list[str]:
        """See CheckpointStorage."""
        root = self._root
        return sorted(
            path.relative_to(root).as_posix()
            for path in (root / prefix).rglob("*")
            if path.suffix != TEMPORARY and path.is_file()
        )

    def children(self, folder: str = "") -> list[str]:
        """See CheckpointStorage."""
        try:
            found = list((self._root / folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(path.name for path in found if path.suffix != TEMPORARY)

    def delete(self, name: str) -> None:
        """See CheckpointStorage; folders that are left empty go, too."""
        path = self._root / name
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not empty, or gone already
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()


def _written(path: Path, data: bytes) -> Path:
    """A temporary file beside a path, whose content is on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sync_directory(path: Path) -> None:
    """Puts the names in a directory on disk, where the system has such a thing."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
