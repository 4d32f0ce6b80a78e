"""Staging tables in the target database, in which rows wait for their commit, and the writer that fills them.

    opchain_batches    a batch: its sink (lineage and operator), and the table with its rows
    opchain_staged_*   rows: batch, number, and the parameters of the statement, in their types
    opchain_commits    a sink: the last checkpoint whose rows it has committed

They are created on first use, in the first schema of the search path. Batches are written with COPY, each in its own
transaction.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    connection_parameters,
)
from opchain.runtime.connectors.jdbc.retries import retried
from opchain.runtime.errors import SinkError, imported, short_repr
from opchain.runtime.functions.sink import BatchSinkWriter, SinkOrigin
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.connectors.jdbc.statement import Statement
    from opchain.runtime.types.row import Row
    from opchain.runtime.types.type_information import TypeInformation


_TABLES = """\
CREATE TABLE IF NOT EXISTS opchain_batches (
    batch uuid PRIMARY KEY, lineage text NOT NULL, operator text NOT NULL, staged text NOT NULL);
CREATE TABLE IF NOT EXISTS opchain_commits (
    lineage text, operator text, checkpoint_id bigint NOT NULL, committed_at timestamptz,
    PRIMARY KEY (lineage, operator));
CREATE TABLE IF NOT EXISTS {staged} (
    batch uuid, number bigint, {columns}, PRIMARY KEY (batch, number))"""

_BLOCK = """\
DO {tag}
#variable_conflict use_column
DECLARE
    {row} record;
    {row}_plan record;
BEGIN
    FOR {row} IN {rows}
    LOOP
        {statement};
    END LOOP;
EXCEPTION WHEN OTHERS THEN
    DECLARE
        said text;
        detail text;
    BEGIN
        GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = said, DETAIL = detail, HINT = {shown};
    END;
END
{tag}"""
"""The statement sees only the variables of the row. Columns have priority over variables of the same name."""

_SHOWN = 80
"""The number of characters that an error shows of a field."""

_NAMES: dict[TypeInformation[Any], str] = {
    Types.STRING(): "text",
    Types.CHAR(): "text",
    Types.BOOLEAN(): "bool",
    Types.BYTE(): "int2",
    Types.SHORT(): "int2",
    Types.INT(): "int4",
    Types.LONG(): "int8",
    Types.FLOAT(): "float4",
    Types.DOUBLE(): "float8",
    Types.BIG_INT(): "numeric",
    Types.BIG_DEC(): "numeric",
    Types.SQL_DATE(): "date",
    Types.SQL_TIME(): "time",
    Types.SQL_TIMESTAMP(): "timestamp",
}
"""PostgreSQL's names of declared types. The server infers the types of other parameters."""

_LOCK = 0x6F70636861696E
"""The advisory lock for creating tables. Two concurrent sessions would fail, even with IF NOT EXISTS."""


class StagedRows(NamedTuple):
    """A batch of staged rows: the committable of a JdbcSink.

    `checkpoint_id` is None at the end of the job. `pieces` is the statement of the program that wrote the rows: a later
    program may have another one, with other parameters.
    """

    lineage: str
    operator_id: str
    where: str
    checkpoint_id: int | None
    batch: str
    rows: int
    staged: str
    columns: tuple[str, ...]
    pieces: tuple[str, ...] = ()


class StagingTable(NamedTuple):
    """The name of a staging table, and the types of its parameter columns."""

    name: str
    types: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the parameter columns."""
        return tuple(f"p{number}" for number in range(1, len(self.types) + 1))


def psycopg() -> Any:
    """Imports psycopg.

    Raises:
        MissingLibraryError: psycopg is not installed.
    """
    return imported("psycopg", "postgresql", "JdbcSink")


def connect(options: JdbcConnectionOptions) -> Any:
    """Opens a connection in autocommit mode. Its time zone is UTC, unless the URL sets another one."""
    library = psycopg()
    parameters = {"application_name": "opchain", **connection_parameters(options)}
    connection = library.connect(**parameters, autocommit=True)
    # A datetime without a zone is in UTC, as in tables. Java's driver sets the zone of the JVM.
    connection.execute(
        "SELECT set_config('TimeZone', 'UTC', false) FROM pg_settings WHERE name = 'TimeZone' AND source <> 'client'"
    )
    json = imported("psycopg.types.json", "postgresql", "JdbcSink")
    connection.adapters.register_dumper(dict, json.JsonbDumper)
    return connection


def staging_table(
    connection: Any,
    statement: Statement,
    where: str,
    declared: Sequence[TypeInformation[Any]] = (),
) -> StagingTable:
    """The staging table for a statement. It is created if it does not exist.

    Args:
        connection: The connection to the database.
        statement: The statement to run for each row.
        where: The operator, for errors.
        declared: The declared types of the parameters, for a statement whose types the server can't infer.

    Raises:
        SinkError: The server refuses the statement, for example because its table is missing, or refuses to create
            tables.
    """
    types = _parameter_types(connection, statement, where, declared)
    name = f"opchain_staged_{hashlib.blake2b(repr(types).encode(), digest_size=6).hexdigest()}"
    table = StagingTable(name, types)
    if connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0] is None:
        _make_tables(connection, table, where)
    _try(connection, statement, table, where)
    return table


def block_for_rows(
    statement: Statement, columns: Sequence[str], rows: str, *, explains: bool = False
) -> str:
    """A PL/pgSQL block that runs a statement for each row of a query.

    Args:
        statement: The statement.
        columns: The columns of the rows, one for each parameter.
        rows: The query.
        explains: Whether the server only plans the statement, without running it.
    """
    row = "opchain_row"
    while row in "".join(statement.pieces).lower():
        row += "_"
    text = statement.with_parameters([f"{row}.{column}" for column in columns])
    if explains:
        text = f"FOR {row}_plan IN EXPLAIN {text} LOOP END LOOP"
    tag = "$opchain$"
    while tag in text:
        tag = f"{tag[:-1]}_$"
    shown = ", ".join(_shown(f"{row}.{column}::text") for column in columns)
    return _BLOCK.format(
        tag=tag,
        row=row,
        rows=rows,
        statement=text,
        shown=f"concat('row (', concat_ws(', ', {shown}), ')')",
    )


def _shown(text: str) -> str:
    """An expression for the start of a text, or for NULL. An error shows no document of a megabyte."""
    return (
        f"CASE WHEN length({text}) > {_SHOWN} THEN left({text}, {_SHOWN - 3}) || '...' "
        f"ELSE coalesce({text}, 'NULL') END"
    )


def _try(connection: Any, statement: Statement, table: StagingTable, where: str) -> None:
    """Lets the server plan the statement as the commit will run it, in a transaction that is rolled back.

    Planning detects missing privileges and constraints; preparing does not. It runs no trigger and no sequence.

    Raises:
        SinkError: The server refuses the statement.
    """
    if statement.is_call:
        return  # such a statement cannot be explained
    library = psycopg()
    row_of_nulls = f"SELECT staged.* FROM (SELECT) AS one LEFT JOIN {table.name} AS staged ON false"  # noqa: S608 - a name of ours
    block = block_for_rows(statement, table.columns, row_of_nulls, explains=True)
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(block)
    except library.OperationalError:
        raise
    except library.Error as error:
        parts = (error.diag.message_primary or str(error), error.diag.message_detail)
        raise SinkError(
            f"{where}: the server refuses the statement {statement.with_parameters(_numbers(statement))!r}: "
            f"{'; '.join(' '.join(part.split()) for part in parts if part)}. Nothing was "
            f"written; correct the statement or the table, and start the job again"
        ) from error


def _make_tables(connection: Any, table: StagingTable, where: str) -> None:
    """Creates the staging tables.

    Raises:
        SinkError: The user lacks the privilege.
    """
    library = psycopg()
    columns = ", ".join(
        f"{column} {type_}" for column, type_ in zip(table.columns, table.types, strict=True)
    )
    tables = _TABLES.format(staged=table.name, columns=columns)
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            for command in tables.split(";"):
                connection.execute(command)
    except library.errors.InsufficientPrivilege as error:
        raise SinkError(
            f"{where} lacks the privilege to create its staging tables ({_error_text(error)}): grant "
            f"CREATE on the schema to the user, or let the owner of the schema run once: "
            f"{' '.join(tables.split())}"
        ) from error


def _numbers(statement: Statement) -> list[str]:
    return [f"${number}" for number in range(1, statement.parameter_count + 1)]


def _parameter_types(
    connection: Any, statement: Statement, where: str, declared: Sequence[TypeInformation[Any]]
) -> tuple[str, ...]:
    """The types that the server infers for the parameters. If it refuses the statement, some are declared.

    For example, the server takes the parameters of `MERGE ... USING (VALUES (?, ?))` for text, and can't infer those of
    `concat(?, ?)`.
    """
    numbered = statement.with_parameters(_numbers(statement))
    refusal = _refusal(connection, numbered, ())
    if refusal is not None:
        known = connection.adapters.types
        oids = [known[_NAMES[of]].oid if of in _NAMES else 0 for of in declared]
        if not any(oids) or _refusal(connection, numbered, oids) is not None:
            raise SinkError(
                f"{where}: the server refuses the statement {numbered!r}: {_error_text(refusal)}"
            ) from refusal
    described = connection.pgconn.describe_prepared(b"opchain")
    connection.execute("DEALLOCATE opchain")
    oids = [described.param_type(number) for number in range(described.nparams)]
    found = connection.execute(
        "SELECT format_type(oid, -1) FROM unnest(%s::oid[]) WITH ORDINALITY AS t(oid, n) ORDER BY n",
        [oids],
    )
    return tuple(name for (name,) in found.fetchall())


def _refusal(connection: Any, numbered: str, oids: Sequence[int]) -> Exception | None:
    """Prepares a statement, and returns the error if the server refuses it. The type 0 is inferred.

    Raises:
        OperationalError: The connection is lost.
    """
    library = psycopg()
    try:
        # A prepared statement exists until the connection ends. There is one for each connection.
        prepared = connection.pgconn.prepare(b"opchain", numbered.encode(), oids)
        if prepared.status != library.pq.ExecStatus.COMMAND_OK:
            raise library.errors.error_from_result(prepared, encoding="utf-8")
    except library.OperationalError:
        raise
    except library.Error as error:
        if connection.closed:  # the server has not answered
            raise library.OperationalError(_error_text(error)) from error
        refusal: Exception = error
        return refusal
    return None


def _error_text(error: BaseException) -> str:
    return " ".join(str(error).split())


_PLACE = re.compile(r", line (\d+)(?:, column p(\d+))?")


class JdbcWriter(BatchSinkWriter[Any]):
    """The writer of one subtask.

    All rows of a checkpoint are one batch. The id of a batch is unique to an attempt.
    """

    def __init__(
        self,
        statement: Statement,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        origin: SinkOrigin,
        declared: Sequence[TypeInformation[Any]] = (),
    ) -> None:
        self._statement = statement
        self._options = connection
        self._execution = execution
        self._origin = origin
        self._where = origin.where
        self._rows: list[Row | Sequence[Any]] = []
        self._batch = ""
        self._sent = 0
        self._connection: Any = None
        self._table = retried(
            lambda: staging_table(self._connected(), statement, self._where, declared),
            psycopg().OperationalError,
            self._reconnect,
            execution.max_retries,
            self._where,
        )

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,  # noqa: ARG002 - rows have none
    ) -> None:
        """Writes a batch.

        Raises:
            SinkError: A record does not match the statement.
        """
        for value in values:
            self._statement.require_fields(value, self._where)
            self._rows.append(value)
            if len(self._rows) >= self._execution.batch_size:
                self._send()

    def flush(self, *, end_of_input: bool) -> None:  # noqa: ARG002 - rows wait in both cases
        """Sends all buffered rows."""
        if self._rows:
            self._send()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[StagedRows]:
        """The batch. Empty without rows."""
        if not self._sent:
            return ()
        origin, table = self._origin, self._table
        staged = StagedRows(
            origin.lineage,
            origin.operator_id,
            self._where,
            checkpoint_id,
            self._batch,
            self._sent,
            table.name,
            table.columns,
            self._statement.pieces,
        )
        self._batch, self._sent = "", 0
        return (staged,)

    def close(self) -> None:
        """Closes the connection. Uncommitted rows are removed by the sink's next commit."""
        if self._connection is not None:
            self._connection.close()

    def _send(self) -> None:
        rows, self._rows = self._rows, []
        if not self._batch:
            self._batch = str(uuid.uuid4())
        retried(
            lambda: self._copy(rows),
            psycopg().OperationalError,
            self._reconnect,
            self._execution.max_retries,
            self._where,
        )
        self._sent += len(rows)

    def _copy(self, rows: list[Row | Sequence[Any]]) -> None:
        library, table = psycopg(), self._table
        at = 0
        try:
            connection = self._connected()
            with connection.transaction(), connection.cursor() as cursor:
                self._begin_batch(cursor)
                columns = ", ".join(("batch", "number", *table.columns))
                with cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
                    for at, row in enumerate(rows):
                        copy.write_row((self._batch, self._sent + at, *row))
        except library.OperationalError:
            raise
        except UnicodeEncodeError as error:
            raise self._unwritten(rows[at], error) from error
        except library.Error as error:
            raise self._refused(error, rows, at) from error

    def _begin_batch(self, cursor: Any) -> None:
        """Registers the batch, and removes rows of a transaction whose outcome is unknown."""
        origin = self._origin
        cursor.execute(
            "INSERT INTO opchain_batches VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [self._batch, origin.lineage, origin.operator_id, self._table.name],
        )
        cursor.execute(
            f"DELETE FROM {self._table.name} WHERE batch = %s AND number >= %s",  # noqa: S608 - a name of ours
            [self._batch, self._sent],
        )

    def _refused(self, error: Any, rows: list[Row | Sequence[Any]], at: int) -> SinkError:
        """The error for a row that the server or psycopg refuses."""
        place = _PLACE.search(error.diag.context or "")
        if place is None:
            return self._unwritten(rows[at], error)
        row, number = rows[int(place[1]) - 1], place[2]
        if number is None:
            return self._unwritten(row, error.diag.message_primary)
        field = int(number) - 1
        return self._unwritten(
            row,
            f"{error.diag.message_primary}; parameter {number} is {short_repr(row[field])}, but the statement expects "
            f"{self._table.types[field]}",
        )

    def _unwritten(self, row: Row | Sequence[Any], reason: object) -> SinkError:
        return SinkError(
            f"{self._where} can't write the record {short_repr(row)}: {' '.join(str(reason).split())}"
        )

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = connect(self._options)
        return self._connection

    def _reconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
