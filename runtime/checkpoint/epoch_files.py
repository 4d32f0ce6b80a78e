"""The file that completes an epoch's checkpoint, and the fence that keeps replaced runs from writing it.

A run completes epoch 3 by publishing `chk-3/_metadata`. Publishing is a put that fails if the name exists. A run
that takes over from another one first publishes a *fence* under the very name that a replaced run would use
next. Exactly one of the two puts succeeds, whenever they arrive:

- The fence succeeds: no replaced run can complete this epoch any more, however late it resumes. The new run completes
  the epoch as `chk-3/_metadata.<number of the run>`.
- The fence fails: the replaced run has completed the epoch. The new run resumes from that checkpoint, and fences
  the epoch after it.

A run that starts from the checkpoint of another directory publishes it under the epoch that it has there, which
need not be the next one. It announces that epoch before it checks its lease and publishes. So a run that takes over
finds the announcement and fences that epoch, too, or the check finds the run that took over.

A run that takes over while `chk-3` holds only fences puts its own fence under the name to which the last of them
points. So the names of an epoch form a chain: each fence points to the name after it, the numbers of runs only
increase, and the last name of the chain is the checkpoint, a fence, or free.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.checkpoint.storage import CheckpointStorage

_FOLDER = "chk-"
_METADATA = "_metadata"
_ADOPTING = "_adopting"
_NAME = re.compile(r"_metadata(?:\.(?P<run>\d+))?")
_FENCE_START = b'{"format": "opchain fence", "run": '
_FENCE = re.compile(re.escape(_FENCE_START) + rb"([0-9]{1,18})}\n")
"""The content of a fence. A damaged one counts as a checkpoint, whose metadata is then reported as damaged."""


class EpochFile(NamedTuple):
    """The last file in an epoch's chain of names.

    Attributes:
        name: Its name in the storage.
        data: Its content.
        fenced_by: The number of the run that wrote this fence, or None if the file is a checkpoint.
    """

    name: str
    data: bytes
    fenced_by: int | None


def checkpoint_name(checkpoint_id: int) -> str:
    """The folder of an epoch's checkpoint."""
    return f"{_FOLDER}{checkpoint_id}"


def metadata_name(checkpoint_id: int, run: int | None = None) -> str:
    """The file that completes an epoch, or the one to which the fence of a run points."""
    suffix = "" if run is None else f".{run}"
    return f"{checkpoint_name(checkpoint_id)}/{_METADATA}{suffix}"


def last_file(storage: CheckpointStorage, checkpoint_id: int) -> EpochFile | None:
    """The last file in an epoch's chain of names, or None if there is none."""
    names = file_names(storage, checkpoint_id)
    if not names:
        return None
    try:
        data = storage.read(names[-1])
    except FileNotFoundError:  # a run has dropped the epoch since it was listed
        return None
    return EpochFile(names[-1], data, _fenced_by(data))


def file_names(storage: CheckpointStorage, checkpoint_id: int) -> list[str]:
    """All files in an epoch's chain of names, in its order."""
    folder = checkpoint_name(checkpoint_id)
    found = filter(None, map(_NAME.fullmatch, storage.children(folder)))
    ordered = sorted(found, key=lambda match: int(match["run"] or -1))
    return [f"{folder}/{match[0]}" for match in ordered]


def completed_checkpoints(storage: CheckpointStorage) -> list[int]:
    """The ids of the complete checkpoints in a storage, in order."""
    return [number for number in checkpoint_ids(storage) if _is_completed(storage, number)]


def name_to_publish(storage: CheckpointStorage, checkpoint_id: int, run: int) -> str:
    """The name under which a run completes an epoch or fences it.

    If the last file is a checkpoint or the fence of a later run, this is the name of that file, so the publish fails.
    """
    last = last_file(storage, checkpoint_id)
    if last is None:
        return metadata_name(checkpoint_id)
    if last.fenced_by is None or last.fenced_by > run:
        return last.name
    return metadata_name(checkpoint_id, last.fenced_by)


def fence_document(run: int) -> bytes:
    """The content of a run's fence."""
    return b"%b%d}\n" % (_FENCE_START, run)


def publish_adopted(
    storage: CheckpointStorage,
    checkpoint_id: int,
    data: bytes,
    run: int,
    require: Callable[[], None],
) -> None:
    """Publishes the checkpoint of another directory under its epoch.

    Args:
        storage: The run's checkpoint directory, which has no checkpoint.
        checkpoint_id: Its id.
        data: Its metadata.
        run: The number of the run.
        require: Raises if a later run has taken over.

    Raises:
        FileExistsError: A later run has fenced the epoch.
    """
    announcement = f"{checkpoint_name(checkpoint_id)}/{_ADOPTING}"
    storage.write(announcement, b"")
    require()
    storage.publish(name_to_publish(storage, checkpoint_id, run), data)
    storage.delete(announcement)


def fence_next_epoch(storage: CheckpointStorage, run: int, require: Callable[[], None]) -> None:
    """Keeps all earlier runs from completing the epoch after the last completed one.

    Args:
        storage: The checkpoint directory.
        run: The number of the run that takes over.
        require: Raises if a later run has taken over.
    """
    while True:
        require()
        announced = [
            number
            for number in checkpoint_ids(storage)
            if _ADOPTING in storage.children(checkpoint_name(number))
        ]
        completed = completed_checkpoints(storage)
        following = max(completed, default=0) + 1
        try:
            for number in sorted({following, *announced}.difference(completed)):
                _fence(storage, number, run)
        except FileExistsError:
            continue  # an earlier run has completed the epoch, or has fenced it, since it was looked up
        return


def _fence(storage: CheckpointStorage, checkpoint_id: int, run: int) -> None:
    last = last_file(storage, checkpoint_id)
    if last is None or last.fenced_by != run:  # equal if the answer to an earlier attempt was lost
        storage.publish(name_to_publish(storage, checkpoint_id, run), fence_document(run))


def checkpoint_ids(storage: CheckpointStorage) -> list[int]:
    """The ids of the checkpoints that have a folder, in order."""
    return sorted(
        int(name.removeprefix(_FOLDER))
        for name in storage.children()
        if name.startswith(_FOLDER) and name.removeprefix(_FOLDER).isdecimal()
    )


def _is_completed(storage: CheckpointStorage, checkpoint_id: int) -> bool:
    last = last_file(storage, checkpoint_id)
    return last is not None and last.fenced_by is None


def _fenced_by(data: bytes) -> int | None:
    found = _FENCE.fullmatch(data)
    return int(found[1]) if found else None
