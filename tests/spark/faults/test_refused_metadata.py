"""The storage accepts the state of all tasks, but not the metadata that would complete the checkpoint."""

from __future__ import annotations

import errno
import logging
import os
from typing import TYPE_CHECKING, Any

import pytest
from crash_runs import BATCHES, CrashRun

from opchain.runtime.checkpoint.epoch_files import completed_checkpoints
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.checkpoint.storage import LocalStorage
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Refuse = Callable[..., list[str]]

FIRST, LAST = 1, len(BATCHES)


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Fails writes of an epoch's metadata, before or after storing it; returns the file name of each attempt."""

    def refusing(epoch: int, times: int, *, is_there: bool = False) -> list[str]:
        attempts: list[str] = []
        publish = LocalStorage.publish

        def refused(storage: LocalStorage, name: str, data: bytes) -> None:
            if name == f"chk-{epoch}/_metadata":
                attempts.append(name)
                if len(attempts) <= times:
                    if is_there:
                        publish(storage, name, data)
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            publish(storage, name, data)

        monkeypatch.setattr(LocalStorage, "publish", refused)
        return attempts

    return refusing


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    run = CrashRun(tmp_path_factory.mktemp("undisturbed"))
    run.run()
    return run.output(), run.state()


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("epoch", range(FIRST, LAST + 1))
def test_an_epoch_is_run_again_up_to_the_tolerable_number_of_failures(
    refuse: Refuse,
    tmp_path: Path,
    undisturbed: Any,
    caplog: pytest.LogCaptureFixture,
    epoch: int,
    times: int,
) -> None:
    attempts = refuse(epoch, times)
    run = CrashRun(tmp_path, tolerable_failures=2)
    with caplog.at_level(logging.WARNING, "opchain.epochs"):
        run.run()
    assert (run.output(), run.state()) == undisturbed
    assert len(attempts) == times + 1
    said = f"checkpoint {epoch} failed (FINALIZE_CHECKPOINT_FAILURE): its metadata can't be written to {run.storage.url}: "
    again = [message for message in caplog.messages if message.startswith(said)]
    assert len(again) == times
    assert all(message.endswith("Input/output error; retrying its epoch") for message in again)
    run.run()  # which removes unreferenced files
    assert run.left_over() == []


@pytest.mark.parametrize("epoch", range(FIRST, LAST + 1))
def test_more_failures_than_tolerable_end_the_run_and_the_next_one_resumes(
    refuse: Refuse, tmp_path: Path, undisturbed: Any, epoch: int
) -> None:
    attempts = refuse(epoch, 2)
    run = CrashRun(tmp_path, tolerable_failures=1)
    with pytest.raises(CheckpointError, match="Input/output error; 2 in a row, tolerable: 1"):
        run.run()
    assert len(attempts) == 2
    assert run.noted == epoch - 1
    run.run()
    assert (run.output(), run.state()) == undisturbed
    assert run.left_over() == []


@pytest.mark.parametrize("epoch", range(FIRST, LAST + 1))
def test_metadata_that_was_stored_although_the_write_failed_is_complete(
    refuse: Refuse, tmp_path: Path, undisturbed: Any, epoch: int
) -> None:
    refuse(epoch, 1, is_there=True)
    run = CrashRun(tmp_path, tolerable_failures=1)
    with pytest.raises(CheckpointError, match=rf"checkpoint {epoch} .*is complete.*start the job"):
        run.run()
    run.run()
    assert (run.output(), run.state()) == undisturbed
    complete = completed_checkpoints(
        run.storage
    )  # the last one is removed when a later one is complete
    kept = {name for found in complete for name in read_metadata(run.storage, found).files}
    assert set(run.left_over()) <= kept
