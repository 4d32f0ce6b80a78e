from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from example_epoch import PROGRESS

from opchain.runtime.epochs.epoch_progress import ProgressLog, read_progress_log

if TYPE_CHECKING:
    from pathlib import Path


def test_the_progress_log_gets_a_line_per_epoch(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "epochs.jsonl"
    ProgressLog(path)(PROGRESS)
    log = ProgressLog(path)
    log(replace(PROGRESS, epoch=2))
    log(replace(PROGRESS, epoch=3))
    assert [item.epoch for item in read_progress_log(path)] == [1, 2, 3]
    assert next(read_progress_log(path)) == PROGRESS
    assert len(path.read_text().splitlines()) == 3


def test_a_partial_line_of_a_killed_process_damages_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "epochs.jsonl"
    ProgressLog(path)(PROGRESS)
    path.write_text(path.read_text() + '{"job": "wor')
    ProgressLog(path)(replace(PROGRESS, epoch=2))
    assert [item.epoch for item in read_progress_log(path)] == [1, 2]


def test_a_file_that_cannot_be_written_is_an_error_before_the_job_begins(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        ProgressLog(tmp_path)
