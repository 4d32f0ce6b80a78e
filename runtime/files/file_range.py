"""Lists files, splits them into ranges, and assigns the ranges to subtasks."""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapreplace
from typing import TYPE_CHECKING, NamedTuple

from opchain.runtime.files.file_systems import FileStatus, FileSystem, file_system_of, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class FileRange(NamedTuple):
    """The records that start in the bytes `start` to `stop` of a file, without the first `skip` records.

    `stop` is None for a whole file that cannot be split. `skip` is the position in the range: to continue after n more
    records, use `after(n)`. Flink: FileSourceSplit with its CheckpointedPosition.
    """

    path: str
    start: int
    stop: int | None
    skip: int = 0

    def after(self, records: int) -> FileRange:
        """The same range, after this number of additional records."""
        return self._replace(skip=self.skip + records)


def divide_files(
    files: Sequence[FileStatus], parallelism: int, can_be_cut: Callable[[str], bool]
) -> list[list[FileRange]]:
    """Divides the bytes of all files into contiguous parts of equal size, one for each subtask.

    A file that cannot be split goes to the subtask whose part contains its first byte.
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


def assign_whole_files(
    files: Sequence[FileStatus], parallelism: int, can_be_cut: Callable[[str], bool]
) -> list[list[FileRange]]:
    """Assigns each file to the subtask that has the fewest bytes so far.

    In Flink, a reader requests its next file when it has read one. If all readers are equally fast, they get the same
    files as here. A subtask reads its files in the order of their paths.
    """
    parts: list[list[FileRange]] = [[] for _ in range(parallelism)]
    waiting = [(0, number) for number in range(parallelism)]
    for path, size in files:
        if size:
            read, number = waiting[0]
            parts[number].append(FileRange(path, 0, size if can_be_cut(path) else None))
            heapreplace(waiting, (read + size, number))
    return parts


_HIDDEN = (".", "_")
_MAGIC = frozenset("*?[")


def list_files(paths: Iterable[str]) -> list[FileStatus]:
    """Lists the files at qualified paths: files, folders with all their contents, and patterns.

    Names that begin with "." or "_" are skipped, unless a path names them itself. Each file is listed once per pattern,
    even if the pattern also matches its folders. Flink: `NonSplittingRecursiveEnumerator` with `DefaultFileFilter`. Not
    in Flink: patterns.

    Raises:
        FileNotFoundError: A path does not exist, or a pattern matches nothing.
    """
    return [file for path in paths for file in _files_at(path)]


def is_pattern(path: str) -> bool:
    """Whether a path that does not exist is a pattern."""
    return not _MAGIC.isdisjoint(path)


def _files_at(path: str) -> list[FileStatus]:
    file_system = file_system_of(path)
    file = file_system.status(path)
    if file is not None:
        return [file]
    if file_system.content(path) is not None:
        return list(_files_below(file_system, path))
    if not is_pattern(path):
        raise FileNotFoundError(f"there is no file or folder '{path}'")
    found = list(dict.fromkeys(_files_matching(file_system, path)))
    if not found:
        raise FileNotFoundError(f"no file matches the pattern '{path}'")
    return found


def _files_matching(file_system: FileSystem, pattern: str) -> Iterator[FileStatus]:
    parts = pattern.split("/")
    fixed = next(number for number, part in enumerate(parts) if not _MAGIC.isdisjoint(part))
    asks_for_hidden = any(part.startswith(_HIDDEN) for part in parts[fixed:])
    for match in file_system.matches(pattern):
        # fsspec may add a slash after the scheme. Then one fixed part is checked as well.
        found = match.split("/")[fixed:]
        if any(part.startswith(_HIDDEN) for part in found) and not asks_for_hidden:
            continue
        file = file_system.status(match)
        if file is None:
            yield from _files_below(file_system, match)
        else:
            yield file


def _files_below(file_system: FileSystem, folder: str) -> Iterator[FileStatus]:
    """All files in a folder and its subfolders, in the order of their paths."""
    content = file_system.content(folder)
    if content is None:
        return  # removed since it was listed
    files = {file.path: file for file in content.files}
    for path in sorted((*files, *content.folders), key=name_of):
        if name_of(path).startswith(_HIDDEN):
            continue
        if path in files:
            yield files[path]
        else:
            yield from _files_below(file_system, path)
