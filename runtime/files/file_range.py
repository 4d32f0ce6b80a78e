"""Parts of files, and how they are dealt out to subtasks."""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapreplace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.files.file_systems import FileStatus


class FileRange(NamedTuple):
    """The records that begin in the bytes `start` to `stop` of a file, but for the first `skip`.

    `stop` is None for all of a file that can't be cut. `skip` is the position in the range: a reader
    that has given n more records continues, elsewhere or later, with `after(n)`. Flink: FileSourceSplit
    with its CheckpointedPosition.
    """

    path: str
    start: int
    stop: int | None
    skip: int = 0

    def after(self, records: int) -> FileRange:
        """The same range when so many more records of it were read."""
        return self._replace(skip=self.skip + records)


def deal_out(
    files: Sequence[FileStatus], parallelism: int, can_be_cut: Callable[[str], bool]
) -> list[list[FileRange]]:
    """The bytes of all files in contiguous parts of equal size, one for each subtask.

    A file that can't be cut goes to the subtask to whose part its first byte belongs.
    """
    parts: list[list[FileRange]] = [[] for _ in range(parallelism)]
    total = sum(file.size for file in files)
    borders = [number * total // parallelism for number in range(parallelism + 1)]
    begin = 0
    for path, size in files:
        end = begin + size
        number = min(bisect_right(borders, begin) - 1, parallelism - 1)
        if not can_be_cut(path):
            if size:
                parts[number].append(FileRange(path, 0, None))
        else:
            position = begin
            while position < end:
                stop = min(borders[number + 1], end)
                if position < stop:
                    parts[number].append(FileRange(path, position - begin, stop - begin))
                position = max(position, stop)
                number += 1
        begin = end
    return parts


def deal_out_whole(
    files: Sequence[FileStatus], parallelism: int, can_be_cut: Callable[[str], bool]
) -> list[list[FileRange]]:
    """Whole files, one after the other, each to the subtask that has the fewest bytes to read so far.

    That is what Flink's readers get, which ask for the next file when they have read one, if all are equally
    fast. So a subtask that reads several files gets them in the order of their paths.
    """
    parts: list[list[FileRange]] = [[] for _ in range(parallelism)]
    waiting = [(0, number) for number in range(parallelism)]
    for path, size in files:
        if size:
            read, number = waiting[0]
            parts[number].append(FileRange(path, 0, size if can_be_cut(path) else None))
            heapreplace(waiting, (read + size, number))
    return parts
