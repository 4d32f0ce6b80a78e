"""Files below paths, parts of files, and which subtask reads which."""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapreplace
from typing import TYPE_CHECKING, NamedTuple

from opchain.runtime.files.file_systems import FileStatus, FileSystem, file_system_of, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


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
        """The same range, after a further number of its records was read."""
        return self._replace(skip=self.skip + records)


def divide_files(
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


def assign_whole_files(
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


_HIDDEN = (".", "_")
_MAGIC = frozenset("*?[")


def list_files(paths: Iterable[str]) -> list[FileStatus]:
    """The files at qualified paths: files, folders with all that is below them, patterns.

    Names that begin with "." or "_" are left out, unless a path names them itself. A pattern stands for
    a file once, also where it matches folders above it. Flink: `NonSplittingRecursiveEnumerator` with its
    `DefaultFileFilter`; patterns are ours.

    Raises:
        FileNotFoundError: A path does not exist, or nothing matches a pattern.
    """
    return [file for path in paths for file in _files_at(path)]


def is_pattern(path: str) -> bool:
    """Whether a path that does not exist may stand for several files."""
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
        # fsspec may put one slash more behind the scheme: then one fixed part is looked at as well.
        found = match.split("/")[fixed:]
        if any(part.startswith(_HIDDEN) for part in found) and not asks_for_hidden:
            continue
        file = file_system.status(match)
        if file is None:
            yield from _files_below(file_system, match)
        else:
            yield file


def _files_below(file_system: FileSystem, folder: str) -> Iterator[FileStatus]:
    """In the order of their paths, folders and files mixed."""
    content = file_system.content(folder)
    if content is None:
        return  # gone since it was listed
    files = {file.path: file for file in content.files}
    for path in sorted((*files, *content.folders), key=name_of):
        if name_of(path).startswith(_HIDDEN):
            continue
        if path in files:
            yield files[path]
        else:
            yield from _files_below(file_system, path)
