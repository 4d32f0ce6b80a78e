"""JdbcSource: the rows of a query of PostgreSQL, read once, in parallel by ranges of a column."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.jdbc.staging import connect, psycopg
from opchain.runtime.errors import StreamError, require_instance, short_repr
from opchain.runtime.functions.source import Source
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.row import Row
from opchain.runtime.types.time_types import TimestampTypeInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions
    from opchain.runtime.types.type_information import TypeInformation

_BOUNDS = (int, float, Decimal, datetime)
_FOUND = (*_BOUNDS, date)


class JdbcSourceError(StreamError):
    """The database can't be reached, or refuses the query.

    What to do: Correct the query, the connection or the declared type. Then start the job again.
    """


class JdbcSplit(NamedTuple):
    """A range of the partition column: from `low` to below `high`; None for no bound."""

    low: Any
    high: Any


class JdbcSource(Source[Row]):
    """Reads the rows of a query, and ends; create it with `JdbcSource.builder()`. Flink: JdbcSource (Java only).

    One subtask reads each range, in its own transaction. Rows that change while the job runs may be read in either state.
    A row that moves from one range to another may be missed or read twice.
    """

    def __init__(
        self,
        query: str,
        options: JdbcConnectionOptions,
        row_type: RowTypeInfo | None,
        column: str | None,
        bounds: tuple[Any, Any] | None,
        partitions: int,
    ) -> None:
        self.query = query
        self.options = options
        self.row_type = row_type
        self.column = column
        self.bounds = bounds
        self.partitions = partitions

    def __repr__(self) -> str:
        return f"JdbcSource({self.query!r})"

    @staticmethod
    def builder() -> JdbcSourceBuilder:
        """Starts a source."""
        return JdbcSourceBuilder()

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The declared type."""
        return self.row_type

    def planned(self, parallelism: int) -> Source[Row]:
        """The source with its bounds. Missing bounds are queried from the database.

        Raises:
            JdbcSourceError: The database can't be queried, or the column has no numbers or times.
        """
        partitions = self.partitions or parallelism
        if self.column is None or self.bounds is not None or partitions == 1:
            return JdbcSource(
                self.query, self.options, self.row_type, self.column, self.bounds, partitions
            )
        column = self.column
        bounds = (
            f"SELECT min({column}), max({column}) FROM {self._subquery()} "  # noqa: S608 - the program's own
            f"WHERE lower(CAST({column} AS text)) NOT IN ('nan', 'infinity', '-infinity')"
        )
        low, high = next(iter(self._rows(bounds)))[0]
        if low is not None and not isinstance(low, _FOUND):
            raise JdbcSourceError(
                f"{self!r} can't be divided by the column {column}: its least value is {short_repr(low)}, which is "
                "neither a number nor a time. Call partition_by() with another column"
            )
        found = None if low is None else (low, high)
        return JdbcSource(self.query, self.options, self.row_type, column, found, partitions)

    def splits(self, parallelism: int) -> Sequence[Sequence[JdbcSplit]]:
        """The ranges, in turn."""
        ranges = self._ranges()
        return [ranges[subtask::parallelism] for subtask in range(parallelism)]

    def split_name(self, split: JdbcSplit) -> str:
        """The range."""
        return f"{self.column or 'all rows'} from {split.low} to {split.high}"

    def read(self, split: JdbcSplit, batch_size: int) -> Iterator[Sequence[Row]]:
        """The rows of a range, read with a cursor of the server.

        Raises:
            JdbcSourceError: The database can't be reached, or refuses the query.
        """
        query, column = self.query, self.column
        arguments: list[Any] = []
        if split != JdbcSplit(None, None):
            # Bounds do not filter: the first range has no lower bound and includes NULL, the last one has no upper bound.
            tests = []
            if split.low is not None:
                tests.append(f"{column} >= %s")
                arguments.append(split.low)
            if split.high is not None:
                tests.append(f"{column} < %s")
                arguments.append(split.high)
            where = " AND ".join(tests)
            if split.low is None:
                where += f" OR {column} IS NULL"
            escaped = self._subquery().replace("%", "%%")
            query = f"SELECT * FROM {escaped} WHERE {where}"  # noqa: S608 - the program's own
        for names, rows in self._batches(query, arguments, batch_size):
            made = Row(*names)
            yield [made(*values) for values in self._without_zones(rows)]

    def _without_zones(self, rows: list[tuple[Any, ...]]) -> Iterable[Sequence[Any]]:
        """The rows, in which values of the declared type SQL_TIMESTAMP are in UTC and without a zone."""
        types = () if self.row_type is None else self.row_type.field_types
        places = {
            place
            for place, of in enumerate(types)
            if isinstance(of, TimestampTypeInfo) and not of.keeps_zone
        }
        if not places:
            return rows
        return (
            [_in_utc(value) if place in places else value for place, value in enumerate(values)]
            for values in rows
        )

    def _subquery(self) -> str:
        return f"({self.query}\n) AS q"  # the line break ends a comment

    def _ranges(self) -> list[JdbcSplit]:
        if self.column is None or self.bounds is None or self.partitions <= 1:
            return [JdbcSplit(None, None)]
        low, high = self.bounds
        step = (high - low) / self.partitions if not isinstance(low, int) else None
        cuts: list[Any] = []
        for number in range(1, self.partitions):
            cut = (
                low + (high - low) * number // self.partitions
                if step is None
                else low + step * number
            )
            if not cuts or cut > cuts[-1]:
                cuts.append(cut)
        cuts = [cut for cut in cuts if cut > low]
        return [JdbcSplit(*pair) for pair in zip([None, *cuts], [*cuts, None], strict=True)]

    def _rows(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        for _, rows in self._batches(query, [], 1):
            yield rows

    def _batches(
        self, query: str, arguments: Sequence[Any], batch_size: int
    ) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
        library = psycopg()
        try:
            connection = connect(self.options)
            try:
                with connection.transaction(), connection.cursor(name="opchain") as cursor:
                    cursor.execute(query, arguments or None)
                    names = self._names(cursor)
                    while rows := cursor.fetchmany(batch_size):
                        yield names, rows
            finally:
                connection.close()
        except library.Error as error:
            raise JdbcSourceError(
                f"{self!r} can't be read: {' '.join(str(error).split())}. Correct the query or the connection, and start "
                "the job again"
            ) from error

    def _names(self, cursor: Any) -> list[str]:
        found = [each.name for each in cursor.description]
        if self.row_type is None:
            return found
        names = self.row_type.get_field_names()
        if len(names) != len(found):
            raise JdbcSourceError(
                f"{self!r} gives {len(found)} columns ({', '.join(found)}), but its type has {len(names)}: "
                f"{', '.join(names)}; correct the type or the query"
            )
        return list(names)


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value


class JdbcSourceBuilder:
    """Builds a JdbcSource."""

    def __init__(self) -> None:
        self._query: str | None = None
        self._options: JdbcConnectionOptions | None = None
        self._type: RowTypeInfo | None = None
        self._column: str | None = None
        self._bounds: tuple[Any, Any] | None = None
        self._partitions = 1

    def set_sql(self, sql: str) -> JdbcSourceBuilder:
        """Sets the query."""
        self._query = sql.strip().rstrip(";")
        return self

    def set_connection_options(self, options: JdbcConnectionOptions) -> JdbcSourceBuilder:
        """Sets the database."""
        self._options = options
        return self

    def set_type_info(self, type_info: RowTypeInfo) -> JdbcSourceBuilder:
        """Sets the type of the rows; by default rows have the column names of the query."""
        where = "JdbcSourceBuilder.set_type_info"
        require_instance(type_info, RowTypeInfo, where, "a type of rows")
        self._type = type_info
        return self

    def partition_by(
        self, column: str, low: Any = None, high: Any = None, partitions: int = 0
    ) -> JdbcSourceBuilder:
        """Reads ranges of a column in parallel. All rows are read, also rows outside the bounds and with NULL.

        Args:
            column: A numeric column, a date or a timestamp of the query; an index on it makes this fast.
            low: The start of the ranges; by default the least value.
            high: The end of the ranges; by default the greatest value.
            partitions: The number of ranges; by default the source's parallelism.

        Raises:
            ValueError: Only one bound is given, or they are not in order.
            TypeError: A bound is neither a number nor a datetime.
        """
        if (low is None) != (high is None):
            raise ValueError("JdbcSourceBuilder.partition_by takes both bounds or none")
        if low is not None:
            if not isinstance(low, _BOUNDS) or not isinstance(high, _BOUNDS):
                raise TypeError(
                    f"JdbcSourceBuilder.partition_by got the bounds {low!r} and {high!r}; it takes numbers or datetimes"
                )
            if low > high:  # type: ignore[operator]  # both are of one kind, or this raises
                raise ValueError(
                    f"JdbcSourceBuilder.partition_by got {low!r} to {high!r}; put the lower bound first"
                )
            self._bounds = (low, high)
        self._column, self._partitions = column, partitions
        return self

    def build(self) -> JdbcSource:
        """The source.

        Raises:
            ValueError: The query or the connection is missing.
        """
        if self._query is None or self._options is None:
            raise ValueError(
                "JdbcSourceBuilder.build: call set_sql() and set_connection_options() first"
            )
        return JdbcSource(
            *(self._query, self._options, self._type, self._column, self._bounds, self._partitions)
        )
