"""JdbcSink: runs a statement of PostgreSQL with each record, exactly once. See mysql.py for MySQL.

Tasks copy rows to staging tables (staging.py). The driver runs the statement with these rows when the checkpoint, or the
bounded job, is complete.

Rejected: `PREPARE TRANSACTION`, which Flink's exactly-once sink uses through XA. It is disabled in PostgreSQL by default.
And a prepared transaction holds its locks until it is committed. A second attempt of a task, or another subtask with the
same key, would wait for the first one, whose commit would wait for both. Staged rows hold no locks, and all rows of a
checkpoint become visible at once. They cost one more write.

A commit is one transaction for all rows of a checkpoint, from all subtasks. The server runs the statement once per row,
in the order of subtasks and records, so rows of one key are applied in order. The same transaction notes the checkpoint
and removes all staged rows of this sink, also those of failed attempts and killed runs. So a repeated commit finds the
note. If rows are missing without a note, the commit fails.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.jdbc.mysql import MySqlSink, is_mysql
from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.retries import retried
from opchain.runtime.connectors.jdbc.staging import (
    JdbcWriter,
    StagedRows,
    block_for_rows,
    connect,
    psycopg,
)
from opchain.runtime.connectors.jdbc.statement import Statement, parse_statement
from opchain.runtime.errors import COMMIT_FIRST, SinkError, require_instance
from opchain.runtime.functions.sink import Committer, Sink, SinkOrigin, SinkWriter, origin_of
from opchain.runtime.functions.source_sink_functions import TwoPhaseSinkFunction
from opchain.runtime.types.record_types import RowTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.types.type_information import TypeInformation
    from opchain.runtime.types.type_variables import T


class JdbcSink(TwoPhaseSinkFunction[Any]):
    """A sink of `add_sink` that runs a statement with each record. Flink: JdbcSink.

    It supports PostgreSQL, MySQL and MariaDB. Each record takes effect exactly once; Flink's `JdbcSink.sink` guarantees at
    least once. The rows of all subtasks become visible together when their checkpoint is complete. In MySQL they become
    visible in batches, and all records pass through the driver.
    """

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """A sink.

        Args:
            sql: INSERT, UPDATE, DELETE, MERGE or REPLACE, with `?` for each field of a record. With INSERT ... ON
                CONFLICT ... DO UPDATE (MySQL: ON DUPLICATE KEY UPDATE) the table holds the last record of each key.
            type_info: The type of the records, which has as many fields.
            jdbc_connection_options: The database.
            jdbc_execution_options: Batches and retries; `JdbcExecutionOptions.defaults()` by default.

        Raises:
            TypeError: An argument is of another kind.
            ValueError: The statement has another number of parameters.
        """
        execution = jdbc_execution_options or JdbcExecutionOptions.defaults()
        for value, kind, wanted in (
            (sql, str, "a statement as text there"),
            (type_info, RowTypeInfo, "a type of Types.ROW or Types.ROW_NAMED there"),
            (jdbc_connection_options, JdbcConnectionOptions, "JdbcConnectionOptions there"),
            (execution, JdbcExecutionOptions, "JdbcExecutionOptions there"),
        ):
            require_instance(value, kind, "JdbcSink.sink", wanted)
        for_mysql = is_mysql(jdbc_connection_options.url)
        statement = parse_statement(sql, is_mysql=for_mysql)
        fields = len(type_info.field_types)
        if statement.parameter_count != fields:
            raise ValueError(
                f"JdbcSink.sink got the statement {sql!r} with {statement.parameter_count} "
                f"parameters, but a type of {fields} fields; it needs one ? per field"
            )
        if for_mysql:
            return JdbcSink(MySqlSink(sql, statement, jdbc_connection_options, execution))
        types = tuple(type_info.field_types)
        return JdbcSink(_PostgresSink(sql, jdbc_connection_options, execution, types))


_PLACE = re.compile(r"//(?:[^@/]*@)?(?P<host>[^:/,?]+)(?::(?P<port>\d+))?[^/]*/(?P<database>[^?]+)")
_TABLE = re.compile(r"\b(?:INTO|UPDATE|DELETE\s+FROM)\s+(?P<table>[\w.\"]+)", re.IGNORECASE)


class _PostgresSink(Sink[Any]):
    """The writer and the committer for PostgreSQL."""

    reads_timestamps = False
    changes_records = False

    def __init__(
        self,
        sql: str,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        types: Sequence[TypeInformation[Any]],
    ) -> None:
        self.sql = sql
        self.connection = connection
        self.execution = execution
        self.types = types

    def __repr__(self) -> str:
        return f"JdbcSink({self.sql!r})"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The table, for lineage; none if the URL or the statement does not name it."""
        url = _PLACE.search(self.connection.url)
        table = _TABLE.search(self.sql)
        if url is None or table is None:
            return ()
        name = table["table"].replace('"', "")
        schema = "" if "." in name else "public."
        host = f"{url['host']}:{url['port'] or 5432}"
        return ((f"postgres://{host}", f"{url['database']}.{schema}{name}"),)

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        """The writer. It connects, and checks that the server accepts the statement."""
        statement = parse_statement(self.sql)
        return JdbcWriter(
            statement, self.connection, self.execution, origin_of(context), self.types
        )

    def create_committer(self) -> Committer:
        """The committer, which runs the statement."""
        return JdbcCommitter(parse_statement(self.sql), self.connection, self.execution)


_ROWS = """\
SELECT staged.* FROM {staged} AS staged
        JOIN unnest({batches}::uuid[]) WITH ORDINALITY AS wanted (batch, place) USING (batch)
        ORDER BY wanted.place, staged.number"""


class JdbcCommitter(Committer):
    """Commits on the driver, on its own connection."""

    committable = StagedRows

    def __init__(
        self,
        statement: Statement,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
    ) -> None:
        self._statement = statement
        self._options = connection
        self._execution = execution
        self._connection: Any = None

    def commit(self, committables: Sequence[StagedRows]) -> None:
        """Moves the rows that no earlier attempt has moved.

        Raises:
            SinkError: The database can't be reached, refuses a row, or has lost staged rows.
        """
        for _, batches in groupby(committables, key=lambda item: item[:4]):
            found = list(batches)
            self._retried(lambda found=found: self._commit(found), found[0].where)  # type: ignore[misc]

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes the staged rows of the sink."""

        def discard() -> None:
            connection = self._connected()
            if not _has_table(connection, "opchain_batches"):
                return  # no task has created the tables yet
            with connection.transaction():
                _remove_all(connection, origin.lineage, origin.operator_id)
                confirm()

        self._retried(discard, origin.where)

    def last_commit(self, origin: SinkOrigin) -> int | None:
        """The checkpoint of the sink in `opchain_commits`."""

        def ask() -> int | None:
            connection = self._connected()
            if not _has_table(connection, "opchain_commits"):
                return None
            noted = connection.execute(
                "SELECT checkpoint_id FROM opchain_commits WHERE (lineage, operator) = (%s, %s)",
                [origin.lineage, origin.operator_id],
            ).fetchone()
            return None if noted is None else int(noted[0])

        return self._retried(ask, origin.where)

    def reset_commits(self, origin: SinkOrigin, checkpoint_id: int) -> None:
        """Resets the note to this checkpoint, so that later ones are committed again."""

        def reset() -> None:
            self._connected().execute(
                "UPDATE opchain_commits SET checkpoint_id = %s "
                "WHERE (lineage, operator) = (%s, %s) AND checkpoint_id > %s",
                [checkpoint_id, origin.lineage, origin.operator_id, checkpoint_id],
            )

        self._retried(reset, origin.where)

    def how_to_reset(self, origin: SinkOrigin, checkpoint_id: int) -> str:
        """The statement to run."""
        return (
            f"UPDATE opchain_commits SET checkpoint_id = {checkpoint_id} "  # noqa: S608 - for a person to read
            f"WHERE lineage = '{origin.lineage}' AND operator = '{origin.operator_id}'"
        )

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _retried(self, action: Callable[[], T], where: str) -> T:
        lost = psycopg().OperationalError
        return retried(action, lost, self.close, self._execution.max_retries, where)

    def _commit(self, batches: list[StagedRows]) -> None:
        """Runs the statement of the program that wrote the rows. If it is refused, a corrected one may succeed."""
        library, first = psycopg(), batches[0]
        own = Statement(first.pieces) if first.pieces else self._statement
        statements = [own, self._statement] if self._statement.corrects(own) else [own]
        refused: Exception | None = None
        for statement in statements:
            try:
                return self._commit_with(statement, batches)
            except library.OperationalError:  # noqa: PERF203 - at most two statements
                raise
            except library.Error as error:
                refused = error
        raise _refused(refused, first) from refused

    def _commit_with(self, statement: Statement, batches: list[StagedRows]) -> None:
        connection, first = self._connected(), batches[0]
        with connection.transaction():
            has_notes = _has_table(connection, "opchain_commits")
            if not (has_notes and _is_committed(connection, batches)):
                if not _has_table(connection, first.staged):
                    raise SinkError(
                        f"{first.where}: the rows of {_checkpoint(first)} wait for their commit in {first.staged}, which "
                        f"is not in this database. If the sink wrote to another one, {COMMIT_FIRST}"
                    )
                wanted = [item.batch for item in batches]
                listed = psycopg().sql.Literal(wanted).as_string(connection)
                rows = _ROWS.format(staged=first.staged, batches=listed)
                connection.execute(block_for_rows(statement, first.columns, rows))
                _remove(connection, batches)
                _note(connection, first)

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = connect(self._options)
        return self._connection


def _has_table(connection: Any, name: str) -> bool:
    return connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0] is not None


def _is_committed(connection: Any, batches: list[StagedRows]) -> bool:
    """Whether the batches were committed before. Locks the sink against other commits until the transaction ends."""
    first = batches[0]
    if first.checkpoint_id is None:
        waiting = connection.execute(
            "SELECT batch FROM opchain_batches WHERE batch = ANY(%s) FOR UPDATE",
            [[item.batch for item in batches]],
        )
        return not waiting.fetchall()
    sink = [first.lineage, first.operator_id]
    connection.execute(
        "INSERT INTO opchain_commits VALUES (%s, %s, -1) ON CONFLICT DO NOTHING", sink
    )
    noted = connection.execute(
        "SELECT checkpoint_id FROM opchain_commits WHERE (lineage, operator) = (%s, %s) FOR UPDATE",
        sink,
    )
    return bool(noted.fetchone()[0] >= first.checkpoint_id)


def _remove(connection: Any, batches: list[StagedRows]) -> None:
    """Removes the rows that were committed, and all other staged rows of the sink."""
    first, wanted = batches[0], sum(item.rows for item in batches)
    moved = connection.execute(
        f"DELETE FROM {first.staged} WHERE batch = ANY(%s)",  # noqa: S608 - our own name
        [[item.batch for item in batches]],
    ).rowcount
    if moved != wanted:
        raise SinkError(
            f"{first.where}: {wanted} rows of {_checkpoint(first)} were written by the tasks, "
            f"but {moved} are in {first.staged}: the others were removed. Nothing was "
            f"committed; restore the table, or start the job from an earlier checkpoint. "
            f"If the sink wrote to another database, {COMMIT_FIRST}"
        )
    _remove_all(connection, first.lineage, first.operator_id)


def _remove_all(connection: Any, lineage: str, operator_id: str) -> None:
    left = connection.execute(
        "DELETE FROM opchain_batches WHERE (lineage, operator) = (%s, %s) RETURNING batch, staged",
        [lineage, operator_id],
    ).fetchall()
    for staged in sorted({staged for _, staged in left}):
        connection.execute(
            psycopg()
            .sql.SQL("DELETE FROM {} WHERE batch = ANY(%s)")
            .format(psycopg().sql.Identifier(staged)),
            [[batch for batch, of in left if of == staged]],
        )


def _note(connection: Any, first: StagedRows) -> None:
    if first.checkpoint_id is not None:
        connection.execute(
            "UPDATE opchain_commits SET checkpoint_id = %s, committed_at = now() "
            "WHERE (lineage, operator) = (%s, %s)",
            [first.checkpoint_id, first.lineage, first.operator_id],
        )


def _refused(error: Any, first: StagedRows) -> SinkError:
    said = error.diag
    parts = (said.message_primary or str(error), said.message_detail, said.message_hint)
    return SinkError(
        f"{first.where}: the rows of {_checkpoint(first)} can't be committed: "
        f"{'; '.join(' '.join(part.split()) for part in parts if part)}. Nothing was committed; "
        f"correct the table or the statement, and start the job again"
    )


def _checkpoint(first: StagedRows) -> str:
    return "the job" if first.checkpoint_id is None else f"checkpoint {first.checkpoint_id}"
