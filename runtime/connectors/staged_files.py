"""Files of a FileSink between the task that writes them and the commit that shows them.

A sink stages its files in a hidden folder of its own below its output, `.opchain/<lineage>.<operator>`, and its
commit moves each file to its final name. The final name holds a random id, so no file ever has the name of another
one, and a commit need not look at the output: it takes the same time however many files there are.

Before the first file of a checkpoint is moved, the commit makes sure that all of them are there, and puts an empty
*note* beside them: `committed-<checkpoint>-<digest of the staged names>`. So a file that is missing means one of two
things:

- The note is there: an earlier attempt of the same commit has moved the file, and perhaps a reader has moved it on.
- The note is not there: the file was removed before it was committed. That is an error; records would be lost.

With a `Compaction` the commit merges the files of a bucket first. It writes the merged file beside them, under a staged
name, then removes the files, and then moves the merged file to its name. So a commit that is repeated knows from what
is left how far the last attempt has come, and a reader never sees a record twice.

The note also tells which checkpoint the output contains, if the checkpoints themselves come from a backup.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from opchain.runtime.errors import SinkError
from opchain.runtime.files.file_systems import FileSystem, file_system_of, joined, name_of
from opchain.runtime.functions.sink import Committer, SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


STAGING = ".opchain"
"""The folder below a sink's output in which files are staged."""

_NOTE = re.compile(r"committed-(?P<checkpoint>\d+)-(?P<digest>[0-9a-f]+)")
_RESET = "0"
"""The digest in a note that was reset: none of the checkpoint's files is moved any more."""
_SHOWN = 5
_COPIED_BYTES = 1 << 20


class StagedFile(NamedTuple):
    """A complete file that waits for its commit: the committable of a FileSink.

    `checkpoint_id` is None for a file of a bounded job. `where` is the operator, for errors. `size` is in bytes.
    """

    staged: str
    path: str
    checkpoint_id: int | None
    where: str
    size: int = 0

    @property
    def folder(self) -> str:
        """The folder in which it is staged."""
        return self.staged.rpartition("/")[0]

    @property
    def bucket(self) -> str:
        """The folder in which it will be."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True)
class Compaction:
    """How the commit merges files: see FileCompactStrategy and FileCompactor.

    Attributes:
        delimiter: What stands between two files in the merged one.
        size_threshold: A merged file is complete when it has as many bytes; None for one file per bucket and commit.
        threads: How many files are merged at a time.
    """

    delimiter: bytes
    size_threshold: int | None
    threads: int

    def groups(self, files: Sequence[StagedFile]) -> list[_Group]:
        """The files that become one, the same in every attempt at a commit."""
        found: list[_Group] = []
        filling: dict[str, _Group] = {}
        sizes: dict[str, int] = {}
        for file in files:
            if file.bucket not in filling:
                filling[file.bucket], sizes[file.bucket] = _Group([]), 0
                found.append(filling[file.bucket])
            filling[file.bucket].files.append(file)
            sizes[file.bucket] += file.size
            if self.size_threshold is not None and sizes[file.bucket] >= self.size_threshold:
                del filling[file.bucket]
        return found


@dataclass(frozen=True)
class _Group:
    """Files that are merged into one."""

    files: list[StagedFile]

    @property
    def path(self) -> str:
        """The name of the merged file, as Flink gives it."""
        folder, _, name = self.files[0].path.rpartition("/")
        return joined(folder, f"compacted-{name}")

    @property
    def staged(self) -> str:
        """The merged file while it waits."""
        return joined(self.files[0].folder, f".{name_of(self.path)}")


def staging_folder(base_path: str, origin: SinkOrigin) -> str:
    """Where a sink stages its files."""
    return joined(base_path, STAGING, f"{origin.lineage}.{origin.operator_id}")


class FileCommitter(Committer):
    """Moves staged files to their names, on the driver."""

    def __init__(self, base_path: str, compaction: Compaction | None = None) -> None:
        self._base_path = base_path
        self._compaction = compaction

    def commit(self, committables: Sequence[StagedFile]) -> None:
        """Moves the files that no earlier attempt has moved.

        Raises:
            SinkError: Files are gone that were never committed.
        """
        for (folder, checkpoint_id), files in groupby(
            committables, key=lambda file: (file.folder, file.checkpoint_id)
        ):
            staging = _Staging(folder, self._compaction)
            if checkpoint_id is None:
                staging.commit_job(list(files))
            else:
                staging.commit_checkpoint(checkpoint_id, list(files))

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes all files of the sink that are staged."""
        _Staging(staging_folder(self._base_path, origin)).discard(confirm)

    def last_commit(self, origin: SinkOrigin) -> int | None:
        """What the last note says."""
        notes = _Staging(staging_folder(self._base_path, origin)).notes
        return max((checkpoint_id for checkpoint_id, _ in notes), default=None)

    def reset_commits(self, origin: SinkOrigin, checkpoint_id: int) -> None:
        """Replaces the notes of later checkpoints."""
        _Staging(staging_folder(self._base_path, origin)).reset(checkpoint_id)

    def how_to_reset(self, origin: SinkOrigin, checkpoint_id: int) -> str:
        """The note to rename."""
        staging = _Staging(staging_folder(self._base_path, origin))
        return (
            f"mv {staging.path_of(max(staging.notes))} {staging.path_of((checkpoint_id, _RESET))}"
        )


class _Staging:
    """A staging folder as it was when it was listed; it holds the files of few epochs, however long a job runs."""

    def __init__(self, folder: str, compaction: Compaction | None = None) -> None:
        self.folder = folder
        self._compaction = compaction
        self._files: FileSystem = file_system_of(folder)
        content = self._files.content(folder)
        names = set() if content is None else {name_of(file.path) for file in content.files}
        self.notes = {
            (int(match["checkpoint"]), match["digest"])
            for match in map(_NOTE.fullmatch, names)
            if match is not None
        }
        self._staged = {name for name in names if _NOTE.fullmatch(name) is None}

    def commit_checkpoint(self, checkpoint_id: int, files: Sequence[StagedFile]) -> None:
        note = (checkpoint_id, _digest(files))
        last = max(self.notes, default=(0, ""))[0]
        if note not in self.notes:
            if last >= checkpoint_id:
                # A later run has continued from here, or another attempt at this epoch was committed.
                return
            self._require(files, [file for file in files if not self._is_staged(file.staged)])
            self._files.touch(self.path_of(note))
            self._files.sync_folder(self.folder)
        self._move(files)
        self.remove_notes(lambda found: found < checkpoint_id)

    def commit_job(self, files: Sequence[StagedFile]) -> None:
        if self._compaction is None:
            missing = [
                file
                for file in files
                if not self._is_staged(file.staged) and self._files.status(file.path) is None
            ]
        else:
            missing = [
                file
                for group in self._compaction.groups(files)
                for file in group.files
                if not self._is_staged(file.staged) and not self._is_merged(group)
            ]
        self._require(files, missing)
        self._move(files)
        self._remove_folder()

    def _is_staged(self, path: str) -> bool:
        return name_of(path) in self._staged

    def _is_merged(self, group: _Group) -> bool:
        return self._is_staged(group.staged) or self._files.status(group.path) is not None

    def discard(self, confirm: Callable[[], None]) -> None:
        confirm()
        for name in sorted(self._staged):
            with suppress(FileNotFoundError):  # its writer has just removed it
                self._files.delete(joined(self.folder, name))
        self._remove_folder()

    def reset(self, checkpoint_id: int) -> None:
        if max(self.notes, default=(0, ""))[0] > checkpoint_id:
            self._files.touch(self.path_of((checkpoint_id, _RESET)))
            self.remove_notes(lambda found: found > checkpoint_id)

    def remove_notes(self, is_old: Callable[[int], bool]) -> None:
        for note in sorted(self.notes):
            if is_old(note[0]):
                with suppress(FileNotFoundError):  # by the run that has replaced this one
                    self._files.delete(self.path_of(note))

    def _move(self, files: Sequence[StagedFile]) -> None:
        folders = {file.bucket for file in files}
        for folder in sorted(folders):
            self._files.make_folder(folder)
        if self._compaction is None:
            for file in files:
                if self._is_staged(file.staged):
                    # The run that has replaced this one may have moved it.
                    with suppress(FileNotFoundError):
                        self._files.move(file.staged, file.path)
        else:
            with ThreadPoolExecutor(self._compaction.threads) as pool:
                list(pool.map(self._merge, self._compaction.groups(files)))
        for folder in sorted(folders):
            self._files.sync_folder(folder)

    def _merge(self, group: _Group) -> None:
        """Merges files into one; resumes from where an earlier attempt has stopped."""
        left = [file for file in group.files if self._is_staged(file.staged)]
        if not left and not self._is_staged(group.staged):
            return
        if len(group.files) == 1:
            for file in left:
                with suppress(FileNotFoundError):
                    self._files.move(file.staged, group.path)
            return
        if left and left != group.files and not self._is_staged(group.staged):
            gone = ", ".join(file.staged for file in group.files if file not in left)
            raise SinkError(
                f"{left[0].where}: files were removed before they were merged into {group.path}: {gone}. Restore "
                f"them, or delete {', '.join(file.staged for file in left)} to go on without their records, and start "
                "the job again"
            )
        if left == group.files:
            # A merged file that is there, too, may not be complete.
            if self._is_staged(group.staged):
                self._files.delete(group.staged)
            self._concatenate(group)
        for file in left:
            with suppress(FileNotFoundError):  # the run that has replaced this one has merged it
                self._files.delete(file.staged)
        self._files.sync_folder(self.folder)
        with suppress(FileNotFoundError):  # an earlier attempt has moved it
            self._files.move(group.staged, group.path)

    def _concatenate(self, group: _Group) -> None:
        assert self._compaction is not None
        merged = self._files.create(group.staged)
        try:
            for number, file in enumerate(group.files):
                if number:
                    merged.write(self._compaction.delimiter)
                with self._files.open_input(file.staged) as part:
                    shutil.copyfileobj(part, merged, _COPIED_BYTES)
            self._files.complete(merged)
        except BaseException:
            merged.close()
            raise

    def _require(self, files: Sequence[StagedFile], missing: Sequence[StagedFile]) -> None:
        if not missing:
            return
        first = files[0]
        shown = ", ".join(file.staged for file in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        what, way = "the job", "run the job again"
        if first.checkpoint_id is not None:
            what = f"checkpoint {first.checkpoint_id}"
            note = self.path_of((first.checkpoint_id, _digest(files)))
            way = (
                "restore the files, or create the empty file "
                f"{note} to go on without their records, and start the job again"
            )
        raise SinkError(
            f"{first.where}: {len(missing)} of {len(files)} files of {what} were removed before they were "
            f"committed: {shown}{more}. Nothing was committed; {way}"
        )

    def _remove_folder(self) -> None:
        if not self.notes:
            self._files.remove_empty_folder(self.folder)
            self._files.remove_empty_folder(self.folder.rpartition("/")[0])

    def path_of(self, note: tuple[int, str]) -> str:
        return joined(self.folder, f"committed-{note[0]}-{note[1]}")


def _digest(files: Sequence[StagedFile]) -> str:
    names = "\n".join(sorted(name_of(file.staged) for file in files))
    return hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
