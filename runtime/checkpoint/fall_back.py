"""Resuming from an earlier checkpoint if a file of the last one is damaged.

The job fails with an error that names the last intact checkpoint. It never falls back by itself: the user sets
`execution.state-recovery.path` to that checkpoint, in the job's own checkpoint directory. Later checkpoints are then
dropped, but only if the last one is damaged. So a setting that somebody forgets to remove does not undo newer work.

The epochs of dropped checkpoints run again at the times at which they ran before, which rebuilds their state. Sinks do
not commit these epochs a second time.

Flink: a job that is started with `-s` and the path of a retained checkpoint.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.epoch_files import checkpoint_name, completed_epochs, last_file
from opchain.runtime.checkpoint.metadata import CheckpointMetadata, decode, read_metadata
from opchain.runtime.checkpoint.savepoint import Located, epoch_in, problems_of
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
    from opchain.runtime.checkpoint.storage import CheckpointStorage

SETTING = "execution.state-recovery.path"
RETAINED = "execution.checkpointing.num-retained"

_REPLACED = "_replaced"

_LOG = logging.getLogger(__name__)


def suggest_earlier_checkpoint(
    storage: CheckpointStorage, error: CorruptCheckpointError, epoch: int
) -> CorruptCheckpointError:
    """Adds to an error the checkpoint from which the job can resume.

    Args:
        storage: Where the checkpoints are.
        error: Names the damaged file.
        epoch: The checkpoint of that file.
    """
    earlier = next((found for found in _before(storage, epoch) if is_whole(storage, found)), None)
    if earlier is None:
        way = (
            f"no checkpoint before {epoch} is kept that is whole ({RETAINED}=2 or more keeps some): restore "
            "the file, or start from a savepoint in another directory"
        )
    else:
        way = (
            f"checkpoint {earlier} is whole: start with {SETTING}={storage.url}/{checkpoint_name(earlier)} "
            "and leave the directory unchanged to resume from it"
        )
    return CorruptCheckpointError(error.name, f"{error.problem}; {way}")


def is_whole(storage: CheckpointStorage, epoch: int) -> bool:
    """Whether a checkpoint and all its files can be read; reads them."""
    try:
        return not problems_of(Located(storage, read_metadata(storage, epoch)))
    except CorruptCheckpointError:
        return False


def fall_back(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator, url: str
) -> CheckpointMetadata | None:
    """Drops the checkpoints after one of the run's own. Returns that checkpoint, None if none was dropped.

    Args:
        storage: Where the run keeps its checkpoints.
        coordinator: The run's.
        url: The checkpoint to resume from.

    Raises:
        CorruptCheckpointError: It is not there, or damaged itself.
    """
    epoch = epoch_in(storage, url)
    if epoch is None:
        return None
    completed = completed_epochs(storage)
    if completed and completed[-1] > epoch and is_whole(storage, completed[-1]):
        _LOG.warning(
            "ignoring %s=%s: the later checkpoint %d is intact", SETTING, url, completed[-1]
        )
        return None
    metadata = read_metadata(storage, epoch)
    problems = problems_of(Located(storage, metadata))
    if problems:
        raise suggest_earlier_checkpoint(storage, problems[0], epoch)
    if completed[-1] == epoch:
        return None
    for later in completed:
        if later > epoch:
            _keep(storage, later)
    dropped = coordinator.discard_after(epoch)
    _LOG.warning("discarding checkpoints %s of %s: resuming from %d", dropped, storage.url, epoch)
    return metadata


def replaced_checkpoint(storage: CheckpointStorage, epoch: int) -> CheckpointMetadata | None:
    """The metadata of a checkpoint that was dropped and whose epoch is run again; None if none was, or it is damaged.

    Its sinks have committed what they wrote in that epoch, and must not commit it twice.
    """
    name = _replaced_name(epoch)
    try:
        data = storage.read(name)
    except FileNotFoundError:
        return None
    return decode(data, storage.full_name(name), storage.key) if data else None


def is_dropped(storage: CheckpointStorage, epoch: int) -> bool:
    """Whether the checkpoint of an epoch was dropped and its epoch has not been run again."""
    return _REPLACED in storage.children(checkpoint_name(epoch))


def dropped_checkpoints(storage: CheckpointStorage, last: int) -> list[CheckpointMetadata]:
    """The checkpoints after the last one that were dropped and can be read, in order.

    The driver of such a checkpoint may have died before its sinks committed: they are to commit it now, before what
    is staged is removed. Its state is damaged; its output is not.
    """
    folders = storage.children()
    epochs = (
        int(name.removeprefix("chk-")) for name in folders if re.fullmatch(r"chk-\d{1,18}", name)
    )
    later = sorted(epoch for epoch in epochs if epoch > last and is_dropped(storage, epoch))
    return [found for epoch in later if (found := replaced_checkpoint(storage, epoch)) is not None]


def forget_replaced(storage: CheckpointStorage, epoch: int) -> None:
    """Removes the note of a dropped checkpoint, after its epoch has completed a new one."""
    storage.delete(_replaced_name(epoch))


def _keep(storage: CheckpointStorage, epoch: int) -> None:
    """Notes what the sinks have committed in an epoch that is dropped.

    The first note stays. A run that was replaced and wakes here would find the fence of the run that has dropped the
    epoch since, and not the checkpoint.
    """
    last = last_file(storage, epoch)
    if last is None or last.fenced_by is not None:
        return
    data = last.data
    try:
        decode(data, storage.full_name(last.name), storage.key)
    except CorruptCheckpointError as error:
        _LOG.warning(
            "%s: sinks that keep no note of commits write the output of epoch %d again",
            error,
            epoch,
        )
        data = b""
    with suppress(FileExistsError):
        storage.publish(_replaced_name(epoch), data)


def _replaced_name(epoch: int) -> str:
    return f"{checkpoint_name(epoch)}/{_REPLACED}"


def _before(storage: CheckpointStorage, epoch: int) -> list[int]:
    return [found for found in reversed(completed_epochs(storage)) if found < epoch]
