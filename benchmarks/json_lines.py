"""How contenders read and write JSON lines, and how their outputs are compared."""

from __future__ import annotations

import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from benchmarks.environment import PARALLELISM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BLOCK_BYTES = 1 << 20


class Written:
    """The lines in the files of a folder. They are read on the first comparison, which is not timed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Written) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"{self.digest[0]} lines (sum {self.digest[1]}) in {self.folder}"

    @cached_property
    def digest(self) -> tuple[int, int]:
        """The number of lines, and a checksum that ignores their order and blanks."""
        lines = [
            line.replace(b" ", b"")
            # Hidden files are Spark's metadata. Subfolders are buckets of a FileSink.
            for pattern in ("[!._]*", "[!._]*/[!._]*")
            for file in self.folder.glob(pattern)
            if file.is_file()
            for line in file.read_bytes().splitlines()
        ]
        return len(lines), sum(map(crc32, lines))


def empty_folder(name: str) -> Path:
    """An empty folder for a contender's output. Files of an earlier run are deleted."""
    folder = Path(tempfile.gettempdir()) / "opchain-benchmarks" / "written" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def blocks(path: Path, part: int) -> Iterator[bytes]:
    """The lines that begin in one part of a file, in blocks of whole lines."""
    size = path.stat().st_size
    first, last = part * size // PARALLELISM, (part + 1) * size // PARALLELISM
    with path.open("rb") as file:
        if first:
            file.seek(first - 1)
            file.readline()
        while (left := last - file.tell()) > 0:
            block = file.read(min(left, _BLOCK_BYTES))
            yield block if block.endswith(b"\n") else block + file.readline()


def write(folder: Path, part: int, pieces: Iterable[bytes]) -> Iterator[Any]:
    """Writes the file of one part. Returns an empty iterator, for `mapPartitions`."""
    with (folder / f"part-{part}.jsonl").open("wb") as file:
        file.writelines(pieces)
    yield from ()
