"""Tables in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.stream_dataframe import never_ends
from opchain.compiler.table.connectors.formats import AvroFormat, JsonFormat, format_of
from opchain.compiler.table.connectors.options import Options, TableSource
from opchain.compiler.table.connectors.printed import printers
from opchain.compiler.table.data_types import ArrayType, BytesType, MapType, RawType, RowType
from opchain.compiler.table.expressions import by_position
from opchain.compiler.table.queries import projection
from opchain.runtime.errors import GraphError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.expressions import Column

_READS = ("source.monitor-interval", "source.path.regex-pattern", "source.report-statistics")
_WRITES = (
    *("sink.rolling-policy.", "sink.partition-commit.", "sink.parallelism", "partition."),
    *("auto-compaction", "compaction.file-size", "compaction.parallelism"),
    "sink.shuffle-by-partition.enable",
)
_INTERVALS = tuple(
    f"sink.rolling-policy.{each}-interval" for each in ("rollover", "check", "inactivity")
)
_DEFAULT_PARTITION = "__DEFAULT_PARTITION__"
_NO_FOLDERS = (ArrayType, BytesType, MapType, RawType, RowType)


def read_files(options: Options) -> TableSource:
    """A table of files as a source."""
    from opchain.runtime.connectors.file_source import FileSourceBuilder  # noqa: PLC0415 - loaded when used
    from opchain.runtime.connectors.partitions import PartitionedFormat  # noqa: PLC0415 - likewise
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - likewise

    path = options.need("path")
    stored, keys = _columns(options)
    form = format_of(options, "reader", stored, "format")
    names, types = list(form.rows.get_field_names()), list(form.rows.field_types)
    reader = form.reader()
    if keys:
        reader = PartitionedFormat(
            reader, names, [each.name for each in keys], _default_name(options)
        )
    builder = FileSourceBuilder(reader, (path,))
    if form.skips_malformed:
        builder.on_malformed("skip")
    interval = options.duration("source.monitor-interval")
    if interval is not None:
        builder.monitor_continuously(interval)
    options.without_effect("files are listed once", "source.report-statistics")
    options.drop(*_WRITES)
    options.finish()
    names += [each.name for each in keys]
    types += [Types.STRING()] * len(keys)
    return TableSource(builder.build(), names, types, form.gives_rows)


def write_files(stream: DataStream[Any], options: Options) -> Any:
    """Writes the rows of a stream to files."""
    from opchain.runtime.connectors.file_buckets import BucketAssigner  # noqa: PLC0415 - loaded when used
    from opchain.runtime.connectors.file_sink import FileSink  # noqa: PLC0415 - likewise
    from opchain.runtime.connectors.partitions import (  # noqa: PLC0415 - likewise
        PartitionEncoder,
        PartitionFolders,
        PartitionWriters,
    )
    from opchain.runtime.types.serialization import Encoder  # noqa: PLC0415 - likewise

    path = options.need("path")
    stored, keys = _columns(options)
    form = format_of(options, "writer", stored, "format")
    writer, buckets = form.writer(), BucketAssigner.base_path_bucket_assigner()
    is_encoder = isinstance(writer, Encoder)
    if keys:
        writer = PartitionEncoder(writer) if is_encoder else PartitionWriters(writer)
        buckets = PartitionFolders()
    make: Any = FileSink.for_row_format if is_encoder else FileSink.for_bulk_format
    builder = make(path, writer).with_bucket_assigner(buckets)
    _set_sizes(builder, form, options)
    if keys:
        _set_commit(builder, stream, options)
        stream = stream.map(_partitioner(form, keys, options))
        if isinstance(form, AvroFormat):
            stream = stream.map(lambda pair: (pair[0], pair[1].as_dict()))
    elif isinstance(form, AvroFormat):
        stream = stream.map(lambda row: row.as_dict())
    elif (written := form.to_wire()) is not None:
        stream = stream.map(written, form.rows)
    options.drop(*_READS, "sink.partition-commit.", "partition.")
    options.without_effect(
        "each subtask writes files of its own", "sink.shuffle-by-partition.enable"
    )
    options.finish()
    return stream.sink_to(builder.build())


def _set_sizes(builder: Any, form: Any, options: Options) -> None:
    """Sets when a file is complete, and whether small files are merged."""
    from opchain.runtime.connectors.file_buckets import OnCheckpointRollingPolicy  # noqa: PLC0415 - likewise
    from opchain.runtime.connectors.file_sink import FileCompactor, FileCompactStrategy  # noqa: PLC0415 - likewise

    most = options.memory_size("sink.rolling-policy.file-size")
    if most is not None:
        builder.with_rolling_policy(OnCheckpointRollingPolicy(most))
    options.without_effect("files are complete by their size and at checkpoints", *_INTERVALS)
    merged = options.memory_size("compaction.file-size") or most
    if not options.flag("auto-compaction"):
        options.drop("compaction.parallelism")
    elif isinstance(form, JsonFormat):
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1)
        if merged is not None:
            strategy.set_size_threshold(merged)
        builder.enable_compact(strategy.build(), FileCompactor.concat_file_compactor())
    else:
        options.warn("auto-compaction", "true", "only files of the format json can be merged")
    options.without_effect("the driver merges files", "compaction.parallelism")


def _default_name(options: Options) -> str:
    """The name of the folder for NULL."""
    return options.take("partition.default-name", default=_DEFAULT_PARTITION) or ""


def _columns(options: Options) -> tuple[list[Column], list[Column]]:
    """The columns in the files, and those in the names of folders.

    Raises:
        GraphError: There are none in the files, or a column has a type that no folder can be named by.
    """
    by_name = {each.name: each for each in options.columns}
    keys = [by_name[key] for key in options.descriptor.partition_keys]
    stored = [each for each in options.columns if each not in keys]
    if not stored:
        raise GraphError(
            f"table '{options.path}' is PARTITIONED BY all of its columns, so its files would be empty; leave one out"
        )
    for name, data_type in keys:
        if isinstance(data_type, _NO_FOLDERS):
            raise GraphError(
                f"table '{options.path}' is PARTITIONED BY '{name}', which is {data_type}; use a column whose value is a "
                "text, a number, a BOOLEAN or a time"
            )
    return stored, keys


def _partitioner(form: Any, keys: Sequence[Column], options: Options) -> Any:
    """Turns a row into the folder of its partition and a record of the format."""
    from opchain.runtime.connectors.partitions import Partitioner  # noqa: PLC0415 - likewise

    values = by_position(options.columns)
    places = {name: place for place, name in enumerate(values)}
    record = form.to_wire([places[each.name] for each in form.columns])
    if record is None:
        record = projection(form.columns, [values[each.name] for each in form.columns])
    texts = [
        _local(text) if of.name == "TIMESTAMP_LTZ" else text
        for text, (_, of) in zip(printers(keys), keys, strict=True)
    ]
    return Partitioner(
        [(each.name, places[each.name]) for each in keys], texts, _default_name(options), record
    )


def _local(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """The text of a TIMESTAMP_LTZ without the Z at its end."""
    return lambda value: text(value.replace(tzinfo=None))


def _set_commit(builder: Any, stream: DataStream[Any], options: Options) -> None:
    """Sets what marks a partition as complete.

    Raises:
        GraphError: There is no such policy for files.
        UnsupportedFeatureError: A policy is not supported, or the partitions of an unbounded job would be marked later.
    """
    trigger, delay = (f"sink.partition-commit.{each}" for each in ("trigger", "delay"))
    name = options.take("sink.partition-commit.success-file.name", default="_SUCCESS")
    is_late = options.one_of(
        trigger, {"process-time": False, "partition-time": True}, "process-time"
    )
    wait = options.duration(delay)
    policies = options.take("sink.partition-commit.policy.kind")
    if policies is None:
        return
    for policy in map(str.strip, policies.split(",")):
        if policy != "success-file":
            raise UnsupportedFeatureError(
                f"table '{options.path}': the policy '{policy}' in sink.partition-commit.policy.kind is not supported for "
                "files; use success-file"
            )
    if never_ends(stream.transformation) and (is_late or (wait is not None and wait.to_millis())):
        raise UnsupportedFeatureError(
            f"table '{options.path}': in an unbounded job, {trigger} = partition-time and {delay} are not supported; "
            "without them, each checkpoint writes the success file into the partitions that it added files to"
        )
    builder.with_success_file(name)
