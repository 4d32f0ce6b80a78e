"""Resuming from an earlier checkpoint if a file of the last one is damaged.

The job fails with an error that names the last intact checkpoint. It never falls back by itself: the user sets
`execution.state-recovery.path` to that checkpoint, in the job's own checkpoint directory. Later checkpoints are then
dropped, but only if the last one is damaged. So a setting that the user forgets to remove does not undo newer work.

The epochs of dropped checkpoints run again with their old processing time, which rebuilds their state. Sinks do not
commit these epochs a second time.

Flink: a job that is started with `-s` and the path of a retained checkpoint.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.epoch_files import (
    checkpoint_ids,
    checkpoint_name,
    completed_checkpoints,
    last_file,
)
from opchain.runtime.checkpoint.metadata import CheckpointMetadata, decode, read_metadata
from opchain.runtime.checkpoint.savepoint import Located, checkpoint_id_in, problems_of
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
    from opchain.runtime.checkpoint.storage import CheckpointStorage

SETTING = "execution.state-recovery.path"
RETAINED = "execution.checkpointing.num-retained"

_REPLACED = "_replaced"

_LOG = logging.getLogger(__name__)


def suggest_earlier_checkpoint(
    storage: CheckpointStorage, error: CorruptCheckpointError, checkpoint_id: int
) -> CorruptCheckpointError:
    """Adds to an error the checkpoint from which the job can resume.

    Args:
        storage: The checkpoint directory.
        error: The error that names the damaged file.
        checkpoint_id: The checkpoint of that file.
    """
    earlier = next(
        (found for found in _before(storage, checkpoint_id) if is_whole(storage, found)), None
    )
    if earlier is None:
        way = (
            f"there is no intact checkpoint before {checkpoint_id} ({RETAINED}=2 or more retains some): restore "
            "the file, or start from a savepoint in another directory"
        )
    else:
        way = (
            f"checkpoint {earlier} is intact: to resume from it, set {SETTING}="
            f"{storage.url}/{checkpoint_name(earlier)} and leave the directory unchanged"
        )
    return CorruptCheckpointError(error.name, f"{error.problem}; {way}")


def is_whole(storage: CheckpointStorage, checkpoint_id: int) -> bool:
    """Whether a checkpoint is intact. Reads all of its files."""
    try:
        return not problems_of(Located(storage, read_metadata(storage, checkpoint_id)))
    except CorruptCheckpointError:
        return False


def fall_back(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator, url: str
) -> CheckpointMetadata | None:
    """Drops the later checkpoints if `url` is a checkpoint of this run's directory.

    Returns the checkpoint to resume from, or None if no checkpoint was dropped.

    Args:
        storage: The run's checkpoint directory.
        coordinator: The run's coordinator.
        url: The checkpoint to resume from.

    Raises:
        CorruptCheckpointError: The checkpoint at `url` is missing or damaged.
    """
    checkpoint_id = checkpoint_id_in(storage, url)
    if checkpoint_id is None:
        return None
    completed = completed_checkpoints(storage)
    if completed and completed[-1] > checkpoint_id and is_whole(storage, completed[-1]):
        _LOG.warning(
            "ignoring %s=%s: the later checkpoint %d is intact", SETTING, url, completed[-1]
        )
        return None
    metadata = read_metadata(storage, checkpoint_id)
    problems = problems_of(Located(storage, metadata))
    if problems:
        raise suggest_earlier_checkpoint(storage, problems[0], checkpoint_id)
    if completed[-1] == checkpoint_id:
        return None
    for later in completed:
        if later > checkpoint_id:
            _keep(storage, later)
    dropped = coordinator.discard_after(checkpoint_id)
    _LOG.warning(
        "discarding checkpoints %s of %s: resuming from %d", dropped, storage.url, checkpoint_id
    )
    return metadata


def replaced_checkpoint(
    storage: CheckpointStorage, checkpoint_id: int
) -> CheckpointMetadata | None:
    """The metadata of the dropped checkpoint of an epoch, or None if none was dropped or it is damaged.

    Its sinks have committed the output of that epoch, and must not commit it twice.
    """
    name = _replaced_name(checkpoint_id)
    try:
        data = storage.read(name)
    except FileNotFoundError:
        return None
    return decode(data, storage.full_name(name), storage.key) if data else None


def is_dropped(storage: CheckpointStorage, checkpoint_id: int) -> bool:
    """Whether the checkpoint of an epoch was dropped, and the epoch has no new checkpoint yet."""
    return _REPLACED in storage.children(checkpoint_name(checkpoint_id))


def dropped_checkpoints(storage: CheckpointStorage, last: int) -> list[CheckpointMetadata]:
    """The readable checkpoints after checkpoint `last` that were dropped, in order.

    The driver may have died before the sinks of such a checkpoint committed. They commit now, before staged output is
    removed, because the state of the checkpoint is damaged, but its output is not.
    """
    later = (number for number in checkpoint_ids(storage) if number > last)
    dropped = (number for number in later if is_dropped(storage, number))
    return [
        found for number in dropped if (found := replaced_checkpoint(storage, number)) is not None
    ]


def forget_replaced(storage: CheckpointStorage, checkpoint_id: int) -> None:
    """Removes the note of a dropped checkpoint, after its epoch has completed a new one."""
    storage.delete(_replaced_name(checkpoint_id))


def _keep(storage: CheckpointStorage, checkpoint_id: int) -> None:
    """Keeps a copy of the metadata of an epoch that is dropped, with the commits of its sinks.

    The first copy is never replaced. A run that was replaced, and resumes here, would find the fence of the run that
    dropped the epoch, and not the checkpoint.
    """
    last = last_file(storage, checkpoint_id)
    if last is None or last.fenced_by is not None:
        return
    data = last.data
    try:
        decode(data, storage.full_name(last.name), storage.key)
    except CorruptCheckpointError as error:
        _LOG.warning(
            "%s: sinks that do not record their commits write the output of epoch %d again",
            error,
            checkpoint_id,
        )
        data = b""
    with suppress(FileExistsError):
        storage.publish(_replaced_name(checkpoint_id), data)


def _replaced_name(checkpoint_id: int) -> str:
    return f"{checkpoint_name(checkpoint_id)}/{_REPLACED}"


def _before(storage: CheckpointStorage, checkpoint_id: int) -> list[int]:
    return [found for found in reversed(completed_checkpoints(storage)) if found < checkpoint_id]
