"""JdbcSink for MySQL and MariaDB: the driver runs the statement, and records the epoch in the same transaction.

Records are staged in an outbox in the checkpoint directory, not in a table of the server. MySQL has no block that runs
a statement for each row of a table, so a staging table would have no advantage.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from opchain.runtime.connectors.jdbc.retries import retried
from opchain.runtime.connectors.jdbc.statement import Statement
from opchain.runtime.connectors.outbox import OutboxSink, place_of
from opchain.runtime.errors import SinkError, imported, short_repr
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
    from opchain.runtime.types.type_variables import T

_URL = re.compile(
    r"jdbc:(?:mysql|mariadb)://(?P<host>\[[^\]]*\]|[^/?:,@]*)(?::(?P<port>\d+))?"
    r"/(?P<database>[^?/]+)(?:\?(?P<query>.*))?"
)
_NAMES = {
    "user": "user",
    "password": "password",
    "connectTimeout": "connect_timeout",
    "characterEncoding": "charset",
}
"""Parameters of the Java drivers, and their names in pymysql."""

_WITHOUT_EFFECT = frozenset(
    {"rewriteBatchedStatements", "useServerPrepStmts", "serverTimezone", "useUnicode", "useSSL"}
)
"""Parameters of the Java drivers that have no effect here."""

_CHARSETS = {"utf-8": "utf8mb4", "utf8": "utf8mb4"}
_TABLE = re.compile(r"\b(?:INTO|UPDATE|DELETE\s+FROM)\s+(?P<table>[\w.`]+)", re.IGNORECASE)
_ON_DUPLICATE = re.compile(r"\bON\s+DUPLICATE\b", re.IGNORECASE)
_NOTES = """\
CREATE TABLE IF NOT EXISTS opchain_sinks (
    sink VARCHAR(255) PRIMARY KEY, epoch BIGINT NOT NULL, piece BIGINT NOT NULL
) ENGINE=InnoDB"""
_ALL_PIECES = 1_000_000_000
_NO_SUCH_TABLE = 1146
_TEMPORARY = frozenset({0, 1040, 1053, 1205, 1213, 1927, 2002, 2003, 2006, 2013})
"""Errors after which a retry may succeed: a lost or closed connection, too many connections, a lock, a deadlock."""


def is_mysql(url: object) -> bool:
    """Whether the URL is for MySQL or MariaDB."""
    return isinstance(url, str) and url.startswith(("jdbc:mysql:", "jdbc:mariadb:"))


def mysql_parameters(options: JdbcConnectionOptions) -> dict[str, Any]:
    """The arguments of `pymysql.connect`.

    Raises:
        ValueError: The URL is malformed, or has an unknown parameter.
    """
    found = _URL.fullmatch(options.url)
    if found is None:
        raise ValueError(
            "the URL of JdbcConnectionOptions is not jdbc:mysql://host:port/database"  # it may hold a password
        )
    parameters: dict[str, Any] = {
        "host": found["host"].strip("[]") or "localhost",
        "port": int(found["port"] or 3306),
        "database": unquote(found["database"]),
        "charset": "utf8mb4",
    }
    for name, value in parse_qsl(found["query"] or "", keep_blank_values=True):
        if name in _NAMES:
            parameters[_NAMES[name]] = value
        elif name not in _WITHOUT_EFFECT:
            raise ValueError(
                f"the URL of JdbcConnectionOptions has the parameter {name!r}; for MySQL it may have "
                f"{', '.join(sorted(_NAMES))}"
            )
    parameters["charset"] = _CHARSETS.get(parameters["charset"].lower(), parameters["charset"])
    if "connect_timeout" in parameters:  # the Java drivers count milliseconds
        parameters["connect_timeout"] = max(1, int(parameters["connect_timeout"]) // 1000)
    if options.user_name is not None:
        parameters["user"] = options.user_name
    if options.password is not None:
        parameters["password"] = options.password
    return parameters


def _check_value(value: Any) -> None:
    """Checks that MySQL has the value. A commit could never succeed with another one.

    Raises:
        ValueError: It has not.
    """
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"MySQL has no number {value}; replace it by None")
    elif isinstance(value, (dict, list, tuple, Row)):
        raise ValueError(
            f"a column of MySQL can't hold the {type(value).__name__} {short_repr(value)}; write it as text, such as "
            "JSON"
        )


class MySqlSink(OutboxSink[Any]):
    """Runs a statement for each record, in the order of subtasks and records."""

    def __init__(
        self,
        sql: str,
        statement: Statement,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
    ) -> None:
        self.sql = sql
        self.statement = statement
        self.connection = connection
        self.execution = execution
        self.batch_size = execution.batch_size

    def __repr__(self) -> str:
        return f"JdbcSink({self.sql!r})"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The table, for lineage. Empty if the statement does not name it."""
        table, place = self._table(self.sql), mysql_parameters(self.connection)
        if table is None:
            return ()
        return ((f"mysql://{place['host']}:{place['port']}", ".".join(table)),)

    def stage(self, owner: str, records: Sequence[Any]) -> Any:
        """Stages records until their checkpoint is complete.

        Raises:
            SinkError: A record does not match the statement.
        """
        for record in records:
            self.statement.require_fields(record, repr(self))
            try:
                for value in record:
                    _check_value(value)
            except ValueError as error:
                raise SinkError(
                    f"{self!r} can't write the record {short_repr(record)}: {error}"
                ) from error
        return super().stage(owner, [self.statement, *map(tuple, records)])

    def send(self, key: str, records: Sequence[Any]) -> None:
        """Runs the statement of the program that staged the records. If it is refused, a corrected one may succeed.

        Raises:
            SinkError: The server refuses the statement or cannot be reached, or the table does not support
                transactions.
        """
        own, rows = self.statement, records
        if isinstance(records[0], Statement):
            own, rows = records[0], records[1:]
        try:
            self._run(own, key, rows)
        except SinkError as error:
            is_refused = not isinstance(error.__cause__, ConnectionError)
            if not (is_refused and self.statement.corrects(own)):
                raise
            self._run(self.statement, key, rows)

    def _run(self, statement: Statement, key: str, records: Sequence[Any]) -> None:
        """Runs a statement for the records in one transaction, unless the note says that it already ran."""
        owner, number, piece = place_of(key)
        # pymysql treats % as the start of a parameter.
        pieces = [text.replace("%", "%%") for text in statement.pieces]

        def run(connection: Any, cursor: Any) -> None:
            cursor.execute(_NOTES)
            self._require_transactions(cursor, "?".join(statement.pieces))
            connection.begin()
            cursor.execute("INSERT IGNORE INTO opchain_sinks VALUES (%s, -1, 0)", [owner])
            cursor.execute(
                "SELECT epoch, piece FROM opchain_sinks WHERE sink = %s FOR UPDATE", [owner]
            )
            if tuple(cursor.fetchone()) >= (number, piece):
                connection.rollback()
                return
            if _ON_DUPLICATE.search("?".join(pieces[:-1])):
                # pymysql's executemany supports parameters in VALUES only.
                for record in records:
                    cursor.execute("%s".join(pieces), record)
            else:
                cursor.executemany("%s".join(pieces), records)
            cursor.execute(
                "UPDATE opchain_sinks SET epoch = %s, piece = %s WHERE sink = %s",
                [number, piece, owner],
            )
            connection.commit()

        self._connected(run)

    def last_commit(self, owner: str) -> int | None:
        """The checkpoint in the note."""
        library = imported("pymysql", "mysql", "JdbcSink")

        def ask(_connection: Any, cursor: Any) -> int | None:
            try:
                cursor.execute("SELECT epoch FROM opchain_sinks WHERE sink = %s", [owner])
            except library.ProgrammingError as error:
                if error.args[0] == _NO_SUCH_TABLE:
                    return None
                raise
            found = cursor.fetchone()
            return None if found is None else int(found[0])

        return self._connected(ask)

    def reset_commits(self, owner: str, number: int) -> None:
        """Sets the note."""

        def reset(connection: Any, cursor: Any) -> None:
            cursor.execute(
                "UPDATE opchain_sinks SET epoch = %s, piece = %s WHERE sink = %s",
                [number, _ALL_PIECES, owner],
            )
            connection.commit()

        self._connected(reset)

    def _connected(self, action: Callable[[Any, Any], T]) -> T:
        """Calls a function with a new connection and its cursor. Repeats the call if the connection is lost.

        Raises:
            SinkError: The server cannot be reached, or refuses the statement.
        """
        library = imported("pymysql", "mysql", "JdbcSink")

        def attempt() -> T:
            try:
                with (
                    library.connect(**mysql_parameters(self.connection)) as connection,
                    connection.cursor() as cursor,
                ):
                    return action(connection, cursor)
            except library.MySQLError as error:
                said = " ".join(str(error.args[-1] if error.args else error).split())
                if error.args and error.args[0] in _TEMPORARY:
                    raise ConnectionError(said) from error
                raise SinkError(
                    f"{self!r}: the server says: {said}. Nothing of this batch was committed; correct the statement, "
                    "the table or the connection, and start the job again"
                ) from error

        return retried(
            attempt, ConnectionError, lambda: None, self.execution.max_retries, repr(self)
        )

    def _table(self, sql: str) -> tuple[str, str] | None:
        """The database and the name of the table, if the statement names them."""
        found = _TABLE.search(sql)
        if found is None:
            return None
        database, _, name = found["table"].replace("`", "").rpartition(".")
        return database or mysql_parameters(self.connection)["database"], name

    def _require_transactions(self, cursor: Any, sql: str) -> None:
        table = self._table(sql)
        if table is None:
            return
        cursor.execute(
            "SELECT e.engine FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine "
            "WHERE (t.table_schema, t.table_name) = (%s, %s) AND e.transactions = 'NO'",
            table,
        )
        found = cursor.fetchone()
        if found is not None:
            raise SinkError(
                f"{self!r}: the table {'.'.join(table)} has the engine {found[0]}, which has no transactions, so records "
                f"could count twice. Run ALTER TABLE {'.'.join(table)} ENGINE=InnoDB, and start the job again"
            )
