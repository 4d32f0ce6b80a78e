"""The records of a stream, read by the program that drew it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol

from opchain.runtime.errors import GraphError
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from opchain.compiler.graph.transformation import Transformation
    from opchain.runtime.job.client import JobClient


class CollectingClient(Protocol):
    """What the client of a running job offers beyond a JobClient, where it can."""

    def collected(self, sink_uid: str) -> Iterator[Any]:
        """The records that reached the collecting sink of this uid, as they come."""


class CloseableIterator(Generic[T]):
    """The records of `execute_and_collect`, as they come; closing it ends the job.

    >>> from opchain import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with env.from_collection([1, 2]).execute_and_collect() as records:  # doctest: +SKIP
    ...     print(sorted(records))
    [1, 2]
    """

    def __init__(self, sink: Transformation) -> None:
        self._sink = sink
        self._client: JobClient | None = None
        self._records: Iterator[T] | None = None

    def attach(self, client: JobClient) -> None:
        """Names the job that the records come from."""
        self._client = client

    def __iter__(self) -> CloseableIterator[T]:
        return self

    def __next__(self) -> T:
        if self._records is None:
            self._records = self._started()
        return next(self._records)

    def next(self) -> T:
        """The next record; StopIteration behind the last."""
        return self.__next__()

    def close(self) -> None:
        """Ends the job if it still runs; there are no more records then."""
        self._records = iter(())
        client, self._client = self._client, None
        if client is None:
            return
        if not client.get_job_status().result().is_globally_terminal_state():
            client.cancel().result()

    def __enter__(self) -> CloseableIterator[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _started(self) -> Iterator[T]:
        if self._client is None:
            raise GraphError(
                f"'{self._sink.name}' ({self._sink.call_site}): its job has not been started; "
                f"call env.execute_async() before reading the records"
            )
        client: CollectingClient = self._client  # type: ignore[assignment]  # if it lacks it, say so
        return client.collected(str(self._sink.uid))
