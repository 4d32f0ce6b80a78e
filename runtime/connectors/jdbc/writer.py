"""Writes rows to where they wait: batches by COPY, each a transaction of its own."""

from __future__ import annotations

import re
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from opchain.runtime.connectors.jdbc.staging import StagedRows, connect, psycopg, staging_table
from opchain.runtime.errors import SinkError, short_repr
from opchain.runtime.functions.sink import SinkWriter
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
    from opchain.runtime.connectors.jdbc.statement import Statement
    from opchain.runtime.functions.sink import SinkOrigin

T = TypeVar("T")

_PLACE = re.compile(r", line (\d+)(?:, column p(\d+))?")
_RETRY_AFTER_S = 1.0


class JdbcWriter(SinkWriter[Any]):
    """The writer of one subtask.

    All rows of a checkpoint are one batch, under an id that no other attempt has.
    """

    def __init__(
        self,
        statement: Statement,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        origin: SinkOrigin,
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
            lambda: staging_table(self._connected(), statement, self._where),
            self._reconnect,
            execution.max_retries,
            self._where,
        )

    def write(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - rows have none
        """Takes one record."""
        self.write_batch([value], None)

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,  # noqa: ARG002 - rows have none
    ) -> None:
        """Takes a batch.

        Raises:
            SinkError: A record does not fit the statement.
        """
        count = self._statement.parameter_count
        for value in values:
            if not isinstance(value, (Row, tuple, list)) or len(value) != count:
                raise SinkError(
                    f"{self._where} got the record {short_repr(value)}; its statement takes a Row, tuple or "
                    f"list of {count} fields"
                )
            self._rows.append(value)
            if len(self._rows) >= self._execution.batch_size:
                self._send()

    def flush(self, *, end_of_input: bool) -> None:  # noqa: ARG002 - rows wait in both cases
        """Sends what has not been sent."""
        if self._rows:
            self._send()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[StagedRows]:
        """The batch; none where there were no rows."""
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
        )
        self._batch, self._sent = "", 0
        return (staged,)

    def close(self) -> None:
        """Ends the connection. What waits and is never committed goes with the sink's next commit."""
        if self._connection is not None:
            self._connection.close()

    def _send(self) -> None:
        rows, self._rows = self._rows, []
        if not self._batch:
            self._batch = str(uuid.uuid4())
        retried(lambda: self._copy(rows), self._reconnect, self._execution.max_retries, self._where)
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
        except library.Error as error:
            raise self._refused(error, rows, at) from error

    def _begin_batch(self, cursor: Any) -> None:
        """Notes the batch; removes what a transaction left whose end nobody heard of."""
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
        """What the server, or the library in front of it, has against a row."""
        place = _PLACE.search(error.diag.context or "")
        if place is None:
            return SinkError(
                f"{self._where} can't write the record {short_repr(rows[at])}: "
                f"{' '.join(str(error).split())}"
            )
        row, number = rows[int(place[1]) - 1], place[2]
        text = (
            f"{self._where} can't write the record {short_repr(row)}: {error.diag.message_primary}"
        )
        if number is None:
            return SinkError(text)
        field = int(number) - 1
        return SinkError(
            f"{text}; parameter {number} is {short_repr(row[field])}, but the statement expects "
            f"{self._table.types[field]}"
        )

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = connect(self._options)
        return self._connection

    def _reconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def retried(action: Callable[[], T], prepare: Callable[[], None], retries: int, where: str) -> T:
    """Does something, again where a connection was lost; the second time at once, then ever later.

    Raises:
        SinkError: The last attempt failed.
    """
    library = psycopg()
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(_RETRY_AFTER_S * (attempt - 1))
            prepare()
        try:
            return action()
        except library.OperationalError as error:
            failure = error
    raise SinkError(
        f"{where} can't reach its database after {retries + 1} attempts: "
        f"{' '.join(str(failure).split())}"
    ) from failure
