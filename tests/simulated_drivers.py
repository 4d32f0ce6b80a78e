"""Drivers of one job under a scheduler that decides everything by a seed: the real code on servers in memory.

The scheduler interleaves the drivers' calls and makes them fail: see simulated_scheduler.py. The output is a folder,
a service, a table or a database, see OUTPUTS. Meanwhile the outputs do what they do by themselves: readers move
committed files away, servers end sessions, transactions time out. Clocks jump, and a file of the last checkpoint is
damaged. The source has positions, and says at each look how far an epoch may read.

At the end one driver runs without faults, then the frozen ones wake. Each record must be in the output once,
with the count that its state gives.

    # with the project and tests/ in PYTHONPATH
    python tests/simulated_drivers.py --seeds 100000 --first 0 --output files
"""

from __future__ import annotations

import argparse
import copy
import logging
import random
import sys
import uuid
from collections import Counter
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from crash_runs import DriverDiedError, in_process_epochs
from forms import job_of
from simulated_iceberg import IcebergTable
from simulated_kafka import Kafka
from simulated_outputs import DeltaTable, Folder, MergedFolder, MySql, Output, Service
from simulated_postgres import Postgres
from simulated_scheduler import LEASE_MS, Scheduler, scheduler_of_thread
from simulated_storage import STAGING, SimulatedStorage

from opchain.common import Types, WatermarkStrategy
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
from opchain.runtime.checkpoint.epoch_files import completed_checkpoints, last_file
from opchain.runtime.checkpoint.fall_back import is_whole
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.epochs.input_log import require_log, reset_to_checkpoint
from opchain.runtime.errors import CheckpointError, SinkError
from opchain.runtime.job.streaming_settings import StreamingSettings, Trigger
from opchain.runtime.local.epoch_run import LocalEpochJob
from opchain.runtime.shipping.functions import ship_vertices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.program.vertex_program import JobProgram

OUTPUTS: dict[str, type[Output]] = {
    "files": Folder,
    "merged files": MergedFolder,
    "service": Service,
    "delta": DeltaTable,
    "iceberg": IcebergTable,
    "mysql": MySql,
    "postgresql": Postgres,
    "kafka": Kafka,
}
RECORDS = 8
_MOST_PER_EPOCH = 4
_METADATA_IS_DAMAGED = 3
"""The remainder of the seeds that damage metadata. Only odd seeds retain a checkpoint before the last one."""
_SETTINGS = StreamingSettings(trigger=Trigger.AVAILABLE_NOW)


class Count(KeyedProcessFunction[int, int, str]):
    """Counts the records of a key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value} {self.count.value()}"


class Numbers(UnboundedSource[int]):
    """The numbers below RECORDS. More of them are there whenever the source looks, by chance."""

    follows_positions = True

    def initial_position(self, now_ms: int) -> int:
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        world = scheduler_of_thread()

        def look() -> int:
            return min(start + world.draw.randint(1, _MOST_PER_EPOCH), RECORDS)

        found: int = world.call("look for new records", look, changes=False)
        return found

    def splits_between(
        self, start: int, end: int, parallelism: int
    ) -> Sequence[Sequence[tuple[int, int]]]:
        return [[(start, end)]]

    def splits(self, parallelism: int) -> Any:
        raise AssertionError("each epoch has its own splits")

    def read(self, split: tuple[int, int], batch_size: int) -> Iterator[Sequence[int]]:
        yield range(*split)

    def is_at_end(self, position: int) -> bool:
        return position == RECORDS

    def checkpoint_completed(self, position: int) -> None:
        world = scheduler_of_thread()
        world.call(f"confirm {position}", lambda: world.confirmed.add(position), changes=False)


def simulated_job(output: str = "files") -> JobProgram:
    """A job that writes numbers to one of the OUTPUTS, each with a count of its key, in two subtasks."""
    kind = OUTPUTS[output]

    def drawn(env: Any) -> None:
        rows = env.from_source(Numbers(), WatermarkStrategy.no_watermarks(), "numbers").uid("rows")
        counted = rows.set_parallelism(1).key_by(lambda number: number % 2)
        counted = counted.process(Count()).uid("count")
        if kind.takes_rows:
            counted = counted.map(lambda line: (line,)).uid("row")
        kind.add_to(counted).uid("output")

    job = job_of(drawn, parallelism=2, max_parallelism=2)
    ship_vertices(job)  # cloudpickle draws an id for a class when it pickles it for the first time
    return job


def expected() -> list[str]:
    """What the output of the job is."""
    return sorted(f"{number} {number // 2 + 1}" for number in range(RECORDS))


class World(Scheduler):
    """Storage, output, clock and drivers of one seed.

    Attributes:
        files: The files of checkpoints.
        output: The target.
        confirmed: The positions of completed checkpoints that the source was told.
    """

    def __init__(self, seed: int, job: JobProgram, output: str) -> None:
        super().__init__(seed)
        self.job = job
        self.files: dict[str, bytes] = {}
        self.output = OUTPUTS[output](self)
        self.confirmed: set[int] = set()
        self._idle: list[JobProgram] = []
        self.lost_calls = (OSError, *self.output.failures)

    def storage(self, *url: Any) -> CheckpointStorage:
        """The storage at a URL. Stands for `checkpoint_storage`."""
        return SimulatedStorage(self, self.files, *url[:1])

    def run_job(self, run_id: str) -> None:
        # A process that has not died may start its job again: its sinks still have their connections.
        job = self._idle.pop() if self._idle else copy.deepcopy(self.job)
        try:
            self._run_job(job, run_id)
        finally:
            if not isinstance(sys.exc_info()[1], DriverDiedError):
                self._idle.append(job)

    def _run_job(self, job: JobProgram, run_id: str) -> None:
        storage = self.storage()
        coordinator = CheckpointCoordinator.open(
            storage,
            "simulated",
            run_id,
            tolerable_failures=self.seed % 3,
            retained=1 + self.seed % 2,
            lease_ms=LEASE_MS,
            keeps_alive=False,
            now_ms=lambda: self.now_ms,
        )
        try:
            self._fall_back(storage, coordinator)
            epochs = in_process_epochs(job, coordinator, storage, staging=STAGING)
            try:
                require_log(storage, epochs.last_batch)
                if not epochs.are_over():
                    LocalEpochJob(job, _SETTINGS)._run_epochs(epochs)
            finally:
                epochs.tasks.close()
            coordinator.sweep()
        finally:
            coordinator.close()

    def _fall_back(self, storage: CheckpointStorage, coordinator: CheckpointCoordinator) -> None:
        """Goes back to the checkpoint before, where the last one is damaged."""
        epochs = completed_checkpoints(storage)
        if len(epochs) > 1 and not is_whole(storage, epochs[-1]):
            reset_to_checkpoint(storage, coordinator, f"{storage.url}/chk-{epochs[-2]}")

    def happen(self) -> None:
        self.output.happen()

    def damage(self) -> None:
        """Cuts a file of the last checkpoint: its metadata, or a state file to which no other checkpoint refers.

        A late call may still delete the checkpoint before, which nothing could be resumed from then.
        """
        if self.late:
            return
        storage = self.storage()
        epochs = completed_checkpoints(storage)
        if len(epochs) < 2 or not is_whole(storage, epochs[-2]):
            return
        *others, last = (set(read_metadata(storage, epoch).files) for epoch in epochs)
        own = sorted(last.difference(*others))
        if self.seed % 4 == _METADATA_IS_DAMAGED:
            metadata = last_file(storage, epochs[-1])
            own = [] if metadata is None else [metadata.name]
        if own:
            self.trace.append(f"{own[0]} is damaged")
            self.files[own[0]] = b""

    @property
    def stored(self) -> tuple[Any, ...]:
        """All that the storage and the output hold."""
        return self.files, self.output.stored

    def judge(self) -> None:
        """Each record is there once, and no driver failed without a fault.

        Raises:
            AssertionError: Something was lost, doubled, or failed for no reason.
        """
        found = sorted(self.output.lines())
        assert found == expected(), f"seed {self.seed}: {found} and not {expected()}"
        assert RECORDS in self.confirmed, f"seed {self.seed}: the source was told {self.confirmed}"
        allowed = (DriverDiedError, OSError, CheckpointError, *self.output.failures)
        for driver in self.drivers:
            failure = driver.failure
            cause = failure.__cause__ if isinstance(failure, SinkError) else failure
            assert cause is None or isinstance(cause, allowed), (
                f"seed {self.seed}: driver {driver.number} failed: {failure!r}"
            )


def simulate(seed: int, job: JobProgram, output: str) -> World:
    """Runs a seed, and judges it.

    Raises:
        AssertionError: Something was lost, doubled, or failed for no reason; the message has the seed.
    """
    world = World(seed, job, output)
    ids = random.Random(seed)
    clock = SimpleNamespace(time_ns=lambda: world.now_ms * 1_000_000)
    runtime = "opchain.runtime"
    shipped = ship_vertices(job)  # each driver pickles the same job: once is enough
    substitutes = {
        **world.output.substitutes(),
        f"{runtime}.connectors.file_sink.file_system_of": lambda _: world.output.files,
        f"{runtime}.connectors.staged_files.file_system_of": lambda _: world.output.files,
        f"{runtime}.connectors.outbox.file_system_of": lambda _: world.output.files,
        f"{runtime}.connectors.lakes.file_system_of": lambda _: world.output.files,
        f"{runtime}.checkpoint.savepoint.checkpoint_storage": world.storage,
        f"{runtime}.epochs.input_log.checkpoint_storage": world.storage,
        f"{runtime}.epochs.local_epochs.ship_vertices": lambda _: shipped,
        f"{runtime}.local.epoch_run.ship_vertices": lambda _: shipped,
        f"{runtime}.job.epochs.time": clock,
        f"{runtime}.local.epoch_run.wall_clock_ms": lambda: world.now_ms,
        "uuid.uuid4": lambda: uuid.UUID(int=ids.getrandbits(128), version=4),
        "secrets.token_hex": lambda size: ids.randbytes(size).hex(),
    }
    with ExitStack() as patches:
        for name, substitute in substitutes.items():
            patches.enter_context(mock.patch(name, substitute))
        world.run()
        world.judge()
    return world


def main() -> None:
    """Runs many seeds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--output", choices=OUTPUTS, default="files")
    options = parser.parse_args()
    logging.disable()  # each fault gives a warning
    job = simulated_job(options.output)
    faults: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.seeds):
        world = simulate(seed, job, options.output)
        faults.update(line.split()[1] for line in world.trace if line[0].isdigit())
    sys.stdout.write(f"{options.seeds} seeds from {options.first}: right; calls: {dict(faults)}\n")


if __name__ == "__main__":
    import simulated_drivers  # pickled by reference; classes of a main program are pickled by value

    simulated_drivers.main()
