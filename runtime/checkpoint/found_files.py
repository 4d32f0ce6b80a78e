"""The log of the files that a watched source has found: numbered files of JSON lines, one per look that found some.

    spark/watched/<operator id>/000000000000   {"path": "/in/a.txt", "size": 120}
                                                {"path": "/in/b.txt", "size": 90}
    spark/watched/<operator id>/000000000002   {"path": "/in/c.txt", "size": 7}

The name is the number of files before. Beside Spark's log, it is copied with savepoints. Every hundredth look puts
all entries into one file, whose name says how many it has: `000000000102.all`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.errors import CheckpointError
from opchain.runtime.files.file_systems import FileStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALL = ".all"
_LOOKS_PER_FILE = 100


class FoundFilesLog:
    """One source's log.

    Args:
        url: Its folder.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def read(self) -> list[FileStatus]:
        """All files so far, in the order in which they were found.

        Raises:
            CheckpointError: A part of the log is missing.
        """
        storage = checkpoint_storage(self.url)
        names = sorted(storage.children(""))
        merged = max((name for name in names if name.endswith(_ALL)), default=None)
        found = [] if merged is None else _parsed(storage.read(merged))
        for name in names:
            if name.isdecimal() and int(name) >= len(found):
                if int(name) > len(found):
                    raise CheckpointError(
                        f"{self.url}: the log of found files has {len(found)} files and goes on with number "
                        f"{int(name)}: parts are missing; restore the folder as a whole"
                    )
                found += _parsed(storage.read(name))
        return found

    def append(self, known: int, files: Sequence[FileStatus]) -> None:
        """Adds files behind the first `known` ones."""
        storage = checkpoint_storage(self.url)
        lines = (json.dumps({"path": file.path, "size": file.size}) for file in files)
        storage.write(f"{known:012}", "".join(f"{line}\n" for line in lines).encode())
        names = storage.children("")
        if sum(map(str.isdecimal, names)) >= _LOOKS_PER_FILE:
            found = self.read()
            data = "".join(
                json.dumps({"path": file.path, "size": file.size}) + "\n" for file in found
            )
            storage.write(f"{len(found):012}{_ALL}", data.encode())
            for name in names:
                storage.delete(name)


def _parsed(data: bytes) -> list[FileStatus]:
    entries = map(json.loads, data.decode().splitlines())
    return [FileStatus(entry["path"], entry["size"]) for entry in entries]
