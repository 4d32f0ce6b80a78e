"""The files that paths stand for, as of now: call it again for those that came since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.files.file_systems import file_system_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.files.file_systems import FileStatus, FileSystem

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
