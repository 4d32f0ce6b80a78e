"""Many seeds of simulated drivers: each record is in the output once, whatever fails, freezes, or comes late.

`OPCHAIN_SIMULATIONS` says how many seeds each output gets, `OPCHAIN_SEED` the first one. A seed that fails is in the
message; `simulate(seed, simulated_job(OUTPUT))` runs it again, step by step.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from simulated_drivers import OUTPUTS, simulate, simulated_job

from opchain.runtime.checkpoint import coordinator
from opchain.runtime.checkpoint.epoch_files import metadata_name

if TYPE_CHECKING:
    from opchain.runtime.program.vertex_program import JobProgram

SEEDS = int(os.environ.get("OPCHAIN_SIMULATIONS", "100"))
FIRST = int(os.environ.get("OPCHAIN_SEED", "1"))


@pytest.fixture(scope="module")
def job() -> JobProgram:
    return simulated_job("files")


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # each fault gives a warning


@pytest.mark.parametrize("output", OUTPUTS)
def test_no_seed_loses_or_doubles_a_record(output: str) -> None:
    job = simulated_job(output)
    faults = {"die": 0, "fail": 0, "lost": 0, "late": 0}
    for seed in range(FIRST, FIRST + SEEDS):
        for line in simulate(seed, job).trace:
            action = line.split()[1]
            if action in faults:
                faults[action] += 1
    assert min(faults.values()) > SEEDS / 10  # there was something to survive


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_seed_gives_the_same_run_each_time(output: str) -> None:
    job = simulated_job(output)
    for seed in (3, 7):
        first, again = simulate(seed, job), simulate(seed, job)
        assert first.trace == again.trace
        assert first.stored == again.stored


def test_seeds_that_lost_records_are_right() -> None:
    """Seed 21211: a driver that was frozen before it listed staged files removed the files of its successor."""
    simulate(21211, simulated_job("table"))


def test_without_fences_some_seed_loses_records(
    job: JobProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "fence_next_epoch", lambda *_: None)
    monkeypatch.setattr(coordinator, "name_to_publish", lambda _, epoch, __: metadata_name(epoch))

    def is_right(seed: int) -> bool:
        with suppress(AssertionError):
            simulate(seed, job)
            return True
        return False

    assert not all(map(is_right, range(100, 1000)))
