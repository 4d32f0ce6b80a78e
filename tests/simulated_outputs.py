"""Simulated targets: a folder, a service, a table of Delta Lake, and a database of MySQL.

PostgreSQL, Kafka and Iceberg have modules of their own. The sinks are the real ones. A target stands for the server,
behind the functions of its client library.
"""

from __future__ import annotations

from concurrent.futures import Future
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pymysql
from deltalake.exceptions import CommitFailedError
from pyarrow import parquet
from simulated_scheduler import scheduler_of_thread
from simulated_storage import OUTPUT, SimulatedFiles

from opchain.common import Encoder, Types
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
)
from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions
from opchain.runtime.connectors.jdbc.sink import JdbcSink
from opchain.runtime.connectors.lakes import DeltaSink
from opchain.runtime.connectors.outbox import OutboxSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simulated_scheduler import Scheduler


class Output:
    """What a simulated job writes to: its content, and its own faults.

    Attributes:
        files: The file system of staged output.
        takes_rows: Whether the sink takes tuples, and not text.
        failures: The errors that faults of the target give a driver.
    """

    takes_rows = False
    failures: tuple[type[Exception], ...] = ()

    def __init__(self, world: Scheduler) -> None:
        self.world = world
        self.files = SimulatedFiles(world)

    @staticmethod
    def add_to(stream: Any) -> Any:
        """Writes a stream to the target. Returns the sink's end of the stream."""
        raise NotImplementedError

    def substitutes(self) -> dict[str, Any]:
        """What stands for the functions of the client library during a run, by their names."""
        return {}

    def happen(self) -> None:
        """Something that the target or its readers do by themselves."""

    def lines(self) -> Iterator[str]:
        """What readers see."""
        raise NotImplementedError

    @property
    def stored(self) -> Any:
        """All that it holds, to compare two runs."""
        return self.files.files, list(self.lines())


class Folder(Output):
    """A folder of FileSink. A reader moves committed files to its archive, where none may have its name."""

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self._archive: dict[str, bytes] = {}

    @staticmethod
    def add_to(stream: Any) -> Any:
        return stream.sink_to(_file_sink().build())

    def happen(self) -> None:
        shown = sorted(self._shown())
        if shown:
            path = self.world.draw.choice(shown)
            assert path not in self._archive, f"seed {self.world.seed}: {path} came a second time"
            self._archive[path] = self.files.files.pop(path)
            self.world.trace.append(f"reader moves {path}")

    def lines(self) -> Iterator[str]:
        shown = (self.files.files[path] for path in self._shown())
        for data in (*self._archive.values(), *shown):
            yield from data.decode().splitlines()

    def _shown(self) -> Iterator[str]:
        return (
            path for path in self.files.files if path.startswith(f"{OUTPUT}/") and "/." not in path
        )


def _file_sink() -> Any:
    files = FileSink.for_row_format(OUTPUT, Encoder.simple_string_encoder())
    return files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


class MergedFolder(Folder):
    """A folder of FileSink, which merges the files of an epoch."""

    @staticmethod
    def add_to(stream: Any) -> Any:
        when = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build()
        how = FileCompactor.concat_file_compactor()
        return stream.sink_to(_file_sink().enable_compact(when, how).build())

    def substitutes(self) -> dict[str, Any]:
        return {"opchain.runtime.connectors.staged_files.ThreadPoolExecutor": AtOnce}


class AtOnce:
    """An executor without threads, so that each call belongs to its driver."""

    def __init__(self, threads: int = 1) -> None:
        """It has none."""

    def __enter__(self) -> AtOnce:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        """Everything is done."""

    def submit(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call(*arguments, **named))
        return future

    def map(self, call: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        return map(call, *arguments)


class IdempotentSink(OutboxSink[str]):
    """Sends lines to a service that accepts each key once, as HTTP services with an Idempotency-Key do."""

    def send(self, key: str, records: Sequence[str]) -> None:
        world, lines = scheduler_of_thread(), list(records)
        accepted = world.output.accepted
        world.call(f"send {key}", lambda: accepted.setdefault(key, lines), changes=True)


class Service(Output):
    """A service that accepts each key once."""

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self.accepted: dict[str, list[str]] = {}

    @staticmethod
    def add_to(stream: Any) -> Any:
        return stream.sink_to(IdempotentSink())

    def lines(self) -> Iterator[str]:
        for sent in self.accepted.values():
            yield from sent


class _DeltaSink(DeltaSink):
    """Writes lines to a simulated table."""

    def __init__(self) -> None:
        super().__init__(f"{OUTPUT}/table")

    def open(self) -> None:
        """The table is there."""

    def arrow_schema(self) -> Any:
        return pa.schema([("line", pa.string())])

    def _loaded(self) -> Any:
        world = scheduler_of_thread()
        table = world.output
        version: int = world.call("load the table", lambda: len(table.commits), changes=False)
        return _Snapshot(table, version)


class _Snapshot:
    """A version of the simulated table: what DeltaSink needs of deltalake's DeltaTable."""

    def __init__(self, table: DeltaTable, version: int) -> None:
        self._table, self._version = table, version

    def schema(self) -> None:
        """DeltaSink only passes it on."""

    def transaction_version(self, owner: str) -> int | None:
        commits = self._table.commits[: self._version]
        return next((commit.number for commit in reversed(commits) if commit.owner == owner), None)

    def file_uris(self) -> list[str]:
        commits = self._table.commits[: self._version]
        return [path for commit in commits for path in commit.paths]

    def create_write_transaction(
        self, actions: Sequence[Any], *_: Any, commit_properties: Any
    ) -> None:
        (transaction,) = commit_properties.app_transactions
        commit = _TableCommit(
            transaction.app_id, transaction.version, [action.path for action in actions]
        )
        changes = self._table.commits

        def append() -> None:
            if any(later.owner == commit.owner for later in changes[self._version :]):
                raise CommitFailedError("another transaction of this application was committed")
            changes.append(commit)

        self._table.world.call(f"commit {commit.number} to the table", append, changes=True)


class _TableCommit(NamedTuple):
    owner: str
    number: int
    paths: list[str]


class DeltaTable(Output):
    """A table of Delta Lake, whose commits fail if their application has committed since they were prepared."""

    takes_rows = True
    failures = (CommitFailedError,)

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self.commits: list[_TableCommit] = []

    @staticmethod
    def add_to(stream: Any) -> Any:
        return stream.sink_to(_DeltaSink())

    def lines(self) -> Iterator[str]:
        # A path that was added again is in a Delta table once.
        for path in sorted({path for commit in self.commits for path in commit.paths}):
            rows = parquet.read_table(BytesIO(self.files.files[f"{OUTPUT}/table/{path}"]))
            yield from rows["line"].to_pylist()


class _MySqlSession:
    """A connection to the simulated database: what JdbcSink needs of pymysql's Connection and Cursor.

    The server ends a session that holds a lock which another one wants, as after MySQL's timeout for idle sessions.
    """

    def __init__(self, database: MySql) -> None:
        self._database = database
        self._owner = ""
        self._rows: list[str] = []
        self._note: tuple[int, int] | None = None
        self._found: tuple[int, ...] | None = None
        self._asked("connect", lambda: None, changes=False)

    def __enter__(self) -> _MySqlSession:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        if self._database.locks.get(self._owner) is self:
            del self._database.locks[self._owner]

    def cursor(self) -> _MySqlSession:
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
                "read the note", lambda: self._database.notes.get(values[0]), changes=False
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
            if self._rows and self._database.locks.get(self._owner) is not self:
                raise pymysql.OperationalError(2013, "the server ended the session")
            assert self._note is not None
            self._database.notes[self._owner] = self._note
            self._database.rows += self._rows

        self._asked("commit to the database", commit, changes=True)

    def _lock(self) -> tuple[int, int]:
        self._database.locks[self._owner] = self
        return self._database.notes.get(self._owner, (-1, 0))

    def _asked(self, what: str, effect: Callable[[], Any], *, changes: bool) -> Any:
        try:
            return self._database.world.call(what, effect, changes=changes)
        except OSError as error:
            raise pymysql.OperationalError(2013, str(error)) from error


def jdbc_sink(url: str) -> JdbcSink:
    """Inserts lines into the table `results` of a database."""
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    return JdbcSink.sink("INSERT INTO results VALUES (?)", Types.ROW([Types.STRING()]), options)


class MySql(Output):
    """A database of MySQL."""

    takes_rows = True
    failures = (pymysql.OperationalError,)

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self.rows: list[str] = []
        self.notes: dict[str, tuple[int, int]] = {}
        self.locks: dict[str, _MySqlSession] = {}

    @staticmethod
    def add_to(stream: Any) -> Any:
        return stream.add_sink(jdbc_sink("jdbc:mysql://simulated/db"))

    def substitutes(self) -> dict[str, Any]:
        return {
            "pymysql.connect": lambda **_: _MySqlSession(self),
            "opchain.runtime.connectors.jdbc.retries.time": SimpleNamespace(sleep=lambda _: None),
        }

    def lines(self) -> Iterator[str]:
        yield from self.rows
