"""CloseableIterator: the records of a stream, for the program that defines the stream."""

from __future__ import annotations

import html
from collections import deque
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import GraphError, short_repr
from opchain.runtime.types.row import Row
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.interception import CapturedJobClient
    from opchain.runtime.job.run import JobRun


class CloseableIterator(Generic[T]):
    """The records of `execute_and_collect`, as they arrive. Closing the iterator ends the job.

    >>> from opchain import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with env.from_collection([1, 2]).execute_and_collect() as records:  # doctest: +SKIP
    ...     print(sorted(records))
    [1, 2]
    """

    def __init__(self, sink: Transformation, convert: Callable[[Any], Any] | None = None) -> None:
        self.sink = sink
        self._convert = convert
        self._client: JobRun | CapturedJobClient | None = None
        self._records: Iterator[T] | None = None
        self._first: deque[T] = deque()  # records that a notebook has shown

    def converted_by(self, convert: Callable[[Any], Any]) -> CloseableIterator[T]:
        """Applies the function to each record before returning it."""
        first = self._convert
        self._convert = convert if first is None else lambda record: convert(first(record))
        return self

    def attach(self, client: JobRun | CapturedJobClient) -> None:
        """Sets the client of the job that produces the records."""
        self._client = client

    def __iter__(self) -> CloseableIterator[T]:
        return self

    def __next__(self) -> T:
        if self._first:
            return self._first.popleft()
        return self._read()

    def _read(self) -> T:
        """Waits for the next record and returns it."""
        try:
            if self._records is None:
                self._records = self._started()
            return next(self._records)
        except KeyboardInterrupt:
            self.close()  # Ctrl-C during the wait for a record ends the job, as in execute()
            raise

    def _repr_html_(self) -> str:
        """For notebooks: the first records as a table. Reading the iterator still returns all records.

        For an unbounded job, this waits until that many records have arrived.
        """
        seen = list(self._first)
        while len(seen) < _SHOWN:
            try:
                record = self._read()
            except StopIteration:
                return records_table(seen, is_all=True)
            seen.append(record)
            self._first = deque(seen)
        return records_table(seen, is_all=False)

    def next(self) -> T:
        """The next record. Raises StopIteration after the last one."""
        return self.__next__()

    def close(self) -> None:
        """Ends the job if it still runs. The iterator returns no more records then."""
        self._records = iter(())
        self._first.clear()
        client, self._client = self._client, None
        if client is None:
            return
        if not client.get_job_status().result().is_globally_terminal_state():
            client.cancel().result()

    def __enter__(self) -> CloseableIterator[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> Iterator[T]:
        if self._client is None:
            raise GraphError(
                f"{self.sink.label}: its job has not been started; call env.execute_async() before reading the records"
            )
        records = self._client.collected(str(self.sink.uid))
        return records if self._convert is None else map(self._convert, records)


_SHOWN = 20


def records_table(records: Sequence[Any], *, is_all: bool) -> str:
    """Records as a table of HTML: a column for each field of rows, tuples and dicts."""
    titles = _field_names(records[0]) if records else ["value"]
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(short_repr(value))}</td>' for value in _fields(record))}</tr>"
        for record in records
    )
    more = "" if is_all else f"<div>the first {len(records)} records; the iterator gives all</div>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _field_names(record: Any) -> list[str]:
    if isinstance(record, Row):
        if record.has_field_names():
            return list(record.as_dict())
        return [f"f{number}" for number in range(len(record))]
    if isinstance(record, dict):
        return list(map(str, record))
    if isinstance(record, tuple) and record:
        names = getattr(record, "_fields", None)
        return list(names) if names else [f"f{number}" for number in range(len(record))]
    return ["value"]


def _fields(record: Any) -> list[Any]:
    if isinstance(record, dict):
        return list(record.values())
    return (
        list(record)
        if isinstance(record, Row) or (isinstance(record, tuple) and record)
        else [record]
    )
