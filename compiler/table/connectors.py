"""The connectors of tables: a described table as a source of rows, and as a sink of rows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.graph.transformation import user_call_site
from opchain.compiler.table.data_types import (
    ArrayType,
    DataType,
    DataTypes,
    MapType,
    RowField,
    RowType,
    ZonedTimeType,
)
from opchain.compiler.table.datagen import datagen_source
from opchain.compiler.table.expressions import Column, Typed, cast
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.sql import RowExpression, RowProjection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.table_descriptor import TableDescriptor
    from opchain.runtime.functions.source import Source
    from opchain.runtime.types.record_types import RowTypeInfo

_AS_TEXT = ("TIMESTAMP", "TIMESTAMP_LTZ", "DATE", "TIME")
"""Types whose values are texts in SQL's form in JSON and CSV, as in Flink's table formats."""

_STARTS = {
    "earliest-offset": "earliest",
    "latest-offset": "latest",
    "group-offsets": "committed_offsets",
}
_KAFKA_METADATA = {
    "topic": "message.topic",
    "partition": "message.partition",
    "offset": "message.offset",
    "timestamp": "message.timestamp",
    "headers": "dict(message.headers)",
}


class TableSource(NamedTuple):
    """A source of rows of a table's physical columns, and then its metadata columns.

    In JSON and CSV the values of some types are texts: see `wire_value`.
    """

    source: Source[Any]
    names: list[str]
    types: list[Any]
    gives_rows: bool = True


class Options:
    """The options of one table. Options that no connector reads are mistakes."""

    def __init__(self, descriptor: TableDescriptor, path: str) -> None:
        self.connector = descriptor.connector
        self.path = path
        self._left = dict(descriptor.options)

    def take(self, *names: str, default: str | None = None) -> str | None:
        """Takes the value of an option, which may have several names."""
        found = [self._left.pop(name) for name in names if name in self._left]
        return found[0] if found else default

    def need(self, *names: str) -> str:
        """The value of an option.

        Raises:
            GraphError: It is missing.
        """
        found = self.take(*names)
        if found is None:
            raise GraphError(
                f"table '{self.path}': the connector '{self.connector}' needs the option '{names[0]}'; add it to WITH (...)"
            )
        return found

    def flag(self, name: str) -> bool:
        """Whether an option is 'true'."""
        return str(self.take(name, default="false")).lower() == "true"

    def below(self, prefix: str) -> dict[str, str]:
        """The options that begin with a prefix, without it."""
        names = [name for name in self._left if name.startswith(prefix)]
        return {name[len(prefix) :]: self._left.pop(name) for name in names}

    def drop(self, *names: str) -> None:
        """Drops options that only matter for the other direction. A name with a dot at its end is a prefix."""
        for name in names:
            if name.endswith("."):
                self.below(name)
            else:
                self.take(name)

    def finish(self) -> None:
        """Refuses options that were not read.

        Raises:
            GraphError: An option was not read.
        """
        if self._left:
            raise GraphError(
                f"table '{self.path}': the connector '{self.connector}' does not know the option '{min(self._left)}'; "
                "remove it, or correct its name"
            )


def table_source(descriptor: TableDescriptor, path: str) -> TableSource:
    """The source of a table.

    Raises:
        GraphError: An option is missing, unknown or wrong.
        UnsupportedFeatureError: No table of this connector can be read.
    """
    make = _SOURCES.get(descriptor.connector)
    if make is None:
        raise unknown_connector(descriptor.connector, _SOURCES, "read")
    if descriptor.schema is not None and descriptor.schema.metadata and make is not _kafka:
        raise UnsupportedFeatureError(
            f"table '{path}': the connector '{descriptor.connector}' has no metadata columns here, but "
            f"'{descriptor.schema.metadata[0].name}' is one; remove it. Tables of 'kafka' may have them"
        )
    return make(descriptor, Options(descriptor, path))


def write_table(stream: DataStream[Any], descriptor: TableDescriptor, path: str) -> None:
    """Writes a stream of rows of a table's physical columns to the table.

    Raises:
        GraphError: An option is missing, unknown or wrong.
        UnsupportedFeatureError: No table of this connector can be written.
    """
    write = _SINKS.get(descriptor.connector)
    if write is None:
        raise unknown_connector(descriptor.connector, _SINKS, "written")
    options = Options(descriptor, path)
    parallelism = options.take("sink.parallelism")
    end = write(stream, descriptor, options)
    end.name(path)
    if parallelism is not None:
        end.set_parallelism(int(parallelism))


def unknown_connector(connector: str, known: Any, what: str) -> Exception:
    """The error for an unknown connector, with the reason if it is known."""
    close = get_close_matches(connector, known, n=1)
    reason = _REFUSED.get(connector, f"no table of the connector '{connector}' can be {what}")
    meant = f"; did you mean '{close[0]}'?" if close else ""
    supported = meant or f"; supported connectors: {', '.join(map(repr, known))}"
    return UnsupportedFeatureError(
        f"the connector '{connector}' ({user_call_site()}): {reason}{supported}"
    )


def row_type(columns: Sequence[Column]) -> RowTypeInfo:
    """The type of a table's rows."""
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - loaded when a stream is made

    return Types.ROW_NAMED(
        [each.name for each in columns], [_type_of(each.data_type) for each in columns]
    )


def _type_of(data_type: DataType) -> Any:
    # An aware datetime, because PyFlink's Instant has no arithmetic.
    zoned = ZonedTimeType("TIMESTAMP", (6,), is_nullable=True)
    return _with(data_type, ("TIMESTAMP_LTZ",), zoned).type_information()


def _columns(descriptor: TableDescriptor) -> list[Column]:
    assert descriptor.schema is not None
    return [Column(*each) for each in descriptor.schema.columns]


def _wire_type(columns: Sequence[Column]) -> RowTypeInfo:
    """The type of rows in JSON and CSV."""
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - likewise

    types = [
        Types.BIG_DEC() if each.data_type.name == "DECIMAL" else _type_of(_wire_of(each.data_type))
        for each in columns
    ]
    return Types.ROW_NAMED([each.name for each in columns], types)


def _wire_of(data_type: DataType) -> DataType:
    """The type in JSON and CSV: times are texts."""
    return _with(data_type, _AS_TEXT, DataTypes.STRING())


def _with(data_type: DataType, names: Sequence[str], other: DataType) -> DataType:
    """The type with another one in place of some types, also in arrays, maps and rows."""
    if data_type.name in names:
        return other
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=_with(data_type.element_type, names, other))
    if isinstance(data_type, MapType):
        key, value = data_type.key_type, data_type.value_type
        return replace(
            data_type, key_type=_with(key, names, other), value_type=_with(value, names, other)
        )
    if isinstance(data_type, RowType):
        fields = (
            RowField(each.name, _with(each.data_type, names, other)) for each in data_type.fields
        )
        return replace(data_type, fields=tuple(fields))
    return data_type


_AVRO_TYPES = {
    **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), "string"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "int"),
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "BYTES": "bytes",
}


def _avro_schema(columns: Sequence[Column]) -> Any:
    """The Avro schema of a table, as Flink derives it.

    Raises:
        GraphError: A column has a type that is not supported in Avro.
    """
    from opchain.runtime.formats.avro_files import AvroSchema  # noqa: PLC0415 - likewise

    fields = []
    for name, data_type in columns:
        of = _AVRO_TYPES.get(data_type.name)
        if of is None:
            raise GraphError(
                f"column '{name}': the format 'avro' has no {data_type} here; CAST it to STRING or BIGINT"
            )
        fields.append({"name": name, "type": ["null", of] if data_type.is_nullable else of})
    namespace = "org.apache.flink.avro.generated"
    return AvroSchema(
        json.dumps({"type": "record", "name": "record", "namespace": namespace, "fields": fields})
    )


def wire_value(place: int, name: str, data_type: DataType, descriptor: TableDescriptor) -> Typed:
    """The expression for a physical column of a record of the source."""
    of = descriptor.options.get("format", descriptor.options.get("value.format"))
    if of == "avro" and descriptor.connector == "filesystem":
        return Typed(f"row[{name!r}]", data_type)
    value = Typed(f"row[{place}]", data_type)
    wire = DataTypes.STRING() if data_type.name == "DECIMAL" else _wire_of(data_type)
    if of not in ("json", "csv") or wire == data_type:
        return value
    if of == "csv" and "csv.null-literal" not in descriptor.options:
        value = Typed(f"nullif({value.text}, '')", data_type)
    found = cast(value._replace(data_type=wire), data_type)
    if _errors_are_null(descriptor, of):
        return found._replace(text=f"attempted(lambda: {found.text})")
    return found


def _errors_are_null(descriptor: TableDescriptor, of: str) -> bool:
    """Whether a field that cannot be read is NULL. Flink: `ignore-parse-errors` of its table formats."""
    return descriptor.options.get(f"{of}.ignore-parse-errors", "").lower() == "true"


def to_wire(columns: Sequence[Column], *, is_iso: bool = False) -> RowProjection | None:
    """The reverse of `wire_value`: turns rows into the form of JSON and CSV; None if there is nothing to do."""
    texts = [
        _wire_text(f"row[{position}]", data_type, is_iso)
        for position, (_, data_type) in enumerate(columns)
    ]
    if texts == [f"row[{position}]" for position in range(len(columns))]:
        return None
    return _projection(texts, columns, "format")


def _wire_text(value: str, data_type: DataType, is_iso: bool) -> str:
    """The expression of a value in JSON or CSV: times are texts."""
    if isinstance(data_type, RowType):
        texts = [
            _wire_text(f"row[{place}]", each.data_type, is_iso)
            for place, each in enumerate(data_type.fields)
        ]
        names = tuple(each.name for each in data_type.fields)
        written = (
            f"as_row({value}, {names!r}, lambda row: ({''.join(f'{each}, ' for each in texts)}))"
        )
    elif isinstance(data_type, ArrayType):
        element = _wire_text("row", data_type.element_type, is_iso)
        written = f"as_array({value}, lambda row: {element})"
    elif isinstance(data_type, MapType):
        key = _wire_text("row", data_type.key_type, is_iso)
        entry = _wire_text("row", data_type.value_type, is_iso)
        written = f"as_map({value}, lambda row: {key}, lambda row: {entry})"
    elif data_type.name in _AS_TEXT:
        return _time_text(value, data_type, is_iso)
    else:
        return value
    return value if _wire_of(data_type) == data_type else written


def _time_text(value: str, data_type: DataType, is_iso: bool) -> str:
    if not data_type.name.startswith("TIMESTAMP"):
        return f"as_text({value})"
    return f"format_timestamp({value}, {'T' if is_iso else ' '!r}, {data_type.name == 'TIMESTAMP_LTZ'})"


class _JsonOptions(NamedTuple):
    """The options of the format `json`."""

    needs_all_fields: bool
    is_iso: bool
    leaves_out_nulls: bool


def _json_options(options: Options) -> _JsonOptions:
    """Takes the options of the format `json`, for reading and for writing.

    Raises:
        GraphError: A value is unknown.
    """
    standard = options.take("json.timestamp-format.standard", default="SQL")
    if standard not in ("SQL", "ISO-8601"):
        raise GraphError(
            f"table '{options.path}': json.timestamp-format.standard is '{standard}'; use SQL or ISO-8601"
        )
    # Decimals are always plain numbers, and keys of maps are never NULL.
    options.drop("json.encode.decimal-as-plain-number", "json.map-null-key.")
    return _JsonOptions(
        options.flag("json.fail-on-missing-field"),
        standard == "ISO-8601",
        options.flag("json.encode.ignore-null-fields"),
    )


def _character(text: str | None) -> str | None:
    r"""An option that is one character. It may be written as in Java: '\t', '\u0001'.

    Raises:
        ValueError: It is longer.
    """
    if text is None or len(text) == 1:
        return text
    found = re.sub(r"\\u([0-9a-fA-F]{4})", lambda each: chr(int(each[1], 16)), text)
    found = _ESCAPES.get(found, found)
    if len(found) != 1:
        raise ValueError(f"{text!r} is not one character")
    return found


_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}


def _projection(texts: Sequence[str], columns: Sequence[Column], shown: str) -> RowProjection:
    return RowProjection(f"({', '.join(texts)},)", shown, [each.name for each in columns])


def _csv_schema(
    columns: Sequence[Column], options: Options, *, errors_are_null: bool = False
) -> Any:
    from opchain.runtime.formats.csv_schema import CsvColumn, CsvSchema  # noqa: PLC0415 - likewise

    wire = _wire_type(columns)
    has_quotes = not options.flag("csv.disable-quote-character")
    quote = _character(options.take("csv.quote-character", default='"'))
    elements = options.take("csv.array-element-delimiter", default=";") or ";"
    return CsvSchema(
        tuple(
            CsvColumn(name, of, elements)
            for name, of in zip(wire.field_names or (), wire.field_types, strict=True)
        ),
        column_separator=_character(options.take("csv.field-delimiter")) or ",",
        quote_char=quote if has_quotes else None,
        escape_char=_character(options.take("csv.escape-character")),
        null_value=options.take("csv.null-literal"),
        allow_comments=options.flag("csv.allow-comments"),
        errors_are_null=errors_are_null,
    )


def _datagen(descriptor: TableDescriptor, options: Options) -> TableSource:  # noqa: ARG001 - it reads its own
    wire = row_type(_columns(descriptor))
    return TableSource(
        datagen_source(descriptor), list(wire.field_names or ()), list(wire.field_types)
    )


def _files(descriptor: TableDescriptor, options: Options) -> TableSource:
    from opchain.runtime.connectors.file_source import FileSource  # noqa: PLC0415 - likewise

    columns = _columns(descriptor)
    path, of = options.need("path"), options.need("format")
    interval = options.take("source.monitor-interval")
    skips = options.flag(f"{of}.ignore-parse-errors")
    wire = _wire_type(columns)
    if of == "json":
        from opchain.runtime.formats.json_lines import JsonReaderFormat  # noqa: PLC0415 - likewise

        needs_all_fields = _json_options(options).needs_all_fields
        reader: Any = JsonReaderFormat(
            wire, needs_all_fields=needs_all_fields, errors_are_null=skips
        )
        builder: Any = FileSource.for_record_stream_format(reader, path)
    elif of == "csv":
        from opchain.runtime.formats.csv_reader import CsvReaderFormat  # noqa: PLC0415 - likewise

        builder = FileSource.for_record_stream_format(
            CsvReaderFormat.for_schema(_csv_schema(columns, options, errors_are_null=skips)), path
        )
    elif of == "parquet":
        from opchain.runtime.formats.parquet import ParquetColumnarRowInputFormat  # noqa: PLC0415

        wire = row_type(columns)
        builder = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(wire), path)
    elif of == "avro":
        from opchain.runtime.formats.avro_files import AvroReaders  # noqa: PLC0415 - likewise

        wire = row_type(columns)
        builder = FileSource.for_record_stream_format(
            AvroReaders.for_generic_record(_avro_schema(columns)), path
        )
    else:
        raise _unknown_format(options, of, ("json", "csv", "avro", "parquet"))
    if skips:
        builder.on_malformed("skip")
    if interval is not None:
        from opchain.runtime.time import Duration  # noqa: PLC0415 - likewise

        builder.monitor_continuously(Duration.of_millis(_milliseconds(interval)))
    options.drop("sink.parallelism", "sink.rolling-policy.", "sink.partition-commit.", "parquet.")
    options.drop("auto-compaction", "compaction.file-size", "compaction.parallelism", "partition.")
    options.finish()
    return TableSource(
        builder.build(), list(wire.field_names or ()), list(wire.field_types), of != "avro"
    )


def _write_files(stream: DataStream[Any], descriptor: TableDescriptor, options: Options) -> Any:
    from opchain.runtime.connectors.file_buckets import BucketAssigner  # noqa: PLC0415 - likewise
    from opchain.runtime.connectors.file_sink import FileSink  # noqa: PLC0415 - likewise

    columns = _columns(descriptor)
    path, of = options.need("path"), options.need("format")
    options.flag(f"{of}.ignore-parse-errors")
    wire, formatted = _wire_type(columns), to_wire(columns)
    if of == "json":
        from opchain.runtime.formats.json_lines import JsonLinesEncoder  # noqa: PLC0415 - likewise

        json_options = _json_options(options)
        formatted = to_wire(columns, is_iso=json_options.is_iso)
        encoder = JsonLinesEncoder(wire, leaves_out_nulls=json_options.leaves_out_nulls)
        builder: Any = FileSink.for_row_format(path, encoder)
    elif of == "csv":
        from opchain.runtime.formats.csv_writer import CsvBulkWriters  # noqa: PLC0415 - likewise

        builder = FileSink.for_bulk_format(
            path, CsvBulkWriters.for_schema(_csv_schema(columns, options))
        )
    elif of == "parquet":
        from opchain.runtime.formats.parquet import ParquetBulkWriters  # noqa: PLC0415 - likewise

        wire, formatted = row_type(columns), None
        builder = FileSink.for_bulk_format(path, ParquetBulkWriters.for_row_type(wire))
    elif of == "avro":
        from opchain.runtime.formats.avro_files import AvroBulkWriters  # noqa: PLC0415 - likewise

        formatted = None
        stream = stream.map(lambda row: row.as_dict())
        builder = FileSink.for_bulk_format(
            path, AvroBulkWriters.for_generic_record(_avro_schema(columns))
        )
    else:
        raise _unknown_format(options, of, ("json", "csv", "avro", "parquet"))
    options.drop("source.monitor-interval", "source.path.regex-pattern", "source.report-statistics")
    options.drop("parquet.", "sink.rolling-policy.", "auto-compaction")
    options.drop("compaction.file-size", "compaction.parallelism")
    options.finish()
    if formatted is not None:
        stream = stream.map(formatted, wire)
    return stream.sink_to(
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    )


def _deserializer(columns: Sequence[Column], options: Options, *, errors_are_null: bool) -> Any:
    """A deserialization schema for the value of a message."""
    of = options.need("format", "value.format")
    wire = _wire_type(columns)
    if of == "json":
        from opchain.runtime.formats.json_lines import JsonRowDeserializationSchema  # noqa: PLC0415 - likewise

        return JsonRowDeserializationSchema(
            wire,
            fails_on_missing_field=_json_options(options).needs_all_fields,
            ignores_parse_errors=False,
            errors_are_null=errors_are_null,
        )
    if of == "csv":
        from opchain.runtime.formats.csv_writer import CsvRowDeserializationSchema  # noqa: PLC0415 - likewise

        schema = _csv_schema(columns, options, errors_are_null=errors_are_null)
        return CsvRowDeserializationSchema(schema, ignores_parse_errors=False)
    if of == "avro":
        from opchain.runtime.formats.avro_files import AvroRowDeserializationSchema  # noqa: PLC0415 - likewise

        return AvroRowDeserializationSchema(avro_schema_string=_avro_schema(columns).text)
    if of == "raw" and len(columns) == 1:
        return _RawValue()
    raise _unknown_format(options, of, ("json", "csv", "avro", "raw (one column)"))


class _RawValue:
    """A message of one column: its text."""

    def open(self) -> None:
        """Nothing."""

    def deserialize(self, message: bytes) -> tuple[str]:
        """The text."""
        return (message.decode(),)


class _WithMetadata:
    """Deserializes a Kafka message, and appends the values of the metadata columns."""

    def __init__(self, schema: Any, metadata: RowExpression) -> None:
        self.schema = schema
        self.metadata = metadata

    def __call__(self, message: Any) -> Any:
        from opchain.runtime.types.row import Row  # noqa: PLC0415 - on executors

        if message.value is None:
            raise ValueError("the message has no value: it deletes its key")
        found = self.schema.deserialize(message.value)
        return None if found is None else Row(*found, *self.metadata(message))


_KAFKA_READS = (
    *("scan.startup.mode", "scan.startup.timestamp-millis", "scan.startup.specific-offsets"),
    *("scan.bounded.mode", "scan.bounded.timestamp-millis", "scan.bounded.specific-offsets"),
    *("scan.topic-partition-discovery.interval", "scan.parallelism", "scan.watermark."),
)
_KAFKA_WRITES = (
    *("sink.delivery-guarantee", "sink.transactional-id-prefix", "sink.parallelism"),
    *("sink.partitioner", "sink.transaction-naming-strategy"),
)


def _set_offsets(builder: Any, options: Options) -> None:
    from opchain.runtime.connectors.kafka.offsets import KafkaOffsetsInitializer  # noqa: PLC0415 - likewise

    mode = options.take("scan.startup.mode", default="group-offsets") or ""
    if mode == "timestamp":
        builder.set_starting_offsets(
            KafkaOffsetsInitializer.timestamp(int(options.need("scan.startup.timestamp-millis")))
        )
    elif mode in _STARTS:
        builder.set_starting_offsets(getattr(KafkaOffsetsInitializer, _STARTS[mode])())
    else:
        raise GraphError(
            f"table '{options.path}': scan.startup.mode is '{mode}'; use {', '.join(_STARTS)} or timestamp"
        )
    bounded = options.take("scan.bounded.mode", default="unbounded")
    if bounded in ("latest-offset", "group-offsets"):
        builder.set_bounded(getattr(KafkaOffsetsInitializer, _STARTS[bounded])())
    elif bounded != "unbounded":
        raise GraphError(
            f"table '{options.path}': scan.bounded.mode is '{bounded}'; use unbounded, latest-offset or group-offsets"
        )


def _kafka(descriptor: TableDescriptor, options: Options) -> TableSource:
    from opchain.runtime.connectors.kafka.record import KafkaRecordDeserializationSchema  # noqa: PLC0415
    from opchain.runtime.connectors.kafka.source import KafkaSource  # noqa: PLC0415 - likewise
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - likewise

    assert descriptor.schema is not None
    columns, metadata = _columns(descriptor), descriptor.schema.metadata
    builder = KafkaSource.builder()
    topic, pattern = options.take("topic"), options.take("topic-pattern")
    if pattern is not None:
        builder.set_topic_pattern(pattern)
    else:
        builder.set_topics(*(topic or options.need("topic")).split(";"))
    for name, value in options.below("properties.").items():
        builder.set_property(name, value)
    _set_offsets(builder, options)
    interval = options.take("scan.topic-partition-discovery.interval")
    if interval is not None:
        builder.set_property("partition.discovery.interval.ms", str(_milliseconds(interval)))
    skips = any(options.flag(f"{each}.ignore-parse-errors") for each in ("json", "csv"))
    if skips:
        builder.on_malformed("skip")
    schema = _deserializer(columns, options, errors_are_null=skips)
    wire = _wire_type(columns)
    names, types = list(wire.field_names or ()), list(wire.field_types)
    texts = []
    for each in metadata:
        found = _KAFKA_METADATA.get(each.key)
        if found is None:
            raise GraphError(
                f"table '{options.path}': the connector 'kafka' has no metadata '{each.key}'; it has "
                f"{', '.join(_KAFKA_METADATA)}"
            )
        if each.key == "timestamp":
            zone = "_ltz" if each.data_type.name == "TIMESTAMP_LTZ" else ""
            found = f"from_epoch_ms{zone}({found})" if each.data_type.name != "BIGINT" else found
        texts.append(found.replace("message", "row"))
        names.append(each.name)
        types.append(_type_of(each.data_type))
    function = _WithMetadata(
        schema, RowExpression(f"({''.join(f'{each}, ' for each in texts)})", "metadata")
    )
    builder.set_deserializer(
        KafkaRecordDeserializationSchema.of(function, Types.ROW_NAMED(names, types))
    )
    options.drop(*_KAFKA_WRITES)
    options.finish()
    return TableSource(builder.build(), names, types)


def _write_kafka(stream: DataStream[Any], descriptor: TableDescriptor, options: Options) -> Any:
    from opchain.runtime.connectors.kafka.serializer import KafkaRecordSerializationSchema  # noqa: PLC0415
    from opchain.runtime.connectors.kafka.sink import KafkaSink  # noqa: PLC0415 - likewise
    from opchain.runtime.functions.sink import DeliveryGuarantee  # noqa: PLC0415 - likewise

    columns = _columns(descriptor)
    wire, formatted = _wire_type(columns), to_wire(columns)
    of = options.need("format", "value.format")
    options.flag(f"{of}.ignore-parse-errors")
    if of == "json":
        from opchain.runtime.formats.json_lines import JsonRowSerializationSchema  # noqa: PLC0415 - likewise

        json_options = _json_options(options)
        formatted = to_wire(columns, is_iso=json_options.is_iso)
        schema: Any = JsonRowSerializationSchema(
            wire, leaves_out_nulls=json_options.leaves_out_nulls
        )
    elif of == "csv":
        from opchain.runtime.formats.csv_writer import CsvRowSerializationSchema  # noqa: PLC0415 - likewise

        schema = CsvRowSerializationSchema(_csv_schema(columns, options))
    elif of == "avro":
        from opchain.runtime.formats.avro_files import AvroRowSerializationSchema  # noqa: PLC0415 - likewise

        formatted = None
        schema = AvroRowSerializationSchema(avro_schema_string=_avro_schema(columns).text)
    else:
        raise _unknown_format(options, of, ("json", "csv", "avro"))
    record = KafkaRecordSerializationSchema.builder().set_topic(options.need("topic"))
    builder = KafkaSink.builder().set_record_serializer(
        record.set_value_serialization_schema(schema).build()
    )
    for name, value in options.below("properties.").items():
        builder.set_property(name, value)
    guarantee = options.take("sink.delivery-guarantee", default="at-least-once") or ""
    known = {each.name.lower().replace("_", "-"): each for each in DeliveryGuarantee}
    if guarantee not in known:
        raise GraphError(
            f"table '{options.path}': sink.delivery-guarantee is '{guarantee}'; use {', '.join(known)}"
        )
    builder.set_delivery_guarantee(known[guarantee])
    prefix = options.take("sink.transactional-id-prefix")
    if prefix is not None:
        builder.set_transactional_id_prefix(prefix)
    options.drop(*_KAFKA_READS)
    options.finish()
    if formatted is not None:
        stream = stream.map(formatted, wire)
    return stream.sink_to(builder.build())


def _write_print(stream: DataStream[Any], descriptor: TableDescriptor, options: Options) -> Any:
    prefix = options.take("print-identifier", default="") or ""
    to_stderr = options.flag("standard-error")
    options.finish()
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - likewise

    found = printers(_columns(descriptor))

    def printed(row: Any) -> str:
        return f"+I[{', '.join(text(value) for text, value in zip(found, row))}]"  # noqa: B905 - as declared

    texts = stream.map(printed, Types.STRING())
    return texts.print_to_err(prefix) if to_stderr else texts.print(prefix or None)


def printers(columns: Sequence[Column]) -> list[Callable[[Any], str]]:
    """A function that prints the values of columns like Flink's `print`."""
    from opchain.runtime.types.printed_form import java_text_of  # noqa: PLC0415 - likewise

    times = ("TIMESTAMP", "TIMESTAMP_LTZ", "TIME")
    return [
        _java_time if each.data_type.name in times else java_text_of(_type_of(each.data_type))
        for each in columns
    ]


def _java_time(value: Any) -> str:
    """The text of Java's LocalDateTime, LocalTime, or Instant for a value with a time zone.

    A fraction has 3 or 6 digits. Only an Instant shows seconds that are zero.
    """
    if value is None:
        return "null"
    is_whole = value.microsecond % 1000 == 0
    unit = "milliseconds" if value.microsecond and is_whole else "auto"
    text: str = value.replace(tzinfo=None).isoformat(timespec=unit)
    return f"{text}Z" if value.tzinfo else text.removesuffix(":00")


def _write_nothing(stream: DataStream[Any], descriptor: TableDescriptor, options: Options) -> Any:  # noqa: ARG001
    from opchain.runtime.connectors.simple_sinks import DiscardingSink  # noqa: PLC0415 - likewise

    options.finish()
    return stream.sink_to(DiscardingSink())


def _write_jdbc(stream: DataStream[Any], descriptor: TableDescriptor, options: Options) -> Any:
    from opchain.runtime.connectors.jdbc.mysql import is_mysql  # noqa: PLC0415 - few tables are written to databases
    from opchain.runtime.connectors.jdbc.sink import JdbcSink  # noqa: PLC0415 - likewise

    assert descriptor.schema is not None
    columns, keys = _columns(descriptor), descriptor.schema.keys
    names = [each.name for each in columns]
    marks = ", ".join("?" for _ in names)
    sql = f"INSERT INTO {options.need('table-name')} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - the program's own
    if keys:
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in names if name not in keys)
        sql += f" ON CONFLICT ({', '.join(keys)}) DO " + (
            f"UPDATE SET {changes}" if changes else "NOTHING"
        )
    connection = jdbc_connection(options)
    if keys and is_mysql(connection.url):
        changes = ", ".join(f"{name} = VALUES({name})" for name in names)
        sql = f"{sql.partition(' ON CONFLICT ')[0]} ON DUPLICATE KEY UPDATE {changes}"
    options.drop("scan.partition.", "scan.fetch-size", "scan.auto-commit", "lookup.")
    options.drop("sink.buffer-flush.max-rows", "sink.buffer-flush.interval", "sink.max-retries")
    options.finish()
    return stream.add_sink(JdbcSink.sink(sql, row_type(columns), connection))


def _jdbc(descriptor: TableDescriptor, options: Options) -> TableSource:
    from opchain.runtime.connectors.jdbc.source import JdbcSource  # noqa: PLC0415 - likewise

    columns = _columns(descriptor)
    wire = row_type(columns)
    query = f"SELECT {', '.join(each.name for each in columns)} FROM {options.need('table-name')}"  # noqa: S608 - the program's own
    builder = JdbcSource.builder().set_sql(query).set_type_info(wire)
    column, number = options.take("scan.partition.column"), options.take("scan.partition.num")
    bounds = [options.take(f"scan.partition.{each}-bound") for each in ("lower", "upper")]
    if column is not None:
        low, high = (None if each is None else int(each) for each in bounds)
        builder.partition_by(column, low, high, int(number or 0))
    builder.set_connection_options(jdbc_connection(options))
    options.drop("scan.fetch-size", "scan.auto-commit", "lookup.", "sink.parallelism")
    options.drop("sink.buffer-flush.max-rows", "sink.buffer-flush.interval", "sink.max-retries")
    options.finish()
    return TableSource(builder.build(), list(wire.field_names or ()), list(wire.field_types))


def jdbc_connection(options: Options) -> Any:
    """The connection options of a table."""
    from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions  # noqa: PLC0415 - likewise

    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(options.need("url"))
    user, password = options.take("username"), options.take("password")
    options.take("driver")
    if user is not None:
        builder.with_user_name(user)
    if password is not None:
        builder.with_password(password)
    return builder.build()


def _unknown_format(options: Options, of: str, known: Sequence[str]) -> GraphError:
    return GraphError(
        f"table '{options.path}': the connector '{options.connector}' has no format '{of}'; use {', '.join(known)}"
    )


_UNITS = {"ms": 1, "s": 1000, "sec": 1000, "min": 60_000, "h": 3_600_000}


def _milliseconds(text: str) -> int:
    number = "".join(each for each in text if each.isdigit())
    unit = text[len(number) :].strip()
    if not number or unit.rstrip("s") + ("s" if unit in ("ms", "s") else "") not in (*_UNITS, ""):
        raise GraphError(f"'{text}' is not a duration; write '10 s' or '500 ms'")
    return int(number) * _UNITS.get(unit, _UNITS.get(unit.rstrip("s"), 1))


_SOURCES: dict[str, Callable[[TableDescriptor, Options], TableSource]] = {
    "datagen": _datagen,
    "filesystem": _files,
    "jdbc": _jdbc,
    "kafka": _kafka,
}
_SINKS: dict[str, Callable[[DataStream[Any], TableDescriptor, Options], Any]] = {
    "filesystem": _write_files,
    "kafka": _write_kafka,
    "jdbc": _write_jdbc,
    "print": _write_print,
    "blackhole": _write_nothing,
}
_REFUSED = {
    "upsert-kafka": "it reads and writes changes of tables, and tables here only append; use 'kafka'",
    "elasticsearch-7": "use ElasticsearchSink of the DataStream API",
    "elasticsearch-8": "use ElasticsearchSink of the DataStream API",
    "opensearch": "use ElasticsearchSink of the DataStream API",
    "hbase-2.2": "there is no client for Python that is maintained",
    "kinesis": "write a source with the DataStream API, or read the stream with Spark and from_dataframe()",
}

KNOWN = frozenset({*_SOURCES, *_SINKS})
"""Connectors that tables may have."""
