"""A simulated PostgreSQL server that replaces `psycopg.connect`, as far as JdbcSink uses it.

It knows the statements of JdbcSink, and no others. As in PostgreSQL with READ COMMITTED:

- A transaction sees what was committed before each of its statements, and its own changes. Others see them after its
  commit. DDL is transactional, too.
- A changed, inserted or selected row (FOR UPDATE) is locked until the transaction ends. A statement takes the rows that
  were there when it began, waits for each lock, and leaves out rows that are gone by then. A row that another
  transaction is inserting blocks an INSERT of the same key, and no other statement.
- If a client dies or loses its connection, the server notices this some time later. Until then its transaction and its
  locks stay. A COMMIT that was sent takes effect before that, or never.
- The server ends a session at any time. It may also end one that another session waits for, as by
  `idle_in_transaction_session_timeout` or after a deadlock.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
from crash_runs import DriverDiedError
from simulated_outputs import Output, jdbc_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simulated_scheduler import Scheduler

Row = tuple[Any, ...]
"""The key of a row: its table, and its primary key."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_STAGED = re.compile(r"opchain_staged_\w+")


class Postgres(Output):
    """The server.

    Attributes:
        rows: All committed rows: their values by their keys. Tables have rows, too.
        locks: The session that has locked a row.
        sessions: Those that were not ended.
        numbers: The places of rows in the table of results, which has no key.
    """

    takes_rows = True
    failures = (psycopg.OperationalError,)

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self.rows: dict[Row, Any] = {}
        self.locks: dict[Row, _Session] = {}
        self.sessions: list[_Session] = []
        self.numbers = count()

    @staticmethod
    def add_to(stream: Any) -> Any:
        return stream.add_sink(jdbc_sink("jdbc:postgresql://simulated/db"))

    def substitutes(self) -> dict[str, Any]:
        return {
            "psycopg.connect": lambda **_: _Session(self),
            "opchain.runtime.connectors.jdbc.retries.time": SimpleNamespace(sleep=lambda _: None),
        }

    def happen(self) -> None:
        """The server ends a session that has changed something."""
        busy = [session for session in self.sessions if session.locked]
        if busy:
            self.world.trace.append("the server ends a session")
            self.world.draw.choice(busy).end()

    def lines(self) -> Iterator[str]:
        for key in sorted(key for key in self.rows if key[0] == "results"):
            yield self.rows[key]


class _Session:
    """A session of the server, and the client's connection to it. Outside of transactions it commits each statement.

    Attributes:
        adapters: Needed to quote literals.
        connection: None, so that psycopg quotes as for any server.
        locked: The rows that it has locked.
    """

    def __init__(self, server: Postgres) -> None:
        self.adapters = psycopg.adapters
        self.connection = None
        self.pgconn = _Prepared(self)
        self.locked: list[Row] = []
        self._server = server
        self._changes: dict[Row, Any] = {}  # None for rows that were removed
        self._is_ended = self._is_broken = False
        self._found: list[Row] = []
        self.rowcount = 0
        server.sessions.append(self)
        self.ask("connect", lambda: None, changes=False)

    # What the client does

    def execute(self, statement: Any, parameters: Sequence[Any] = ()) -> _Session:
        text = statement if isinstance(statement, str) else statement.as_string(self)
        text = " ".join(text.split())
        for start, action in _STATEMENTS.items():
            if text.startswith(start):
                # Only changes are worth faults: a read that fails ends the attempt just as its connection does.
                self.ask(" ".join(text.split()[:3]), lambda: None, changes="SELECT" not in start)
                self._found = list(action(self, text, parameters) or ())
                self.rowcount = len(self._found)
                return self
        raise AssertionError(f"the simulated server does not know {text!r}")

    def fetchone(self) -> Row:
        return self._found[0]

    def fetchall(self) -> list[Row]:
        return self._found

    @contextmanager
    def transaction(self, *, force_rollback: bool = False) -> Iterator[None]:
        try:
            yield
            if not force_rollback:
                self.ask("commit the transaction", self._commit, changes=True)
        except DriverDiedError:
            self._break()
            raise
        finally:
            if not self._is_broken:
                self._release()

    @contextmanager
    def cursor(self) -> Iterator[_Session]:
        yield self

    @contextmanager
    def copy(self, statement: str) -> Iterator[_Session]:
        copied: list[Row] = []
        self.write_row = copied.append
        yield self
        self.ask(f"copy {len(copied)} rows", lambda: None, changes=True)
        table = _STAGED.search(statement)
        assert table is not None
        for batch, number, line in copied:
            self._insert((table[0], str(batch), number), line)

    def close(self) -> None:
        if not self._is_broken:
            self.end()
        self._is_broken = True

    def ask(self, what: str, effect: Callable[[], Any], *, changes: bool) -> Any:
        """Sends a request. If it fails, the connection is of no more use."""
        if self._is_broken:
            raise psycopg.OperationalError("the connection is closed")
        try:
            found = self._server.world.call(what, effect, changes=changes)
            self._require_session()
        except OSError as error:
            self._break()
            raise psycopg.OperationalError(str(error)) from error
        except (DriverDiedError, psycopg.OperationalError):
            self._break()
            raise
        return found

    def _break(self) -> None:
        if not self._is_broken:
            self._is_broken = True
            self._server.world.late.append(self.end)  # when the server notices

    # What the server does

    def end(self) -> None:
        """Ends the session, and rolls its transaction back."""
        if not self._is_ended:
            self._is_ended = True
            self._server.sessions.remove(self)
            self._release()

    def _require_session(self) -> None:
        if self._is_ended:
            raise psycopg.errors.AdminShutdown("terminating connection")

    def _commit(self) -> None:
        self._require_session()
        for key, value in self._changes.items():
            if value is None:
                del self._server.rows[key]
            else:
                self._server.rows[key] = value
        self._release()

    def _release(self) -> None:
        self._changes.clear()
        for key in self.locked:
            del self._server.locks[key]
        self.locked.clear()

    def _seen(self) -> dict[Row, Any]:
        """The rows that the session sees now."""
        rows = {**self._server.rows, **self._changes}
        return {key: value for key, value in rows.items() if value is not None}

    def _lock(self, key: Row) -> None:
        """Waits until no other session has locked a row, and locks it."""
        world = self._server.world
        while (holder := self._server.locks.get(key, self)) is not self:
            if world.draw.random() < 0.1:
                holder.end()
            self.ask(f"wait for a lock of {key[0]}", lambda: None, changes=False)
        if key not in self._server.locks:
            self._server.locks[key] = self
            self.locked.append(key)

    def _insert(self, key: Row, value: Any) -> bool:
        """Inserts a row, unless its key exists."""
        if key in self._seen():
            return False
        self._lock(key)
        if key in self._seen():  # the session that inserted it has committed
            return False
        self._changes[key] = value
        return True

    def _delete(self, table: str, is_meant: Callable[[Row, Any], bool]) -> list[Row]:
        """Deletes rows. Returns their keys and values."""
        deleted = []
        before = self._seen()
        for key in [key for key, value in before.items() if key[0] == table]:
            if is_meant(key, before[key]):
                self._lock(key)
                value = self._seen().get(key)
                if value is not None:
                    self._changes[key] = None
                    deleted.append((key, value))
        return deleted

    # Its statements

    def _exists(self, text: str, parameters: Sequence[Any]) -> list[Row]:
        name = parameters[0] if parameters else text.split("'")[1]
        return [(name if ("table", name) in self._seen() else None,)]

    def _lock_advisory(self, _: str, parameters: Sequence[Any]) -> None:
        self._lock(("advisory", parameters[0]))

    def _create(self, text: str, _: Sequence[Any]) -> None:
        self._insert(("table", text.split()[5]), text)

    def _insert_batch(self, _: str, parameters: Sequence[Any]) -> None:
        batch, *place = parameters
        self._insert(("opchain_batches", str(batch)), tuple(place))

    def _delete_staged(self, text: str, parameters: Sequence[Any]) -> list[Row]:
        """`batch = ANY(...)`, or `batch = ... AND number >= ...`."""
        batches, *first = parameters
        wanted = {batches} if isinstance(batches, str) else set(map(str, batches))
        return self._delete(
            _STAGED.findall(text)[0],
            lambda key, _: key[1] in wanted and (not first or key[2] >= first[0]),
        )

    def _delete_batches(self, _: str, parameters: Sequence[Any]) -> list[Row]:
        deleted = self._delete("opchain_batches", lambda _, place: place[:2] == tuple(parameters))
        return [(key[1], place[2]) for key, place in deleted]

    def _insert_note(self, _: str, parameters: Sequence[Any]) -> None:
        self._insert(("opchain_commits", *parameters), -1)

    def _read_note(self, text: str, parameters: Sequence[Any]) -> list[Row | None]:
        key = ("opchain_commits", *parameters)
        if text.endswith("FOR UPDATE"):
            self._lock(key)
        found = self._seen().get(key)
        return [None if found is None else (found,)]

    def _set_note(self, _: str, parameters: Sequence[Any]) -> None:
        number, *sink = parameters
        key = ("opchain_commits", *sink)
        self._lock(key)
        assert key in self._seen()
        self._changes[key] = number

    def _run_block(self, text: str, _: Sequence[Any]) -> None:
        """Runs the statement for the staged rows of batches, unless the server only plans it."""
        if "IN EXPLAIN" in text:
            return
        assert "INSERT INTO results VALUES (opchain_row.p1);" in text
        (table,) = set(_STAGED.findall(text))
        rows = self._seen()
        for batch in _UUID.findall(text):
            for key in sorted(key for key in rows if key[:2] == (table, batch)):
                self._changes["results", next(self._server.numbers)] = rows[key]

    def _nothing(self, _: str, __: Sequence[Any]) -> None:
        """Changes no row."""

    def _types(self, _: str, __: Sequence[Any]) -> list[Row]:
        return [("text",)]


_STATEMENTS: dict[str, Callable[[_Session, str, Sequence[Any]], Any]] = {
    "SELECT set_config": lambda *_: None,
    "SELECT to_regclass(": _Session._exists,
    "SELECT pg_advisory_xact_lock(": _Session._lock_advisory,
    "SELECT format_type(": _Session._types,
    "SELECT checkpoint_id FROM opchain_commits WHERE (lineage, operator) = (%s, %s)": _Session._read_note,
    "DEALLOCATE opchain": _Session._nothing,
    "CREATE TABLE IF NOT EXISTS ": _Session._create,
    "INSERT INTO opchain_batches VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING": _Session._insert_batch,
    "INSERT INTO opchain_commits VALUES (%s, %s, -1) ON CONFLICT DO NOTHING": _Session._insert_note,
    "UPDATE opchain_commits SET checkpoint_id = %s, committed_at = now() ": _Session._set_note,
    "DELETE FROM opchain_batches WHERE (lineage, operator) = (%s, %s) RETURNING batch, staged": _Session._delete_batches,
    "DELETE FROM opchain_staged_": _Session._delete_staged,
    'DELETE FROM "opchain_staged_': _Session._delete_staged,
    "DO $opchain$": _Session._run_block,
}


class _Prepared:
    """What JdbcSink needs of psycopg's PGconn: the server accepts the statement, which has one parameter."""

    nparams = 1
    status = psycopg.pq.ExecStatus.COMMAND_OK

    def __init__(self, session: _Session) -> None:
        self._session = session

    def prepare(self, name: bytes, statement: bytes, types: Sequence[int]) -> _Prepared:
        self._session.ask("prepare the statement", lambda: None, changes=False)
        return self

    def describe_prepared(self, name: bytes) -> _Prepared:
        return self

    def param_type(self, number: int) -> int:
        return 25
