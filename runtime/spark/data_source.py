"""Sources of opchain, and the state of a checkpoint, as Python Data Sources of Spark: `spark.read.format(name).load()`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from opchain.runtime.checkpoint.state_rows import Chosen, chosen_operators, read_rows, record_batch
from opchain.runtime.columnar.encode import RecordEncoder
from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.columnar.type_mapping import columns_of, spark_type_of
from opchain.runtime.connectors.collection import NumberSequenceSource
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.source import Source, SourceReaderContext
from opchain.runtime.metrics.metric_group import MetricGroup
from opchain.runtime.records.elements import RecordBatch
from opchain.runtime.state.keys.key_groups import KeyGroupRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from opchain.runtime.checkpoint.savepoint import Located
    from opchain.runtime.types.output_tag import OutputTag
    from opchain.runtime.types.type_information import TypeInformation

    MakeSource = Callable[[Mapping[str, str], SparkType], Source[Any]]

PARTITIONS = "partitions"
"""The option with the number of partitions of the DataFrame."""

BATCH_SIZE = 4096


def data_source(
    name: str, make: MakeSource, default_schema: str | None, partitions: int
) -> type[DataSource]:
    """A Data Source that reads a source of opchain.

    Args:
        name: The name for `format()`.
        make: Creates the source from Spark's options and the schema; called where Spark plans, and on executors.
        default_schema: The default schema as DDL; None if the user must give one.
        partitions: The default of the option `partitions`.
    """
    source_name = name

    class OpchainSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return source_name

        def schema(self) -> str:
            if default_schema is None:
                raise GraphError(
                    f"the format '{source_name}' needs a schema: set it with spark.read.schema(...)"
                )
            return default_schema

        def reader(self, schema: StructType) -> DataSourceReader:
            columns = SparkType.read(schema.jsonValue())
            options = {str(key): str(value) for key, value in self.options.items()}
            parallelism = int(options.pop(PARTITIONS, str(partitions)))
            if parallelism < 1:
                raise ValueError(
                    f"the option '{PARTITIONS}' of the format '{source_name}' is {parallelism}; it must be at "
                    "least 1"
                )
            source = make(options, columns)
            if isinstance(source, SparkRowSource):
                raise UnsupportedFeatureError(f"{source!r} is a Spark format: use spark.read")
            if not source.is_bounded:
                raise UnsupportedFeatureError(
                    f"{source!r} of the format '{source_name}' is unbounded, but spark.read "
                    f"needs a bounded source"
                )
            return SourceReader(source, columns, parallelism, source_name)

    return OpchainSource


class SplitPartition(InputPartition):
    """The splits of one subtask."""

    def __init__(self, splits: Sequence[Any]) -> None:
        super().__init__(list(splits))


class SourceReader(DataSourceReader):
    """Reads a source split by split, as a subtask would."""

    def __init__(
        self, source: Source[Any], columns: SparkType, parallelism: int, name: str
    ) -> None:
        self.source = source.planned(parallelism)
        self.columns = columns
        self.parallelism = parallelism
        self.name = name

    def partitions(self) -> Sequence[InputPartition]:
        """One for each subtask, even if it has nothing to read."""
        return [SplitPartition(splits) for splits in self.source.splits(self.parallelism)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records, as Arrow batches. Records that are not rows become the only column."""
        self.source.open(_NoJob(self.name))
        encode = _encoder(self.columns, f"the format '{self.name}'")
        for split in partition.value:
            for batch in self.source.read(split, BATCH_SIZE):
                records = batch.values if isinstance(batch, RecordBatch) else batch
                if records:
                    yield encode(records)


def _encoder(columns: SparkType, where: str) -> Callable[[Sequence[Any]], Any]:
    rows = RecordEncoder(columns, where)
    if len(columns.fields) != 1:
        return rows.batch
    values = RecordEncoder(columns.fields[0].type, where)
    kinds = (tuple, list, dict)

    def encode(records: Sequence[Any]) -> Any:
        first = records[0]
        if isinstance(first, kinds) or hasattr(first, "__dict__") or hasattr(first, "_fields"):
            return rows.batch(records)
        return values.batch(records).rename_columns([columns_of(columns).fields[0].name])

    return encode


class _NoJob(SourceReaderContext):
    """The context of a source outside of a job: its metrics are not read, and it has no side outputs."""

    def __init__(self, name: str) -> None:
        self._metrics = MetricGroup((name,))

    def metric_group(self) -> MetricGroup:
        """A new group."""
        return self._metrics

    def emit_to(self, tag: OutputTag[Any], value: Any) -> None:
        """Drops the record."""


SEQUENCE = "opchain-sequence"


def register_source(session: SparkSession, name: str, source: Source[Any], schema: Any) -> None:
    """Lets `spark.read.format(name).load()` read a source.

    The session's executors get opchain and the program's modules, if they do not have them.

    Args:
        session: A classic session.
        name: The format's name.
        source: A bounded source; it is pickled with the format.
        schema: The columns of its records, as a StructType or DDL text.
    """
    ddl = schema if isinstance(schema, str) else schema.toDDL()
    register_format(session, name, partial(_given, source), ddl)


def register_sequence(session: SparkSession) -> None:
    """Registers the format `opchain-sequence`: the numbers from the option `start` to the option `end`."""
    register_format(session, SEQUENCE, _sequence, "value bigint")


def register_format(session: SparkSession, name: str, make: Any, schema: str | None) -> None:
    """Registers a format whose source `make(options, columns)` creates; see `data_source`."""
    from opchain.runtime.spark.worker_path import provide_modules  # noqa: PLC0415 - not on executors

    provide_modules(session.sparkContext, None)
    partitions = session.sparkContext.defaultParallelism
    session.dataSource.register(data_source(name, make, schema, partitions))


def _given(source: Source[Any], options: Mapping[str, str], columns: SparkType) -> Source[Any]:
    if options:
        raise ValueError(
            f"{source!r} has no options, got {', '.join(sorted(options))}: {columns.sql}"
        )
    return source


def _sequence(options: Mapping[str, str], columns: SparkType) -> NumberSequenceSource:
    del columns
    missing = sorted({"start", "end"} - set(options))
    unknown = sorted(set(options) - {"start", "end"})
    if missing or unknown:
        raise ValueError(
            f"the format '{SEQUENCE}' takes the options 'start' and 'end', and 'partitions'; "
            f"missing: {', '.join(missing) or 'none'}, unknown: {', '.join(unknown) or 'none'}"
        )
    return NumberSequenceSource(int(options["start"]), int(options["end"]))


_ROWS_PER_BATCH = 10_000


class GroupReader:
    """Reads the key groups whose numbers it gets, on executors."""

    def __init__(self, checkpoint: Located, chosen: Chosen, of_type: TypeInformation[Any]) -> None:
        self._checkpoint = checkpoint
        self._chosen = chosen
        self._type = of_type

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The rows of key groups as record batches."""
        rows = []
        for batch in batches:
            groups = batch.column(0).to_pylist()
            span = KeyGroupRange(
                min(groups), max(groups)
            )  # a partition of spark.range() has no gaps
            for row in read_rows(self._checkpoint, self._chosen._replace(key_groups=span)):
                rows.append(row)
                if len(rows) == _ROWS_PER_BATCH:
                    yield record_batch(rows, self._type)
                    rows = []
        if rows:
            yield record_batch(rows, self._type)


def state_frame(
    spark: SparkSession, checkpoint: Located, chosen: Chosen, of_type: TypeInformation[Any]
) -> DataFrame:
    """The rows of keyed state and timers; a partition has contiguous key groups."""
    operators = chosen_operators(checkpoint.metadata, chosen.operator, chosen.state)
    groups = max(operator.max_parallelism for operator in operators)
    partitions = min(groups, spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, groups, 1, partitions)
    from pyspark.sql.types import StructType  # noqa: PLC0415 - executors load this module only to read

    schema = StructType.fromJson(spark_type_of(of_type).to_json())
    return numbers.mapInArrow(GroupReader(checkpoint, chosen, of_type), schema)
