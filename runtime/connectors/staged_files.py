"""Commits the files of a FileSink.

A sink stages its files in a hidden folder below its output, `.opchain/<lineage>.<operator>`. The commit moves each file
to its final name. The final name contains a random id, so it is unique, and a commit need not list the output. Its time
does not depend on the number of files in the output.

Before the commit moves the first file of a checkpoint, it checks that all files exist. Then it creates an empty *note*
beside them: `committed-<checkpoint>-<digest of the staged names>`. So a missing file means one of two things:

- The note exists: an earlier attempt of the same commit has moved the file. Perhaps a reader has moved it again.
- The note does not exist: the file was removed before it was committed. This is an error, since records would be lost.

With a `Compaction` the commit merges the files of a bucket first. It writes the merged file under a staged name beside
them, removes the files, and moves the merged file to its final name. So a repeated commit sees from the remaining files
where the last attempt stopped, and a reader never sees a record twice.

The note also says which checkpoint the output contains, even if the checkpoints were restored from a backup.

Until all files are moved, a hidden file beside the note lists them. If the driver dies before that, and the metadata of
the checkpoint is damaged, the next run moves the files of the list.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from opchain.runtime.errors import SinkError
from opchain.runtime.files.file_systems import FileSystem, file_system_of, joined, name_of
from opchain.runtime.functions.sink import Committer, SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


STAGING = ".opchain"
"""The folder below a sink's output in which files are staged."""

IN_PROGRESS = ".inprogress"
"""The end of the names of staged files."""

_CLAIM = re.compile(r"\.(?P<attempt>[0-9a-f]{32})(?P<part>\..*)")
_NOTE = re.compile(r"committed-(?P<checkpoint>\d+)-(?P<digest>[0-9a-f]+)")
_RESET = "0"
"""The digest in a note that was reset: no file of its checkpoint is moved again."""
_SHOWN = 5
_COPIED_BYTES = 1 << 20


class StagedFile(NamedTuple):
    """A complete file before its commit: the committable of a FileSink.

    `checkpoint_id` is None for a file of a bounded job. `where` is the operator, for errors. `size` is in bytes.
    """

    staged: str
    path: str
    checkpoint_id: int | None
    where: str
    size: int = 0

    @property
    def folder(self) -> str:
        """The folder in which the file is staged."""
        return self.staged.rpartition("/")[0]

    @property
    def bucket(self) -> str:
        """The folder of the final name."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True)
class Compaction:
    """How the commit merges files: see FileCompactStrategy and FileCompactor.

    Attributes:
        delimiter: The bytes between two files in the merged one.
        size_threshold: The size in bytes at which a merged file is complete; None for one file per bucket and commit.
        threads: The number of files that are merged at the same time.
    """

    delimiter: bytes
    size_threshold: int | None
    threads: int

    def groups(self, files: Sequence[StagedFile]) -> list[_Group]:
        """The groups of files that are merged. They are the same in every attempt of a commit."""
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
        """The final name of the merged file, as in Flink."""
        folder, _, name = self.files[0].path.rpartition("/")
        return joined(folder, f"compacted-{name}")

    def merged(self, attempt: str) -> str:
        """The staged name of the file that an attempt has merged."""
        return joined(self.files[0].folder, f".{attempt}.{name_of(self.path)}{IN_PROGRESS}")

    def claimed(self, attempt: str) -> str:
        """The name that an attempt gives the first part. Then its merged file is the one that is shown."""
        return joined(self.files[0].folder, f".{attempt}{name_of(self.files[0].staged)}")

    def claim_in(self, names: Collection[str]) -> str | None:
        """The attempt that has renamed the first part; None if there is no such name."""
        found = (_CLAIM.fullmatch(name) for name in names)
        part = name_of(self.files[0].staged)
        return next((match["attempt"] for match in found if match and match["part"] == part), None)


def staging_folder(base_path: str, origin: SinkOrigin) -> str:
    """The folder in which a sink stages its files."""
    return joined(base_path, STAGING, f"{origin.lineage}.{origin.operator_id}")


class FileCommitter(Committer):
    """Moves staged files to their final names, on the driver."""

    committable = StagedFile

    def __init__(
        self,
        base_path: str,
        compaction: Compaction | None = None,
        success_file: str | None = None,
    ) -> None:
        self._base_path = base_path
        self._compaction = compaction
        self._success_file = success_file

    def commit(self, committables: Sequence[StagedFile]) -> None:
        """Moves the files that no earlier attempt has moved.

        Raises:
            SinkError: Files that were never committed are missing.
        """
        for (folder, checkpoint_id), files in groupby(
            committables, key=lambda file: (file.folder, file.checkpoint_id)
        ):
            staging = _Staging(folder, self._compaction, self._success_file)
            if checkpoint_id is None:
                staging.commit_job(list(files))
            else:
                staging.commit_checkpoint(checkpoint_id, list(files))

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes all staged files of the sink. It first completes a commit that was interrupted."""
        folder = staging_folder(self._base_path, origin)
        _Staging(folder, self._compaction, self._success_file).discard(origin.where, confirm)

    def last_commit(self, origin: SinkOrigin) -> int | None:
        """The checkpoint of the last note."""
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
    """The contents of a staging folder. It contains the files of few epochs, even if a job runs for years."""

    def __init__(
        self,
        folder: str,
        compaction: Compaction | None = None,
        success_file: str | None = None,
    ) -> None:
        self.folder = folder
        self._compaction = compaction
        self._success_file = success_file
        self._files: FileSystem = file_system_of(folder)
        self._look()

    def _look(self) -> None:
        content = self._files.content(self.folder)
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
            self._write_list(note, files)
            self._files.touch(self.path_of(note))
            self._files.sync_folder(self.folder)
        self._move(files)
        self._remove_list(note)
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
        is_claimed = group.claim_in(self._staged) is not None
        return is_claimed or self._files.status(group.path) is not None

    def discard(self, where: str, confirm: Callable[[], None]) -> None:
        found = sorted(self._staged)
        confirm()
        self._complete_commit(where)
        for name in found:
            with suppress(FileNotFoundError):  # its writer has removed it
                self._files.delete(joined(self.folder, name))
        self._remove_folder()

    def _complete_commit(self, where: str) -> None:
        """Moves the files that an interrupted commit has left."""
        last = max(self.notes, default=None)
        if last is None or not self._is_staged(self._list_of(last)):
            return
        try:
            with self._files.open_input(self._list_of(last)) as stream:
                listed = json.loads(stream.read())
        except FileNotFoundError:  # the run that has replaced this one has moved them
            return
        self._move(
            [
                StagedFile(joined(self.folder, name), path, last[0], where, size)
                for name, path, size in listed
            ]
        )

    def _write_list(self, note: tuple[int, str], files: Sequence[StagedFile]) -> None:
        self._remove_list(note)  # of a driver that died before it created the note
        listed = [(name_of(file.staged), file.path, file.size) for file in files]
        with self._files.create(self._list_of(note)) as stream:
            stream.write(json.dumps(listed).encode())
            self._files.complete(stream)

    def _remove_list(self, note: tuple[int, str]) -> None:
        with suppress(FileNotFoundError):
            self._files.delete(self._list_of(note))

    def reset(self, checkpoint_id: int) -> None:
        if max(self.notes, default=(0, ""))[0] > checkpoint_id:
            self._files.touch(self.path_of((checkpoint_id, _RESET)))
            self.remove_notes(lambda found: found > checkpoint_id)

    def remove_notes(self, is_old: Callable[[int], bool]) -> None:
        for note in sorted(self.notes):
            if is_old(note[0]):
                with suppress(FileNotFoundError):  # removed by the run that has replaced this one
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
            if self._success_file is not None:
                self._files.touch(joined(folder, self._success_file))

    def _merge(self, group: _Group) -> None:
        """Merges files once, even if two drivers do it at the same time.

        Each attempt writes a merged file of its own. Then it renames the first part, which only one attempt can do. The new
        name says whose merged file is shown. Every driver moves that file and removes the parts, the first part last.
        """
        attempt = group.claim_in(self._staged)
        while attempt is None:
            left = [file for file in group.files if self._is_staged(file.staged)]
            if not left:
                return  # an earlier attempt has done all of it
            if len(group.files) == 1:
                with suppress(FileNotFoundError):
                    self._files.move(left[0].staged, group.path)
                return
            if left != group.files:
                gone = ", ".join(file.staged for file in group.files if file not in left)
                raise SinkError(
                    f"{left[0].where}: files were removed before they were merged into {group.path}: {gone}. Restore "
                    f"them, or delete {', '.join(file.staged for file in left)} to continue without their records, and start "
                    "the job again"
                )
            attempt = self._claim(group)
        with suppress(FileNotFoundError):  # another driver has moved it
            self._files.move(group.merged(attempt), group.path)
        self._files.sync_folder(group.files[0].bucket)
        for path in (*(file.staged for file in group.files[1:]), group.claimed(attempt)):
            with suppress(FileNotFoundError):
                self._files.delete(path)

    def _claim(self, group: _Group) -> str | None:
        """Merges files, and renames the first part. None if another driver was faster; then it looks again."""
        attempt = uuid.uuid4().hex
        try:
            self._concatenate(group, group.merged(attempt))
            self._files.sync_folder(self.folder)
            self._files.move(group.files[0].staged, group.claimed(attempt))
        except FileNotFoundError:
            with suppress(FileNotFoundError):
                self._files.delete(group.merged(attempt))
            self._look()
            return group.claim_in(self._staged)
        return attempt

    def _concatenate(self, group: _Group, path: str) -> None:
        assert self._compaction is not None
        merged = self._files.create(path)
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
                f"{note} to continue without their records, and start the job again"
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

    def _list_of(self, note: tuple[int, str]) -> str:
        return joined(self.folder, f".committed-{note[0]}-{note[1]}.files")


def _digest(files: Sequence[StagedFile]) -> str:
    names = "\n".join(sorted(name_of(file.staged) for file in files))
    return hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
