"""SparkSource and SparkSink: all formats of Spark, built in, from a package, or Python Data Sources."""

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
    """The rows of `spark.read.format(...).options(...).load()`, read when the job starts.

    Spark divides the rows into partitions. The source's parallelism decides how many subtasks read them.

    Args:
        format: Spark's name of the format ("parquet", "csv", "jdbc", ...), or the class of a Python Data Source, which
            is then registered with the session.
        options: The options of Spark's reader.
        schema: A StructType or DDL text; None for the schema of the format. A StructType also declares the type of the
            stream.
        path: The path to load, if it is not an option.
        is_streaming: Whether `spark.readStream` reads it, as an unbounded source.
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
        # Executors get only rows. They need no options, which may contain a password, and no path.
        return {"_name": self._name, "is_bounded": self.is_bounded}

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The row type of the schema, if it is a StructType."""
        if self._schema is None or isinstance(self._schema, str):
            return None
        return type_info_of(SparkType.read(self._schema.jsonValue()))

    def dataframe(self, session: Any) -> Any:
        """Loads the DataFrame. Many formats read a part of the data for this."""
        register_format(session, self._format)
        start = session.read if self.is_bounded else session.readStream
        reader = start.format(self._name).options(**self._options)
        if self._schema is not None:
            reader = reader.schema(self._schema)
        return reader.load() if self._path is None else reader.load(self._path)


def format_name(given: Any, what: str) -> str:
    """The name of a format.

    Raises:
        TypeError: The format is neither a name nor a DataSource class of pyspark.
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
    """Registers a Python Data Source with the session."""
    if isinstance(given, type):
        session.dataSource.register(given)


_STREAM_MODES = ("append", "error", "errorifexists")
"""The modes of unbounded jobs, which only append. "error" is the default mode."""

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")


class SparkSink(WrittenSink):
    """Writes records with `dataframe.write.format(...).mode(...).options(...)`, when all tasks have succeeded.

    In an unbounded job the format must be the class of a Python Data Source with a stream writer. Each epoch is committed
    after its checkpoint, with the messages of its tasks.

    A job that fails writes nothing. If the write itself fails, the format decides what is visible. Files of Spark's own
    formats become visible when all files are written.

    Args:
        format: Spark's name of the format, or the class of a Python Data Source.
        mode: "append", "overwrite", "error" (fail if the target exists), or "ignore".
        options: The options of Spark's writer.
        schema: A StructType, another type for records that are not rows, or DDL text; None for the type of the stream.
        partition_by: Columns that become folders.
        path: The path to write to, if it is not an option.

    Raises:
        ValueError: The mode is unknown.
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
        # Executors only create batches. They need neither the path nor the options, which may contain a password.
        return {"_name": self._name, "schema": None}

    def create_committer(self) -> Committer | None:
        """The committer of an unbounded job that runs; None for a bounded job."""
        if self._stream_writer is None:
            return None
        from opchain.runtime.spark.streaming.stream_writers import (  # noqa: PLC0415 - it imports this module
            StreamCommitter,
        )

        return StreamCommitter(self._stream_writer)

    @property
    def has_stream_writer(self) -> bool:
        """Whether an unbounded job can write to it: the format must be a Python Data Source with a stream writer."""
        from pyspark.sql.datasource import DataSource  # noqa: PLC0415 - it may be missing

        return (
            isinstance(self._format, type)
            and issubclass(self._format, DataSource)
            and self._format.streamWriter is not DataSource.streamWriter
            and self._mode in _STREAM_MODES
        )

    def bind_stream_writer(self, columns: dict[str, Any], where: str) -> Any:
        """Creates the stream writer for the tasks and committers of this run.

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
        """Writes the DataFrame, on the driver."""
        register_format(dataframe.sparkSession, self._format)
        writer = dataframe.write.format(self._name).mode(self._mode).options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        if self._path is None:
            writer.save()
        else:
            writer.save(self._path)
