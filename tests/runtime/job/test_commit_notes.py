"""A job does not resume from checkpoints that are older than its output, unless duplicates are accepted."""

from __future__ import annotations

import logging
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from crash_runs import BATCHES, CrashRun

from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> CrashRun:
    """A finished job with checkpoints from a backup that was made after its first epoch."""
    run = CrashRun(tmp_path)
    run.run(until=1)
    shutil.copytree(tmp_path / "checkpoints", tmp_path / "backup")
    run.run()
    shutil.rmtree(tmp_path / "checkpoints")
    (tmp_path / "backup").rename(tmp_path / "checkpoints")
    run.noted = 1
    return run


def test_checkpoints_from_a_backup_are_refused_with_both_remedies(
    run: CrashRun,
) -> None:
    before = run.output()
    with pytest.raises(
        CheckpointError,
        match=rf"has committed checkpoint {len(BATCHES)}, and the last checkpoint of {run.storage.url} is 1: .*"
        rf"opchain.streaming.accept-duplicates = true, which writes the output of checkpoints 2 to {len(BATCHES)} "
        r"a second time; or remove that output yourself and reset the sink's note: mv .*/committed-3-\w+ .*/committed-1-0$",
    ):
        run.run()
    assert run.output() == before


def test_duplicates_can_be_accepted_by_a_setting(
    run: CrashRun, caplog: pytest.LogCaptureFixture
) -> None:
    once = run.output()
    run.accepts_duplicates = True
    with caplog.at_level(logging.WARNING, "opchain.epochs"):
        run.run()
    assert "its later output is written a second time" in caplog.text
    twice = run.output()
    assert all(set(twice[name]) == set(once[name]) for name in once)
    assert any(len(twice[name]) > len(once[name]) for name in once)
    run.accepts_duplicates = False
    run.run()  # the notes match the checkpoints again
    assert run.output() == twice


def test_after_removing_output_and_notes_by_hand_the_job_runs(
    run: CrashRun, tmp_path: Path
) -> None:
    once = run.output()
    first = CrashRun(tmp_path / "first")
    first.run(until=1)
    for sink in (tmp_path / "out").iterdir():
        for file in sink.glob("part-*"):
            file.unlink()
        for file in (tmp_path / "first" / "out" / sink.name).glob("part-*"):
            shutil.copy(file, sink)
    for _ in (tmp_path / "out").iterdir():  # the error names one sink after the other
        with pytest.raises(CheckpointError) as caught:
            run.run()
        command = str(caught.value).partition("reset the sink's note: ")[2]
        subprocess.run(["/bin/sh", "-c", command], check=True)
    run.run()
    assert run.output() == once
