from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from example_epoch import PROGRESS
from forms import seen

from opchain.runtime.epochs.epoch_progress import EPOCHS_KEPT, EpochHistory

if TYPE_CHECKING:
    from pathlib import Path

    from forms import Ran

    from opchain.runtime.epochs.epoch_progress import EpochProgress


@pytest.fixture
def epochs(tmp_path: Path) -> list[Ran]:
    run = EpochRun(lambda env: seen(given(env, "words"), "words"), tmp_path, 2)
    found = [run.run(words=["a"] * count) for count in (2, 5)]
    run.close()
    return found


def test_totals_add_up_all_epochs(epochs: list[Ran]) -> None:
    history = EpochHistory(epochs[0].job)
    assert history.last is history.last_metrics is None
    assert history.recent == []
    assert history.totals().vertices == ()
    for ran in epochs:
        history.add(PROGRESS, ran.outcome)
    assert history.totals().vertices[0].records_in == 7
    assert (
        history.totals().vertices[0].skew == epochs[1].outcome.metrics.vertices[0].skew * 5 * 8 / 42
    )
    assert history.last_metrics is epochs[1].outcome.metrics


def test_the_latest_epochs_are_kept(epochs: list[Ran]) -> None:
    history = EpochHistory(epochs[0].job)
    for number in range(EPOCHS_KEPT + 5):
        history.add(replace(PROGRESS, epoch=number), epochs[0].outcome)
    assert [item.epoch for item in history.recent] == list(range(5, EPOCHS_KEPT + 5))
    assert history.last == history.recent[-1]


def test_all_listeners_are_called_even_if_one_of_them_raises(
    epochs: list[Ran], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def fails(progress: EpochProgress) -> None:
        raise ZeroDivisionError(f"at {progress.epoch}")

    history = EpochHistory(epochs[0].job, [fails, heard.append])
    history.add(PROGRESS, epochs[0].outcome)
    history.listen(lambda progress: heard.append(progress.epoch))
    history.add(replace(PROGRESS, epoch=2), epochs[1].outcome)
    assert heard == [PROGRESS, replace(PROGRESS, epoch=2), 2]
    assert caplog.messages == [
        f"a listener failed on epoch {number} of 'words'" for number in (1, 2)
    ]
    assert "ZeroDivisionError: at 2" in caplog.text
