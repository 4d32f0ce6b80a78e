"""Many seeds of simulated drivers: each record is in the output once, whatever driver fails, freezes, or is late.

`OPCHAIN_SIMULATIONS` sets the number of seeds per output, `OPCHAIN_SEED` the first seed. The message of a failure
contains the seed; `simulate(seed, simulated_job(OUTPUT), OUTPUT)` runs the same steps again.
"""

from __future__ import annotations

import gc
import logging
import os
from typing import TYPE_CHECKING, Any

import pytest
from simulated_drivers import OUTPUTS, simulate, simulated_job
from simulated_outputs import _MySqlSession
from simulated_storage import SimulatedStorage

from opchain.runtime.checkpoint import coordinator
from opchain.runtime.checkpoint.epoch_files import metadata_name
from opchain.runtime.connectors.jdbc import sink as jdbc_sink
from opchain.runtime.connectors.kafka import outbox
from opchain.runtime.connectors.lakes import IcebergSink
from opchain.runtime.connectors.staged_files import _Staging
from opchain.runtime.job.epochs import Epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Break = Callable[[pytest.MonkeyPatch], None]

SEEDS = int(os.environ.get("OPCHAIN_SIMULATIONS", "50"))
FIRST = int(os.environ.get("OPCHAIN_SEED", "1"))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # each fault logs a warning


@pytest.fixture(scope="module", autouse=True)
def _fast_collections() -> Iterator[None]:
    """Freezes existing objects, since each run collects garbage several times."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("output", OUTPUTS)
def test_no_seed_loses_or_repeats_a_record(output: str) -> None:
    job = simulated_job(output)
    faults = {"die": 0, "fail": 0, "lost": 0, "late": 0}
    for seed in range(FIRST, FIRST + SEEDS):
        for line in simulate(seed, job, output).trace:
            action = line.split()[1]
            if action in faults:
                faults[action] += 1
    assert min(faults.values()) > SEEDS / 10  # at least one fault has happened


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_seed_gives_the_same_run_each_time(output: str) -> None:
    job = simulated_job(output)
    for seed in (3, 7):
        first, again = simulate(seed, job, output), simulate(seed, job, output)
        assert first.trace == again.trace
        assert first.stored == again.stored


def log_is_overwritten(patches: pytest.MonkeyPatch) -> None:
    """A replaced driver can overwrite the offset log, and checkpoints contain no offsets."""
    publish = SimulatedStorage.publish

    def write(storage: Any, name: str, data: bytes) -> None:
        is_logged = name.startswith("offsets/")
        (SimulatedStorage.write if is_logged else publish)(storage, name, data)

    patches.setattr(SimulatedStorage, "publish", write)
    patches.setattr(Epochs, "read_to", None)


def no_fences(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(coordinator, "fence_next_epoch", lambda *_: None)
    patches.setattr(coordinator, "name_to_publish", lambda _, epoch, __: metadata_name(epoch))


def no_note(patches: pytest.MonkeyPatch) -> None:
    """Sinks do not record their commits."""
    patches.setattr(outbox, "_notes", lambda *_: {})
    patches.setattr(jdbc_sink, "_is_committed", lambda *_: False)
    patches.setattr(_MySqlSession, "fetchone", lambda _: (-1, 0))
    patches.setattr(IcebergSink, "last_commit", lambda *_: None)


def no_list(patches: pytest.MonkeyPatch) -> None:
    """FileSink forgets the files of an interrupted commit whose checkpoint is damaged."""
    patches.setattr(_Staging, "_complete_commit", lambda *_: None)


FAILING: list[tuple[Break, str, int]] = [
    (log_is_overwritten, "files", 56),
    (log_is_overwritten, "kafka", 241),
    (no_fences, "files", 33),
    (no_list, "files", 6127),
    (no_note, "kafka", 15),
    (no_note, "postgresql", 0),
    (no_note, "iceberg", 0),
    (no_note, "mysql", 0),
]


@pytest.mark.parametrize(("undo", "output", "seed"), FAILING)
def test_seeds_fail_without_the_protection_that_they_test(
    undo: Break, output: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = simulated_job(output)
    simulate(seed, job, output)
    undo(monkeypatch)
    with pytest.raises(AssertionError, match=f"^seed {seed}: "):
        simulate(seed, job, output)


@pytest.mark.parametrize("seed", [157, 247])
def test_a_producer_of_an_earlier_run_is_not_reused(seed: int) -> None:
    """A process started its job again after another process had sent more. The sink had kept its producer."""
    simulate(seed, simulated_job("kafka"), "kafka")
