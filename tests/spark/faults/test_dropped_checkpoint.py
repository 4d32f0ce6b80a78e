"""A checkpoint is damaged before its sinks have committed: its complete output is committed nevertheless."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from crash_runs import BATCHES, CrashRun, DriverDiedError, Steps

from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "dies_at",
    [r"rename .*\.inprogress", r"note 1$", None],
    ids=["uncommitted", "committed", "ended"],
)
def test_the_output_of_a_dropped_checkpoint_is_committed_once(
    tmp_path: Path, dies_at: str | None
) -> None:
    undisturbed = CrashRun(tmp_path / "undisturbed")
    undisturbed.run()
    run = CrashRun(tmp_path / "damaged", retained=2)
    run.run(until=1)
    if dies_at is None:
        run.run(until=2)
        run.noted = 1  # as reset_to_checkpoint() does with Spark's log
    else:
        with pytest.raises(DriverDiedError):
            run.run(Steps(dies_at))
    (file, *_) = [name for name in run.storage.names("shared") if name.startswith("shared/2/")]
    (run.folder / "checkpoints" / file).write_bytes(b"")
    if dies_at is None:
        with pytest.raises(CorruptCheckpointError):
            run.run()
    run.restore_from = f"{run.storage.url}/chk-1"
    run.noted = 1
    run.run()
    assert run.noted == len(BATCHES)
    assert (run.output(), run.state()) == (undisturbed.output(), undisturbed.state())


def test_files_that_an_interrupted_commit_left_are_committed_if_the_metadata_is_damaged(
    tmp_path: Path,
) -> None:
    undisturbed = CrashRun(tmp_path / "undisturbed")
    undisturbed.run()
    run = CrashRun(tmp_path / "damaged", retained=2)
    run.run(until=1)
    moved = r"rename .*\.inprogress .*/part-"
    with pytest.raises(DriverDiedError):
        run.run(Steps(moved, lambda: None, dies_at=moved))
    assert len(list((run.folder / "out").rglob(".part*.inprogress"))) >= 2
    (run.folder / "checkpoints" / "chk-2" / "_metadata").write_bytes(b"")
    run.restore_from = f"{run.storage.url}/chk-1"
    run.noted = 1
    run.run()
    assert (run.output(), run.state()) == (undisturbed.output(), undisturbed.state())
    hidden = [file for file in (run.folder / "out").rglob(".*") if file.is_file()]
    assert hidden == []
