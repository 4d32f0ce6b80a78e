"""Tables in Kafka topics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.formats import format_of
from opchain.compiler.table.connectors.options import Options, TableSource
from opchain.compiler.table.connectors.row_types import (
    key_names,
    own_key_names,
    to_wire,
    type_information_of,
    wire_type,
)
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.sql import RowExpression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.table_descriptor import MetadataColumn

_METADATA = {
    "topic": "row.topic",
    "partition": "row.partition",
    "offset": "row.offset",
    "timestamp": "row.timestamp",
    "headers": "dict(row.headers)",
}
_READS = (
    *("scan.startup.mode", "scan.startup.timestamp-millis", "scan.startup.specific-offsets"),
    *("scan.bounded.mode", "scan.bounded.timestamp-millis", "scan.bounded.specific-offsets"),
    *("scan.topic-partition-discovery.interval", "scan.parallelism", "scan.watermark."),
)
_WRITES = (
    *("sink.delivery-guarantee", "sink.transactional-id-prefix", "sink.parallelism"),
    *("sink.partitioner", "sink.transaction-naming-strategy"),
)


def read_kafka(options: Options) -> TableSource:
    """A table of a topic as a source."""
    from opchain.runtime.connectors.kafka.source import KafkaSource  # noqa: PLC0415 - loaded when used
    from opchain.runtime.connectors.kafka.table_rows import KafkaRows  # noqa: PLC0415 - likewise
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - likewise

    builder = KafkaSource.builder()
    topics, pattern = options.take("topic"), options.take("topic-pattern")
    if pattern is not None:
        builder.set_topic_pattern(pattern)
    else:
        topics = topics or options.need("topic")
        builder.set_topics(*(each.strip() for each in topics.split(";")))
    _set_properties(builder, options)
    _set_offsets(builder, options, topics)
    interval = options.duration("scan.topic-partition-discovery.interval")
    if interval is not None:
        builder.set_property("partition.discovery.interval.ms", str(interval.to_millis()))
    key, value = _formats(options, "deserializer")
    if value.skips_malformed or (key is not None and key.skips_malformed):
        builder.on_malformed("skip")
    metadata = options.schema.metadata
    own = own_key_names(options.descriptor.options)
    fields = [each.name for each in value.columns] + own
    types = [*value.rows.field_types, *(key.rows.field_types if own else ())]
    places = [fields.index(each.name) for each in options.columns]
    names = [*(fields[place] for place in places), *(each.name for each in metadata)]
    types = [
        *(types[place] for place in places),
        *(type_information_of(each.data_type) for each in metadata),
    ]
    if own or metadata:
        builder.set_deserializer(
            KafkaRows(
                value.deserializer(),
                key.deserializer() if own else None,
                places,
                _metadata(metadata, options),
                Types.ROW_NAMED(names, types),
            )
        )
    else:
        builder.set_value_only_deserializer(value.deserializer())
    options.without_effect("set the parallelism of the job", "scan.parallelism")
    options.drop(*_WRITES)
    options.finish()
    return TableSource(builder.build(), names, types)


def _formats(options: Options, use: str) -> tuple[Any, Any]:
    """The formats of the key and of the value of messages. The format of the key may be None.

    Raises:
        GraphError: The options for the key contradict each other, or name an unknown column.
    """
    fields = key_names(options.descriptor.options)
    options.drop("key.fields")
    prefix = options.take("key.fields-prefix", default="") or ""
    has_all = options.one_of("value.fields-include", {"ALL": True, "EXCEPT_KEY": False}, "ALL")
    known = {each.name: each for each in options.columns}
    for name in fields:
        if name not in known or not name.startswith(prefix):
            raise GraphError(
                f"table '{options.path}': key.fields has '{name}'; use columns of the table"
                + (f" that begin with '{prefix}'" if prefix else f": {', '.join(known)}")
            )
    if prefix and has_all:
        raise GraphError(
            f"table '{options.path}': key.fields-prefix is '{prefix}'; it needs 'value.fields-include' = 'EXCEPT_KEY', "
            "because the fields of the value have no prefix"
        )
    columns = [each for each in options.columns if has_all or each.name not in fields]
    value = format_of(options, use, columns, "format", "value.format")
    if not fields:
        if "key.format" in options.descriptor.options:
            options.need("key.fields")
        return None, value
    key_columns = [known[name]._replace(name=name.removeprefix(prefix)) for name in fields]
    return format_of(options, use, key_columns, "key.format"), value


def _metadata(columns: Sequence[MetadataColumn], options: Options) -> RowExpression:
    """The values of the metadata columns of a message.

    Raises:
        GraphError: A message has no such metadata.
    """
    texts = []
    for each in columns:
        text = _METADATA.get(each.key)
        if text is None:
            raise GraphError(
                f"table '{options.path}': the connector 'kafka' has no metadata '{each.key}'; it has "
                f"{', '.join(_METADATA)}"
            )
        if each.key == "timestamp" and each.data_type.name != "BIGINT":
            zone = "_ltz" if each.data_type.name == "TIMESTAMP_LTZ" else ""
            text = f"from_epoch_ms{zone}({text})"
        texts.append(f"{text}, ")
    return RowExpression(f"({''.join(texts)})", "metadata")


def _set_properties(builder: Any, options: Options) -> None:
    for name, value in options.below("properties.").items():
        builder.set_property(name, value)


def _set_offsets(builder: Any, options: Options, topics: str | None) -> None:
    """Sets where reading starts, and where it ends."""
    from opchain.runtime.connectors.kafka.offsets import KafkaOffsetsInitializer as Offsets  # noqa: PLC0415 - likewise

    def initializer(side: str, mode: str) -> Offsets:
        if mode == "timestamp":
            return Offsets.timestamp(options.needed_number(f"scan.{side}.timestamp-millis"))
        if mode == "specific-offsets":
            return Offsets.offsets(_offsets(f"scan.{side}.specific-offsets", topics, options))
        return {
            "earliest-offset": Offsets.earliest,
            "latest-offset": Offsets.latest,
            "group-offsets": Offsets.committed_offsets,
        }[mode]()

    starts = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
    start = options.one_of("scan.startup.mode", {each: each for each in starts}, "group-offsets")
    builder.set_starting_offsets(initializer("startup", start))
    ends = ("unbounded", *starts[1:])
    end = options.one_of("scan.bounded.mode", {each: each for each in ends}, "unbounded")
    if end != "unbounded":
        builder.set_bounded(initializer("bounded", end))
    for side, mode in (("startup", start), ("bounded", end)):
        options.without_effect(
            f"scan.{side}.mode is '{mode}'",
            *(f"scan.{side}.timestamp-millis", f"scan.{side}.specific-offsets"),
        )


def _offsets(name: str, topics: str | None, options: Options) -> dict[Any, int]:
    """The offset of each partition, from a text such as `partition:0,offset:42;partition:1,offset:300`.

    Raises:
        GraphError: It is another text, or the table has several topics.
    """
    from opchain.runtime.connectors.kafka.offsets import KafkaTopicPartition  # noqa: PLC0415 - likewise

    text = options.need(name)
    if topics is None or ";" in topics:
        raise GraphError(f"table '{options.path}': {name} is for one topic; set 'topic' to it")
    found = [_OFFSET.fullmatch(each.strip()) for each in text.strip().rstrip(";").split(";")]
    if None in found:
        raise GraphError(
            f"table '{options.path}': {name} is '{text}'; write partition:0,offset:42;partition:1,offset:300"
        )
    return {
        KafkaTopicPartition(topics.strip(), int(each["partition"])): int(each["offset"])
        for each in found
        if each is not None
    }


_OFFSET = re.compile(r"partition:(?P<partition>\d+),offset:(?P<offset>\d+)")


def write_kafka(stream: DataStream[Any], options: Options) -> Any:
    """Writes the rows of a stream to a topic."""
    from opchain.runtime.connectors.kafka.serializer import KafkaRecordSerializationSchema  # noqa: PLC0415
    from opchain.runtime.connectors.kafka.sink import KafkaSink  # noqa: PLC0415 - likewise
    from opchain.runtime.connectors.kafka.table_rows import FixedPartitioner, PartOfRow  # noqa: PLC0415 - likewise
    from opchain.runtime.functions.sink import DeliveryGuarantee  # noqa: PLC0415 - likewise

    key, value = _formats(options, "serializer")
    columns = options.columns

    def part(of: Any, names: Sequence[str]) -> Any:
        places = [
            place for name in names for place, each in enumerate(columns) if each.name == name
        ]
        return PartOfRow(of.serializer(), places, [each.name for each in of.columns])

    record = KafkaRecordSerializationSchema.builder().set_topic(options.need("topic"))
    names = [each.name for each in value.columns]
    is_whole = names == [each.name for each in columns]
    record.set_value_serialization_schema(value.serializer() if is_whole else part(value, names))
    if key is not None:
        record.set_key_serialization_schema(part(key, key_names(options.descriptor.options)))
    partitioners = {"default": None, "round-robin": None, "fixed": FixedPartitioner()}
    partitioner = options.one_of("sink.partitioner", partitioners, "default")
    if partitioner is not None:
        record.set_partitioner(partitioner)
    builder = KafkaSink.builder().set_record_serializer(record.build())
    _set_properties(builder, options)
    guarantees = {each.name.lower().replace("_", "-"): each for each in DeliveryGuarantee}
    builder.set_delivery_guarantee(
        options.one_of("sink.delivery-guarantee", guarantees, "at-least-once")
    )
    prefix = options.take("sink.transactional-id-prefix")
    if prefix is not None:
        builder.set_transactional_id_prefix(prefix)
    options.without_effect(
        "transactions are named by operator, subtask and checkpoint",
        "sink.transaction-naming-strategy",
    )
    options.drop(*_READS)
    options.finish()
    written = to_wire(columns, is_iso=value.is_iso)
    if written is not None:
        stream = stream.map(written, wire_type(columns))
    return stream.sink_to(builder.build())
