from __future__ import annotations

import pytest

from opchain.runtime.checkpoint.metadata import CheckpointMetadata, EpochInput
from opchain.runtime.epochs.event_time import epoch_time_ms


def checkpoint(begun_ms: int, shown_ms: int | None) -> CheckpointMetadata:
    return CheckpointMetadata(7, begun_ms, "job", "run", input=EpochInput(clock_ms=shown_ms))


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, 500),
        (checkpoint(400, 390), 500),
        (checkpoint(1_001, 1_000), 1_000),
        # The clock was set back during the epoch before, whose checkpoint began at the earlier time.
        (checkpoint(450, 1_000), 1_000),
        (checkpoint(1_001, None), 1_001),
    ],
)
def test_the_time_of_an_epoch_is_never_before_that_of_the_epoch_before(
    before: CheckpointMetadata | None, expected: int
) -> None:
    assert epoch_time_ms(500, before, None) == expected


@pytest.mark.parametrize("now_ms", [0, 1_000])
def test_an_epoch_that_is_run_again_has_the_same_time(now_ms: int) -> None:
    assert epoch_time_ms(now_ms, checkpoint(490, 480), checkpoint(503, 500)) == 500
