"""Tables in which rows wait for their commit, in the database that they are for.

    opchain_batches    a batch: its sink (lineage and operator), and the table with its rows
    opchain_staged_*   rows: batch, number, and the parameters of the statement, in the types it takes
    opchain_commits    a sink: the last checkpoint whose rows it has committed

They are made when a sink is first used, in the schema that comes first in the search path.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.jdbc.url import connection_parameters
from opchain.runtime.errors import SinkError, imported

if TYPE_CHECKING:
    from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions
    from opchain.runtime.connectors.jdbc.statement import Statement

_TABLES = """\
CREATE TABLE IF NOT EXISTS opchain_batches (
    batch uuid PRIMARY KEY, lineage text NOT NULL, operator text NOT NULL, staged text NOT NULL);
CREATE TABLE IF NOT EXISTS opchain_commits (
    lineage text, operator text, checkpoint_id bigint NOT NULL, committed_at timestamptz,
    PRIMARY KEY (lineage, operator));
CREATE TABLE IF NOT EXISTS {staged} (
    batch uuid, number bigint, {columns}, PRIMARY KEY (batch, number))"""

_LOCK = 0x6F70636861696E
"""Who makes tables holds this lock: two at once would fail, whatever IF NOT EXISTS promises."""


class StagedRows(NamedTuple):
    """A batch of rows that wait: the committable of a JdbcSink; `checkpoint_id` is None at a job's end."""

    lineage: str
    operator_id: str
    where: str
    checkpoint_id: int | None
    batch: str
    rows: int
    staged: str
    columns: tuple[str, ...]


class StagingTable(NamedTuple):
    """The table for rows of certain types, and the types."""

    name: str
    types: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the parameters."""
        return tuple(f"p{number}" for number in range(1, len(self.types) + 1))


def psycopg() -> Any:
    """The library.

    Raises:
        MissingLibraryError: It is not installed.
    """
    return imported("psycopg", "postgresql", "JdbcSink")


def connect(options: JdbcConnectionOptions) -> Any:
    """A connection on which each statement is a transaction of its own."""
    library = psycopg()
    parameters = {"application_name": "opchain", **connection_parameters(options)}
    connection = library.connect(**parameters, autocommit=True)
    json = imported("psycopg.types.json", "postgresql", "JdbcSink")
    connection.adapters.register_dumper(dict, json.JsonbDumper)
    return connection


def staging_table(connection: Any, statement: Statement, where: str) -> StagingTable:
    """The table for the rows of a statement, which is made where it is missing.

    Args:
        connection: To the database.
        statement: What is to be run with each row.
        where: The operator, for errors.

    Raises:
        SinkError: The server refuses the statement, for a table that is missing, say, or to make tables.
    """
    library = psycopg()
    types = _parameter_types(connection, statement, where)
    name = f"opchain_staged_{hashlib.blake2b(repr(types).encode(), digest_size=6).hexdigest()}"
    table = StagingTable(name, types)
    if connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0] is not None:
        return table
    columns = ", ".join(
        f"{column} {type_}" for column, type_ in zip(table.columns, types, strict=True)
    )
    tables = _TABLES.format(staged=name, columns=columns)
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            for command in tables.split(";"):
                connection.execute(command)
    except library.errors.InsufficientPrivilege as error:
        raise SinkError(
            f"{where} may not make the tables in which rows wait for their commit ({_said(error)}): let the "
            f"user create tables in the schema, or have its owner run, once: {' '.join(tables.split())}"
        ) from error
    return table


def _parameter_types(connection: Any, statement: Statement, where: str) -> tuple[str, ...]:
    """The types that the server takes the parameters for."""
    library = psycopg()
    numbered = statement.with_parameters(
        [f"${number}" for number in range(1, statement.parameter_count + 1)]
    )
    try:
        # What is prepared stays until the connection ends; there is one statement for each.
        prepared = connection.pgconn.prepare(b"opchain", numbered.encode())
        if prepared.status != library.pq.ExecStatus.COMMAND_OK:
            raise library.errors.error_from_result(prepared, encoding="utf-8")
    except library.Error as error:
        raise SinkError(
            f"{where}: the server refuses the statement {numbered!r}: {_said(error)}"
        ) from error
    described = connection.pgconn.describe_prepared(b"opchain")
    connection.execute("DEALLOCATE opchain")
    oids = [described.param_type(number) for number in range(described.nparams)]
    found = connection.execute(
        "SELECT format_type(oid, -1) FROM unnest(%s::oid[]) WITH ORDINALITY AS t(oid, n) ORDER BY n",
        [oids],
    )
    return tuple(name for (name,) in found.fetchall())


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())
