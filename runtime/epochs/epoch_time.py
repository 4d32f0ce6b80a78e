"""The time that the clock of processing time shows throughout an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.positions import CLOCK, position

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata


def epoch_time_ms(
    now_ms: int, before: CheckpointMetadata | None, replaced: CheckpointMetadata | None
) -> int:
    """The machine's time, but never less than in the epoch before; in an epoch that is run again, as it was.

    Args:
        now_ms: The machine's time.
        before: The checkpoint of the epoch before; None if there is none.
        replaced: The checkpoint that the epoch had when it was run before; None if it was not.
    """
    if replaced is not None:
        return _shown_in(replaced)
    return now_ms if before is None else max(now_ms, _shown_in(before))


def _shown_in(metadata: CheckpointMetadata) -> int:
    # A checkpoint is begun later than its epoch, and by a clock that may have been set back meanwhile.
    shown = position(metadata, CLOCK)
    return metadata.timestamp_ms if shown is None else int(shown)
