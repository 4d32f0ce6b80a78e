"""Whatever Spark can read, as a source: a format of Spark's, a package's, or a Python Data Source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.columnar.type_mapping import type_info_of
from opchain.runtime.connectors.fed_source import FedSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.types.type_information import TypeInformation


class SparkSource(FedSource):
    """The rows of what `spark.read.format(...).options(...).load()` gives; read when the job starts.

    The rows are spread over the subtasks as Spark cuts them: set the source's parallelism.

    Args:
        format: Spark's name of it ("parquet", "csv", "jdbc", ...), or the class of a Python Data Source, which
            is registered with the session.
        options: As for Spark's reader.
        schema: A StructType or DDL text; None lets the format say it. A StructType also gives the stream
            its type.
        path: What to load, where it is no option.
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
