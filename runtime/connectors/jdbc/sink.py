"""JdbcSink: runs a statement of PostgreSQL with each record, exactly once; `mysql` does so for MySQL.

Tasks copy rows to tables in which they wait, and the driver runs the statement with them when the checkpoint,
or the bounded job, is complete: see `staging` and `committer`.

Rejected: `PREPARE TRANSACTION`, which is what Flink's exactly-once sink does by XA. PostgreSQL has it switched
off unless it is started with another setting. And a prepared transaction holds its locks until it is
committed: a second attempt of a task, or another subtask with the same key, waits for the first, whose commit
waits for both. Rows that wait hold no locks, and nothing is seen until all of a checkpoint is. They cost one
more write.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.jdbc.mysql import MySqlSink, is_mysql
from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.statement import parse_statement
from opchain.runtime.functions.sink import Committer, Sink, SinkWriter, origin_of
from opchain.runtime.functions.source_sink_functions import TwoPhaseSinkFunction
from opchain.runtime.types.record_types import RowTypeInfo

if TYPE_CHECKING:
    from opchain.runtime.functions.function import RuntimeContext


class JdbcSink(TwoPhaseSinkFunction[Any]):
    """A sink of `add_sink` that runs a statement with each record. Flink: JdbcSink.

    PostgreSQL, MySQL and MariaDB are there. Each record counts once, whatever was retried: Flink's `JdbcSink.sink` promises
    at least once. Rows show when their checkpoint is complete, those of all subtasks at the same moment.
    MySQL shows them in batches: all records of a bounded job, or of a checkpoint, pass through the driver.
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
            jdbc_connection_options: Where the database is.
            jdbc_execution_options: Batches and retries; `JdbcExecutionOptions.defaults()` if not given.

        Raises:
            TypeError: An argument is of another kind.
            ValueError: The statement has another number of parameters.
        """
        _check(sql, str, "a statement as text")
        _check(type_info, RowTypeInfo, "a type of Types.ROW or Types.ROW_NAMED")
        _check(jdbc_connection_options, JdbcConnectionOptions, "JdbcConnectionOptions")
        execution = jdbc_execution_options or JdbcExecutionOptions.defaults()
        _check(execution, JdbcExecutionOptions, "JdbcExecutionOptions")
        statement = parse_statement(sql)
        fields = len(type_info.field_types)
        if statement.parameter_count != fields:
            raise ValueError(
                f"JdbcSink.sink got the statement {sql!r} with {statement.parameter_count} "
                f"parameters, but a type of {fields} fields; it needs one ? per field"
            )
        if is_mysql(jdbc_connection_options.url):
            return JdbcSink(MySqlSink(sql, statement, jdbc_connection_options, execution))
        return JdbcSink(_PostgresSink(sql, jdbc_connection_options, execution))


_PLACE = re.compile(r"//(?:[^@/]*@)?(?P<host>[^:/,?]+)(?::(?P<port>\d+))?[^/]*/(?P<database>[^?]+)")
_TABLE = re.compile(r"\b(?:INTO|UPDATE|DELETE\s+FROM)\s+(?P<table>[\w.\"]+)", re.IGNORECASE)


class _PostgresSink(Sink[Any]):
    """The two halves."""

    reads_timestamps = False
    changes_records = False

    def __init__(
        self, sql: str, connection: JdbcConnectionOptions, execution: JdbcExecutionOptions
    ) -> None:
        self.sql = sql
        self.connection = connection
        self.execution = execution

    def __repr__(self) -> str:
        return f"JdbcSink({self.sql!r})"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The table, for lineage; none where the URL or the statement does not show it."""
        url = _PLACE.search(self.connection.url)
        table = _TABLE.search(self.sql)
        if url is None or table is None:
            return ()
        name = table["table"].replace('"', "")
        schema = "" if "." in name else "public."
        host = f"{url['host']}:{url['port'] or 5432}"
        return ((f"postgres://{host}", f"{url['database']}.{schema}{name}"),)

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        """Connects, and sees whether the server takes the statement."""
        from opchain.runtime.connectors.jdbc.writer import JdbcWriter  # noqa: PLC0415 - few jobs write to databases

        statement = parse_statement(self.sql)
        return JdbcWriter(statement, self.connection, self.execution, origin_of(context))

    def create_committer(self) -> Committer:
        """Runs the statement."""
        from opchain.runtime.connectors.jdbc.committer import JdbcCommitter  # noqa: PLC0415 - likewise

        return JdbcCommitter(parse_statement(self.sql), self.connection, self.execution)


def _check(value: Any, kind: type, wanted: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"JdbcSink.sink got {value!r}; it takes {wanted} there")
