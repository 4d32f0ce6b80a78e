"""Tables in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.formats import AvroFormat, JsonFormat, format_of
from opchain.compiler.table.connectors.options import Options, TableSource

if TYPE_CHECKING:
    from opchain.compiler.dsl.data_stream import DataStream

_READS = ("source.monitor-interval", "source.path.regex-pattern", "source.report-statistics")
_WRITES = (
    *("sink.rolling-policy.", "sink.partition-commit.", "sink.parallelism", "partition."),
    *("auto-compaction", "compaction.file-size", "compaction.parallelism"),
)
_INTERVALS = tuple(
    f"sink.rolling-policy.{each}-interval" for each in ("rollover", "check", "inactivity")
)


def read_files(options: Options) -> TableSource:
    """A table of files as a source."""
    path = options.need("path")
    form = format_of(options, "file_source", options.columns, "format")
    builder = form.file_source(path)
    if form.skips_malformed:
        builder.on_malformed("skip")
    interval = options.duration("source.monitor-interval")
    if interval is not None:
        builder.monitor_continuously(interval)
    options.without_effect("files are listed once", "source.report-statistics")
    options.drop(*_WRITES)
    options.finish()
    return TableSource.of_rows(builder.build(), form.rows, gives_rows=form.gives_rows)


def write_files(stream: DataStream[Any], options: Options) -> Any:
    """Writes the rows of a stream to files."""
    from opchain.runtime.connectors.file_buckets import BucketAssigner  # noqa: PLC0415 - loaded when used

    path = options.need("path")
    form = format_of(options, "file_sink", options.columns, "format")
    builder = form.file_sink(path)
    _set_sizes(builder, form, options)
    options.drop(*_READS)
    options.finish()
    if isinstance(form, AvroFormat):
        stream = stream.map(lambda row: row.as_dict())
    elif (written := form.to_wire()) is not None:
        stream = stream.map(written, form.rows)
    return stream.sink_to(
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    )


def _set_sizes(builder: Any, form: Any, options: Options) -> None:
    """Sets when a file is complete, and whether small files are merged."""
    from opchain.runtime.connectors.file_buckets import RollingPolicy  # noqa: PLC0415 - likewise
    from opchain.runtime.connectors.file_sink import FileCompactor, FileCompactStrategy  # noqa: PLC0415 - likewise

    most = options.memory_size("sink.rolling-policy.file-size")
    if most is not None:
        builder.with_rolling_policy(RollingPolicy.default_rolling_policy(most))
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
