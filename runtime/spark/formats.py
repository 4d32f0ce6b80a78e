"""Sources and sinks of every format that Spark reads and writes: built in, of a package, or a Python Data Source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.columnar.type_mapping import type_info_of
from opchain.runtime.connectors.arrow_sink import WrittenSink
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.runtime.functions.sink import Committer
    from opchain.runtime.types.type_information import TypeInformation


class SparkSource(SparkRowSource):
    """The rows of what `spark.read.format(...).options(...).load()` gives; read when the job starts.

    The rows are spread over the subtasks as Spark cuts them: set the source's parallelism.

    Args:
        format: Spark's name of it ("parquet", "csv", "jdbc", ...), or the class of a Python Data Source, which
            is registered with the session.
        options: As for Spark's reader.
        schema: A StructType or DDL text; None lets the format say it. A StructType also gives the stream
            its type.
        path: What to load, where it is not an option.
        is_streaming: Whether to read it by `spark.readStream`, without end.
    """

    def __init__(
        self,
        format: str | type,  # noqa: A002 - Spark's name for it
        options: Mapping[str, Any] | None = None,
        schema: Any = None,
        path: str | list[str] | None = None,
        *,
        is_streaming: bool = False,
    ) -> None:
        self.is_bounded = not is_streaming
        self._name = format_name(format, "SparkSource")
        self._format = format
        self._options = dict(options or {})
        self._schema = schema
        self._path = path

    def __repr__(self) -> str:
        return f"SparkSource({self._name})"

    def __getstate__(self) -> dict[str, Any]:
        # Executors get the rows alone: options may hold a password, and a path is the driver's business.
        return {"_name": self._name, "is_bounded": self.is_bounded}

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The Row of the schema, where a StructType was given."""
        if self._schema is None or isinstance(self._schema, str):
            return None
        return type_info_of(SparkType.read(self._schema.jsonValue()))

    def dataframe(self, session: Any) -> Any:
        """Loads it: for many formats this already looks at the data."""
        register_format(session, self._format)
        start = session.read if self.is_bounded else session.readStream
        reader = start.format(self._name).options(**self._options)
        if self._schema is not None:
            reader = reader.schema(self._schema)
        return reader.load() if self._path is None else reader.load(self._path)


def format_name(given: Any, what: str) -> str:
    """The name of a format.

    Raises:
        TypeError: It is neither a name nor a DataSource of pyspark.
    """
    if isinstance(given, str):
        return given
    name = getattr(given, "name", None)
    if isinstance(given, type) and callable(name) and hasattr(given, "schema"):
        return str(name())
    raise TypeError(
        f"{what} got the format {given!r}; it takes a name such as 'parquet', or a class derived from "
        "pyspark.sql.datasource.DataSource"
    )


def register_format(session: Any, given: Any) -> None:
    """Makes a Python Data Source known to the session, under its name."""
    if isinstance(given, type):
        session.dataSource.register(given)


_STREAM_MODES = ("append", "error", "errorifexists")
"""A stream only appends: "error" is what a sink has that was given no mode."""

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")


class SparkSink(WrittenSink):
    """Writes the records by `dataframe.write.format(...).mode(...).options(...)`, when all tasks have succeeded.

    In an unbounded job the format is the class of a Python Data Source that has a stream writer: each
    epoch is committed to it with the messages of its tasks, after its checkpoint.

    A job that fails writes nothing. What is seen of a write that fails itself is up to the format: files of
    Spark's formats appear when all are written.

    Args:
        format: Spark's name of it, or the class of a Python Data Source.
        mode: "append", "overwrite", "error" where there is something already, or "ignore".
        options: As for Spark's writer.
        schema: A StructType, another type for records that are not rows, or DDL text; None for what the
            stream's type says.
        partition_by: Columns that become folders.
        path: Where to, where it is not an option.

    Raises:
        ValueError: There is no such mode.
    """

    def __init__(
        self,
        format: str | type,  # noqa: A002 - Spark's name for it
        mode: str = "error",
        options: Mapping[str, Any] | None = None,
        schema: Any = None,
        partition_by: Sequence[str] = (),
        path: str | None = None,
    ) -> None:
        super().__init__(schema)
        self._name = format_name(format, "SparkSink")
        if mode not in MODES:
            raise ValueError(f"SparkSink got the mode {mode!r}; the modes are {', '.join(MODES)}")
        self._format = format
        self._mode = mode
        self._options = dict(options or {})
        self._partition_by = tuple(partition_by)
        self._path = path
        self._stream_writer: Any = None

    def __repr__(self) -> str:
        return f"SparkSink({self._name})"

    def __getstate__(self) -> dict[str, Any]:
        # Executors make batches: where they are written, maybe by a password, is the driver's business.
        return {"_name": self._name, "schema": None}

    def create_committer(self) -> Committer | None:
        """The committer of an unbounded job, once it runs; a bounded one needs none."""
        if self._stream_writer is None:
            return None
        from opchain.runtime.spark.streaming.stream_writers import (  # noqa: PLC0415 - it imports this
            StreamCommitter,
        )

        return StreamCommitter(self._stream_writer)

    @property
    def has_stream_writer(self) -> bool:
        """Whether an unbounded job can write to it: the class of a Python Data Source says how."""
        from pyspark.sql.datasource import DataSource  # noqa: PLC0415 - it may be missing

        return (
            isinstance(self._format, type)
            and issubclass(self._format, DataSource)
            and self._format.streamWriter is not DataSource.streamWriter
            and self._mode in _STREAM_MODES
        )

    def bind_stream_writer(self, columns: dict[str, Any], where: str) -> Any:
        """Makes the stream writer that this run's tasks and committers share.

        Args:
            columns: The schema of the rows, as Spark's JSON.
            where: The operator, for errors.
        """
        from pyspark.sql.datasource import CaseInsensitiveDict  # noqa: PLC0415
        from pyspark.sql.types import StructType  # noqa: PLC0415

        options = {**self._options, **({} if self._path is None else {"path": self._path})}
        try:
            source: Any = self._format(CaseInsensitiveDict(options))  # type: ignore[operator]
            self._stream_writer = source.streamWriter(StructType.fromJson(columns), overwrite=False)
        except Exception as error:
            add_note(error, f"while making the stream writer of {where}")
            raise
        return self._stream_writer

    def write(self, dataframe: Any) -> None:
        """Writes it, on the driver."""
        register_format(dataframe.sparkSession, self._format)
        writer = dataframe.write.format(self._name).mode(self._mode).options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        if self._path is None:
            writer.save()
        else:
            writer.save(self._path)
