"""Drivers of one job under a scheduler that decides everything by a seed: the real code on a storage in memory.

A driver runs on a thread of its own and stops before each call to the storage, the output and the clock. The output is
a folder (FileSink), a service that accepts a key once (OutboxSink), a table (DeltaSink), or a database (JdbcSink for
MySQL).
The scheduler lets one driver make one step at a time. It may also let a driver die, have a call fail, do the call and
lose its answer, or do the call much later. In between readers move committed files away, and clocks jump, and a
state file of the last checkpoint is damaged. A driver that is not scheduled for a while is frozen.

At the end one driver runs without faults, then the frozen ones wake. Each record must be in the output once,
with the count that its state gives.

    # with the project and tests/ in PYTHONPATH
    python tests/simulated_drivers.py --seeds 100000 --first 0 --output files
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import random
import secrets
import sys
import threading
import uuid
from collections import Counter
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import pyarrow as pa
import pymysql
from crash_runs import DriverDiedError, delivered, in_process_epochs
from deltalake.exceptions import CommitFailedError
from epoch_runs import given
from forms import job_of
from pyarrow import parquet

from opchain.common import Encoder, Types, WatermarkStrategy
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
from opchain.runtime.checkpoint.epoch_files import completed_checkpoints
from opchain.runtime.checkpoint.fall_back import fall_back, is_whole
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.checkpoint.storage import CheckpointStorage
from opchain.runtime.connectors.jdbc.mysql import MySqlSink
from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.statement import parse_statement
from opchain.runtime.connectors.lakes import DeltaSink
from opchain.runtime.connectors.outbox import OutboxSink
from opchain.runtime.errors import CheckpointError, SinkError
from opchain.runtime.files.file_systems import FileStatus, FileSystem, FolderContent, joined
from opchain.runtime.shipping.functions import ship_vertices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.job.epochs import Epochs
    from opchain.runtime.program.vertex_program import JobProgram

OUTPUT = "simulated://output"
OUTPUTS = ("files", "service", "table", "database")
BATCHES = 3
LEASE_MS = 60_000
MOST_DRIVERS = 6
_REFUSALS = (errno.ENOSPC, errno.EIO, errno.ETIMEDOUT)


class Count(KeyedProcessFunction[str, Any, str]):
    """Counts the records of a key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value[2]} {self.count.value()}"


_driver: ContextVar[Driver | None] = ContextVar("driver", default=None)
"""The driver that this thread works for. Threads of tasks have the variables of the thread that they work for."""


class Service(OutboxSink[str]):
    """Sends lines to a service that accepts each key once, as HTTP services with an Idempotency-Key do."""

    def send(self, key: str, records: Sequence[str]) -> None:
        driver = _driver.get()
        assert driver is not None
        service, lines = driver.world.service, list(records)
        driver.world.call(f"send {key}", lambda: service.setdefault(key, lines), changes=True)


class Table(DeltaSink):
    """Writes lines to a simulated table."""

    def __init__(self) -> None:
        super().__init__(f"{OUTPUT}/table")

    def open(self) -> None:
        """The table is there."""

    def arrow_schema(self) -> Any:
        return pa.schema([("line", pa.string())])

    def _loaded(self) -> Any:
        driver = _driver.get()
        assert driver is not None
        world = driver.world
        version: int = world.call("load the table", lambda: len(world.commits), changes=False)
        return Snapshot(world, version)


class Snapshot:
    """A version of the simulated table: what DeltaSink needs of deltalake's DeltaTable."""

    def __init__(self, world: World, version: int) -> None:
        self._world, self._version = world, version

    def schema(self) -> None:
        """DeltaSink only passes it on."""

    def transaction_version(self, owner: str) -> int | None:
        commits = self._world.commits[: self._version]
        return next((commit.number for commit in reversed(commits) if commit.owner == owner), None)

    def file_uris(self) -> list[str]:
        commits = self._world.commits[: self._version]
        return [path for commit in commits for path in commit.paths]

    def create_write_transaction(
        self, actions: Sequence[Any], *_: Any, commit_properties: Any
    ) -> None:
        (transaction,) = commit_properties.app_transactions
        commit = TableCommit(
            transaction.app_id, transaction.version, [action.path for action in actions]
        )
        changes = self._world.commits

        def append() -> None:
            if any(later.owner == commit.owner for later in changes[self._version :]):
                raise CommitFailedError("another transaction of this application was committed")
            changes.append(commit)

        self._world.call(f"commit {commit.number} to the table", append, changes=True)


class Session:
    """A connection to the simulated database: what JdbcSink needs of pymysql's Connection and Cursor.

    The server ends a session that holds a lock which another one wants, as after MySQL's time-out for idle sessions.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._owner = ""
        self._rows: list[str] = []
        self._note: tuple[int, int] | None = None
        self._found: tuple[int, ...] | None = None
        self._asked("connect", lambda: None, changes=False)

    def __enter__(self) -> Session:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        if self._world.locks.get(self._owner) is self:
            del self._world.locks[self._owner]

    def cursor(self) -> Session:
        return self

    def begin(self) -> None:
        """Statements are kept until the commit in any case."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._found = None
        if statement.startswith("SELECT epoch, piece"):
            (self._owner,) = values
            self._found = self._asked("lock the note", self._lock, changes=False)
        elif statement.startswith("SELECT epoch"):
            self._found = self._asked(
                "read the note", lambda: self._world.notes.get(values[0]), changes=False
            )
        elif statement.startswith("UPDATE opchain_sinks"):
            number, piece, self._owner = values
            self._note = (number, piece)
        else:  # the table of notes, its empty note, and the engine of the table, which is right
            assert statement.startswith(("CREATE TABLE", "INSERT IGNORE", "SELECT e.engine"))

    def executemany(self, statement: str, rows: Sequence[Sequence[str]]) -> None:
        assert statement == "INSERT INTO results VALUES (%s)"
        self._rows += (line for (line,) in rows)

    def fetchone(self) -> tuple[int, ...] | None:
        return self._found

    def rollback(self) -> None:
        self._rows.clear()

    def commit(self) -> None:
        def commit() -> None:
            if self._rows and self._world.locks.get(self._owner) is not self:
                raise pymysql.OperationalError(2013, "the server ended the session")
            assert self._note is not None
            self._world.notes[self._owner] = self._note
            self._world.rows += self._rows

        self._asked("commit to the database", commit, changes=True)

    def _lock(self) -> tuple[int, int]:
        self._world.locks[self._owner] = self
        return self._world.notes.get(self._owner, (-1, 0))

    def _asked(self, what: str, effect: Callable[[], Any], *, changes: bool) -> Any:
        try:
            return self._world.call(what, effect, changes=changes)
        except OSError as error:
            raise pymysql.OperationalError(2013, str(error)) from error


def connected(**_: Any) -> Session:
    """Stands for `pymysql.connect`."""
    driver = _driver.get()
    assert driver is not None
    return Session(driver.world)


class TableCommit(NamedTuple):
    """A commit of the simulated table."""

    owner: str
    number: int
    paths: list[str]


def database() -> MySqlSink:
    """Inserts lines into a table of the simulated database."""
    sql = "INSERT INTO results VALUES (?)"
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    options.with_url("jdbc:mysql://simulated/db")
    execution = JdbcExecutionOptions.defaults()
    return MySqlSink(sql, parse_statement(sql), options.build(), execution)


def simulated_job(output: str = "files") -> JobProgram:
    """A job that writes numbers to one of the OUTPUTS, each with a count of its key, in two subtasks."""
    sink: Any
    if output == "files":
        files = FileSink.for_row_format(OUTPUT, Encoder.simple_string_encoder())
        files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        sink = files.build()
    else:
        sink = {"service": Service, "table": Table, "database": database}[output]()

    def drawn(env: Any) -> None:
        rows = given(env, "rows", WatermarkStrategy.no_watermarks()).set_parallelism(1)
        counted = rows.key_by(lambda row: row[0]).process(Count()).uid("count")
        if output in ("table", "database"):
            counted = counted.map(lambda line: (line,)).uid("row")
        counted.sink_to(sink).uid("numbers")

    job = job_of(drawn, parallelism=2, max_parallelism=2)
    ship_vertices(job)  # cloudpickle draws an id for a class when it pickles it for the first time
    return job


def rows_of(batch: int) -> list[tuple[str, int, int]]:
    """What a micro-batch reads."""
    return [(f"k{n % 2}", 0, 10 * batch + n) for n in range(3)]


def expected() -> list[str]:
    """What the output of the job is."""
    counts: Counter[str] = Counter()
    lines = []
    for batch in range(BATCHES):
        for key, _, number in rows_of(batch):
            counts[key] += 1
            lines.append(f"{number} {counts[key]}")
    return sorted(lines)


class Driver:
    """A run of the job on a thread of its own, one step at a time."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.is_over = self.is_dead = False
        self.failure: BaseException | None = None
        self.action = "go"
        self.may_fail = False
        self._turn, self._yielded = threading.Lock(), threading.Lock()
        self._turn.acquire(), self._yielded.acquire()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self, action: str = "go") -> None:
        """Lets it go on to its next call."""
        self.action = action
        self._turn.release()
        self._yielded.acquire()

    def pause(self, *, may_fail: bool) -> str:
        """Waits for the scheduler; on the driver's own thread."""
        self.may_fail = may_fail
        self._yielded.release()
        self._turn.acquire()
        if self.action == "die" and not self.is_dead:
            self.world.trace.append(f"{self.number} die")
            self.is_dead = True
        if self.is_dead:
            raise DriverDiedError
        return self.action

    def _run(self) -> None:
        self._turn.acquire()
        _driver.set(self)
        try:
            self.world.run_job(f"run-{self.number}")
        except BaseException as error:  # noqa: BLE001 - the judge looks at it
            self.failure = error
        finally:
            self.is_over = True
            self._yielded.release()


class World:
    """Storage, output, clock and drivers of one seed.

    Attributes:
        seed: Decides everything.
        trace: What happened, in order.
    """

    def __init__(self, seed: int, job: JobProgram) -> None:
        self.seed, self.job = seed, job
        self.draw = random.Random(seed)
        self.files: dict[str, bytes] = {}
        self.output: dict[str, bytes] = {}
        self.archive: dict[str, bytes] = {}
        self.service: dict[str, list[str]] = {}
        self.commits: list[TableCommit] = []
        self.rows: list[str] = []
        self.notes: dict[str, tuple[int, int]] = {}
        self.locks: dict[str, Session] = {}
        self.late: list[Callable[[], Any]] = []
        self.trace: list[str] = []
        self.now_ms = 1_000_000
        self.noted = 0
        self.is_disk_full = self.was_damaged = False
        self.drivers: list[Driver] = []

    def call(self, what: str, effect: Callable[[], Any], *, changes: bool) -> Any:
        """A call of a driver: the scheduler says what becomes of it."""
        driver = _driver.get()
        if driver is None:
            return effect()
        action = driver.pause(may_fail=changes)
        self.trace.append(f"{driver.number} {action} {what}")
        if action == "fail" or (changes and self.is_disk_full):
            code = errno.ENOSPC if self.is_disk_full else self.draw.choice(_REFUSALS)
            raise OSError(code, os.strerror(code))
        if action == "late":
            self.late.append(effect)
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        found = effect()
        if action == "lost":
            raise ConnectionError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        return found

    def run_job(self, run_id: str) -> None:
        """What a driver does."""
        storage = SimulatedStorage(self)
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
            epochs = in_process_epochs(self.job, coordinator, storage)
            try:
                self._run_epochs(epochs)
            finally:
                epochs.tasks.close()
            coordinator.sweep()
        finally:
            coordinator.close()

    def _run_epochs(self, epochs: Epochs) -> None:
        for batch in range(min(self.noted, epochs.last_batch + 1), BATCHES):
            epochs.run(delivered(rows_of(batch)), batch)
            self.call(f"note {batch}", lambda: None, changes=False)
            self.noted = max(self.noted, batch + 1)

    def _fall_back(self, storage: CheckpointStorage, coordinator: CheckpointCoordinator) -> None:
        """Goes back to the checkpoint before, where the last one is damaged."""
        epochs = completed_checkpoints(storage)
        if len(epochs) > 1 and not is_whole(storage, epochs[-1]):
            fall_back(storage, coordinator, f"{storage.url}/chk-{epochs[-2]}")

    def damage(self) -> None:
        """Cuts a state file that no checkpoint but the last one refers to.

        A late call may still delete the checkpoint before, which nothing could be resumed from then.
        """
        if self.late:
            return
        storage = SimulatedStorage(self)
        epochs = completed_checkpoints(storage)
        if len(epochs) < 2 or not is_whole(storage, epochs[-2]):
            return
        *others, last = (set(read_metadata(storage, epoch).files) for epoch in epochs)
        own = sorted(last.difference(*others))
        if own:
            self.trace.append(f"{own[0]} is damaged")
            self.files[own[0]] = b""

    def start(self) -> Driver:
        """Starts another driver."""
        driver = Driver(self, len(self.drivers) + 1)
        self.drivers.append(driver)
        return driver

    def chaos(self) -> None:
        """Steps and faults, as the seed says."""
        draw = self.draw
        faults, switches = draw.choice((0.0, 0.03, 0.1, 0.2)), draw.choice((0.01, 0.05, 0.3))
        starts = draw.choice((0.01, 0.05))
        self.start()
        current: Driver | None = None
        for _ in range(draw.randrange(20, 600)):
            event = draw.random()
            if event < starts and len(self.drivers) < MOST_DRIVERS:
                self.now_ms += draw.choice((-LEASE_MS, 10, 2 * LEASE_MS, 2 * LEASE_MS))
                current = self.start()
            elif event < 0.03 and self.late:
                self.deliver(draw.randrange(len(self.late)))
            elif event < 0.04:
                self.read_output()
            elif event < 0.043:
                self.is_disk_full = not self.is_disk_full
            alive = [driver for driver in self.drivers if not driver.is_over]
            if not alive:
                if len(self.drivers) >= MOST_DRIVERS:
                    return
                if not self.was_damaged and draw.random() < 0.3:
                    self.was_damaged = True
                    self.damage()
                self.now_ms += 2 * LEASE_MS
                current = self.start()
                continue
            if current is None or current.is_over or draw.random() < switches:
                current = draw.choice(alive)
            current.step(self._action(current, faults))

    def _action(self, driver: Driver, faults: float) -> str:
        if self.draw.random() >= (faults if driver.may_fail else faults / 10):
            return "go"
        kinds = ("die", "fail", "lost", "late")
        return self.draw.choice(kinds) if driver.may_fail else "die"

    def settle(self) -> None:
        """One driver runs without faults; then frozen ones wake, and late calls arrive."""
        self.is_disk_full = False
        self._finish()
        for driver in self.drivers:
            while not driver.is_over:
                driver.step()
        while self.late:
            self.deliver(0)
        self._finish()

    def _finish(self) -> None:
        self.now_ms += 10 * LEASE_MS
        driver = self.start()
        while not driver.is_over:
            driver.step()
        if driver.failure is not None:
            raise AssertionError(
                f"seed {self.seed}: the last driver failed: {driver.failure!r}"
            ) from driver.failure

    def deliver(self, number: int) -> None:
        """A late call takes effect."""
        self.trace.append(f"late call {number} arrives")
        with suppress(OSError, CommitFailedError, pymysql.OperationalError):
            self.late.pop(number)()

    def read_output(self) -> None:
        """A reader moves a committed file to its archive, where none may have its name."""
        shown = sorted(filter(_is_shown, self.output))
        if shown:
            path = self.draw.choice(shown)
            assert path not in self.archive, f"seed {self.seed}: {path} came a second time"
            self.archive[path] = self.output.pop(path)
            self.trace.append(f"reader moves {path}")

    @property
    def stored(self) -> tuple[Any, ...]:
        """All that the storage and the output hold."""
        return self.files, self.output, self.archive, self.service, self.commits, self.rows

    def lines(self) -> Iterator[str]:
        """What readers of the files, of the service and of the table see."""
        shown = [data for path, data in self.output.items() if _is_shown(path)]
        for data in (*self.archive.values(), *shown):
            yield from data.decode().splitlines()
        for sent in self.service.values():
            yield from sent
        yield from self.rows
        # A path that was added again is in a Delta table once.
        for path in {path for commit in self.commits for path in commit.paths}:
            rows = parquet.read_table(BytesIO(self.output[f"{OUTPUT}/table/{path}"]))
            yield from rows["line"].to_pylist()

    def judge(self) -> None:
        """Each record is there once, and no driver failed without a fault.

        Raises:
            AssertionError: Something was lost, doubled, or failed for no reason.
        """
        found = sorted(self.lines())
        assert found == expected(), f"seed {self.seed}: {found} and not {expected()}"
        for driver in self.drivers:
            failure = driver.failure
            cause = failure.__cause__ if isinstance(failure, SinkError) else failure
            assert cause is None or isinstance(
                cause, (DriverDiedError, OSError, CheckpointError, pymysql.OperationalError)
            ), f"seed {self.seed}: driver {driver.number} failed: {failure!r}"


class SimulatedStorage(CheckpointStorage):
    """A place for checkpoints whose every call is a step."""

    def __init__(self, world: World) -> None:
        self.url = "simulated://checkpoints"
        self._world = world

    def write(self, name: str, data: bytes) -> None:
        self._world.call(f"write {name}", lambda: self._files.update({name: data}), changes=True)

    def publish(self, name: str, data: bytes) -> None:
        def publish() -> None:
            if name in self._files:
                raise FileExistsError(name)
            self._files[name] = data

        self._world.call(f"publish {name}", publish, changes=True)

    def read(self, name: str) -> bytes:
        def read() -> bytes:
            if name not in self._files:
                raise FileNotFoundError(name)
            return self._files[name]

        found: bytes = self._world.call(f"read {name}", read, changes=False)
        return found

    def names(self, prefix: str = "") -> list[str]:
        start = f"{prefix}/" if prefix else ""
        found: list[str] = self._world.call(
            f"names {prefix}",
            lambda: sorted(name for name in self._files if name.startswith(start)),
            changes=False,
        )
        return found

    def children(self, folder: str = "") -> list[str]:
        start = f"{folder}/" if folder else ""
        found: list[str] = self._world.call(
            f"children {folder}",
            lambda: sorted(
                {
                    name[len(start) :].partition("/")[0]
                    for name in self._files
                    if name.startswith(start)
                }
            ),
            changes=False,
        )
        return found

    def delete(self, name: str) -> None:
        self._world.call(f"delete {name}", lambda: self._files.pop(name, None), changes=True)

    @property
    def _files(self) -> dict[str, bytes]:
        return self._world.files


class SimulatedFiles(FileSystem):
    """The output, whose every call is a step; `complete` makes a file show under its name."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[int, str] = {}

    def status(self, path: str) -> FileStatus | None:
        output = self._world.output
        found: FileStatus | None = self._world.call(
            f"status {path}",
            lambda: FileStatus(path, len(output[path])) if path in output else None,
            changes=False,
        )
        return found

    def content(self, folder: str) -> FolderContent | None:
        def look() -> FolderContent | None:
            below = [path for path in self._world.output if path.startswith(f"{folder}/")]
            own = [path for path in below if "/" not in path[len(folder) + 1 :]]
            files = [FileStatus(path, len(self._world.output[path])) for path in sorted(own)]
            return FolderContent(files, []) if below else None

        found: FolderContent | None = self._world.call(f"list {folder}", look, changes=False)
        return found

    def matches(self, pattern: str) -> list[str]:
        raise NotImplementedError(pattern)

    def open_input(self, path: str) -> Any:
        def read() -> bytes:
            if path not in self._world.output:
                raise FileNotFoundError(path)
            return self._world.output[path]

        return BytesIO(self._world.call(f"open {path}", read, changes=False))

    def create(self, path: str) -> Any:
        self._world.call(f"create {path}", lambda: None, changes=True)
        stream = BytesIO()
        self._open[id(stream)] = path
        return stream

    def make_folder(self, path: str) -> None:
        """Folders are no more than parts of names."""

    def complete(self, stream: Any) -> None:
        path, data = self._open[id(stream)], stream.getvalue()
        self._world.call(
            f"complete {path}", lambda: self._world.output.update({path: data}), changes=True
        )
        del self._open[id(stream)]
        stream.close()

    def delete(self, path: str) -> None:
        def delete() -> None:
            if self._world.output.pop(path, None) is None:
                raise FileNotFoundError(path)

        self._world.call(f"delete {path}", delete, changes=True)

    def move(self, path: str, target: str) -> None:
        def move() -> None:
            if path not in self._world.output:
                raise FileNotFoundError(path)
            assert target not in self._world.output, f"{target} is overwritten"
            self._world.output[target] = self._world.output.pop(path)

        self._world.call(f"move {joined(target)}", move, changes=True)

    def touch(self, path: str) -> None:
        self._world.call(
            f"touch {path}", lambda: self._world.output.setdefault(path, b""), changes=True
        )


def _is_shown(path: str) -> bool:
    """Whether a path is a committed file of FileSink."""
    return path.startswith(f"{OUTPUT}/") and "/." not in path and "/table/" not in path


def simulate(seed: int, job: JobProgram) -> World:
    """Runs a seed, and judges it.

    Raises:
        AssertionError: Something was lost, doubled, or failed for no reason; the message has the seed.
    """
    world = World(seed, job)
    ids = random.Random(seed)
    files = SimulatedFiles(world)

    def seeded_id() -> uuid.UUID:
        return uuid.UUID(int=ids.getrandbits(128), version=4)

    with ExitStack() as patches:
        for module in ("file_sink", "staged_files", "outbox", "lakes"):
            patches.enter_context(
                mock.patch(
                    f"opchain.runtime.connectors.{module}.file_system_of", return_value=files
                )
            )
        patches.enter_context(mock.patch.object(uuid, "uuid4", seeded_id))
        patches.enter_context(
            mock.patch.object(secrets, "token_hex", lambda size: ids.randbytes(size).hex())
        )
        patches.enter_context(
            mock.patch(
                "opchain.runtime.checkpoint.savepoint.checkpoint_storage",
                return_value=SimulatedStorage(world),
            )
        )
        # Each driver pickles the same job: once is enough.
        shipped = mock.patch(
            "opchain.runtime.epochs.local_epochs.ship_vertices", return_value=ship_vertices(job)
        )
        patches.enter_context(shipped)
        patches.enter_context(mock.patch.object(pymysql, "connect", connected))
        clock = SimpleNamespace(time_ns=lambda: world.now_ms * 1_000_000)
        patches.enter_context(mock.patch("opchain.runtime.job.epochs.time", clock))
        world.chaos()
        world.settle()
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
        world = simulate(seed, job)
        faults.update(line.split()[1] for line in world.trace if line[0].isdigit())
    sys.stdout.write(f"{options.seeds} seeds from {options.first}: right; calls: {dict(faults)}\n")


if __name__ == "__main__":
    import simulated_drivers  # pickled by reference; classes of a main program are pickled by value

    simulated_drivers.main()
