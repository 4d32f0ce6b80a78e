"""Sources whose rows Spark reads: partitions of a DataFrame, as Arrow batches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.decode import records_of
from opchain.runtime.columnar.spark_types import SparkType, arrow_schema, pyarrow
from opchain.runtime.columnar.type_mapping import type_info_of
from opchain.runtime.errors import GraphError, InternalError, UnsupportedFeatureError
from opchain.runtime.functions.source import Source
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.runtime.types.type_information import TypeInformation


@dataclass(frozen=True, slots=True)
class SparkRows:
    """The input of one subtask of a DataFrame source.

    `schema` is Spark's schema as JSON text. `chunks` are record batches in the format of Arrow streams.
    """

    schema: str
    chunks: Iterable[bytes]
    has_large_types: bool = False


class SparkRowSource(Source[Row]):
    """A source whose rows Spark reads: its vertex is in the first stage, whose input is the DataFrame.

    The only split of a subtask is its SparkRows. A streaming DataFrame is unbounded: in each epoch, subtasks get the rows
    of a micro-batch as Arrow streams.
    """

    @abstractmethod
    def dataframe(self, session: Any) -> Any:
        """The DataFrame, on the driver, when the job starts."""

    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        """Refuses: Spark divides the rows.

        Raises:
            InternalError: Always.
        """
        raise InternalError(
            f"{self!r} does not create splits: the driver feeds its {parallelism} tasks"
        )

    def read(self, split: SparkRows, batch_size: int) -> Iterator[Sequence[Row]]:
        """The rows of the feed."""
        arrow = pyarrow()
        columns = SparkType.parse(split.schema)
        schema = arrow_schema(columns, large=split.has_large_types)
        for chunk in split.chunks:
            batch = arrow.ipc.read_record_batch(arrow.py_buffer(chunk), schema)
            for first in range(0, batch.num_rows, batch_size):
                yield records_of(batch.slice(first, batch_size))

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[Row]]:
        """The rows of a part of a micro-batch."""
        for batch in pyarrow().ipc.open_stream(delivery):
            for first in range(0, batch.num_rows, batch_size):
                yield records_of(batch.slice(first, batch_size))


class DataFrameSource(SparkRowSource):
    """The rows of a DataFrame.

    The DataFrame stays on the driver: a pickled source has none.

    Raises:
        GraphError: The argument is not a DataFrame.
        UnsupportedFeatureError: The DataFrame belongs to Spark Connect, or a column has a type that is not supported.
    """

    def __init__(self, dataframe: Any) -> None:
        schema = getattr(dataframe, "schema", None)
        if (
            schema is None
            or not hasattr(schema, "jsonValue")
            or not hasattr(dataframe, "isStreaming")
        ):
            raise GraphError(f"{dataframe!r} is not a Spark DataFrame")
        if not hasattr(dataframe, "_jdf"):
            raise UnsupportedFeatureError(
                f"{dataframe!r} belongs to a session of Spark Connect, which has no RDDs: create "
                f"the DataFrame in a classic session (a master instead of a remote)"
            )
        self._dataframe = dataframe
        self.is_bounded = not dataframe.isStreaming
        self._columns = SparkType.read(schema.jsonValue())

    def __repr__(self) -> str:
        return f"DataFrameSource({', '.join(self.row_names)})"

    def __getstate__(self) -> dict[str, Any]:
        return {"_dataframe": None, "_columns": self._columns, "is_bounded": self.is_bounded}

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self._columns.fields)

    def get_produced_type(self) -> TypeInformation[Any]:
        """The Row of the DataFrame's schema."""
        return type_info_of(self._columns)

    def dataframe(self, session: Any) -> Any:
        """The DataFrame.

        Raises:
            GraphError: Its SparkContext was stopped.
        """
        context = self._dataframe.sparkSession.sparkContext
        if context is not session.sparkContext:
            raise GraphError(
                f"the DataFrame of {self!r} belongs to a SparkContext that was stopped: create "
                f"the DataFrame again"
            )
        return self._dataframe
