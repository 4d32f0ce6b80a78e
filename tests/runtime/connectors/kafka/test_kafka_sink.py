"""KafkaSink in process against a real broker: messages, delivery guarantees, and failures."""

from __future__ import annotations

import hashlib
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka_broker import running_kafka

from opchain.common import Configuration, WatermarkStrategy
from opchain.common.serialization import SerializationSchema, SimpleStringSchema
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaOffsetsInitializer,
    KafkaPartitioner,
    KafkaProducerMessage,
    KafkaRecordSerializationSchema,
    KafkaSink,
    Semantic,
)
from opchain.runtime.connectors.kafka import outbox
from opchain.runtime.connectors.kafka.client import KafkaConnectorError
from opchain.runtime.functions.sink import SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kafka_broker import Kafka

    from opchain.datastream.connectors.kafka import KafkaSinkBuilder

EXACTLY_ONCE = DeliveryGuarantee.EXACTLY_ONCE
AT_LEAST_ONCE = DeliveryGuarantee.AT_LEAST_ONCE


class Field(SerializationSchema[Any]):
    def __init__(self, number: int) -> None:
        self.number = number

    def serialize(self, element: Any) -> bytes:
        return str(element[self.number]).encode()


def serializer(topic: str) -> KafkaRecordSerializationSchema:
    started = KafkaRecordSerializationSchema.builder().set_topic(topic)
    return started.set_value_serialization_schema(SimpleStringSchema()).build()


def builder(
    kafka: Kafka, schema: KafkaRecordSerializationSchema, guarantee: DeliveryGuarantee
) -> KafkaSinkBuilder:
    started = KafkaSink.builder().set_bootstrap_servers(kafka.servers)
    started.set_record_serializer(schema).set_transactional_id_prefix("test")
    return started.set_delivery_guarantee(guarantee)


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    return env


def written(sink: Any, records: Sequence[Any], parallelism: int = 2) -> None:
    env = environment(parallelism)
    env.from_collection(records).rebalance().sink_to(sink)
    env.execute()


@pytest.mark.parametrize("guarantee", list(DeliveryGuarantee))
def test_every_record_is_written_once_and_in_order(
    kafka: Kafka, guarantee: DeliveryGuarantee
) -> None:
    topic = kafka.topic()
    records = [str(number) for number in range(1000)]
    written(builder(kafka, serializer(topic), guarantee).build(), records, 1)
    assert kafka.values(topic) == records


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_message_has_key_headers_timestamp_and_partition(
    kafka: Kafka, guarantee: DeliveryGuarantee
) -> None:
    topic = kafka.topic(3)
    started = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda record: record[0])
    started.set_key_serialization_schema(Field(1)).set_value_serialization_schema(Field(2))
    started.set_header_provider(lambda record: [("source", record[1].encode()), ("none", None)])
    started.set_timestamp_provider(lambda record: record[3])
    started.set_partitioner(lambda record, key, value, topic, partitions: partitions - 1)
    written(builder(kafka, started.build(), guarantee).build(), [(topic, "k", "v", 12_000)])
    [message] = kafka.messages(topic)
    assert (message.partition(), message.key(), message.value()) == (2, b"k", b"v")
    assert message.timestamp()[1] == 12_000
    assert message.headers() == [("source", b"k"), ("none", None)]


def test_messages_have_the_event_times_of_their_records(kafka: Kafka) -> None:
    topic = kafka.topic()
    env = environment(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed = env.from_collection(["4000", "5000"]).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: int(record))  # type: ignore[arg-type]
    )
    timed.sink_to(builder(kafka, serializer(topic), AT_LEAST_ONCE).build())
    env.execute()
    assert [message.timestamp()[1] for message in kafka.messages(topic)] == [4_000, 5_000]


def test_keys_are_written_to_the_partitions_of_javas_producer(kafka: Kafka) -> None:
    """By murmur2 of the key: org.apache.kafka.common.utils.Utils.murmur2 & 0x7FFFFFFF, modulo 4."""
    topic = kafka.topic(4)
    started = KafkaRecordSerializationSchema.builder().set_topic(topic)
    started.set_key_serialization_schema(Field(0)).set_value_serialization_schema(Field(0))
    records = [(key,) for key in ("21", "foobar", "a-little-bit-long-string", "abc")]
    written(builder(kafka, started.build(), EXACTLY_ONCE).build(), records, 1)
    # Kafka's own UtilsTest has these hashes.
    hashes = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    hashes["abc"] = 479470107
    expected = {key: (value & 0x7FFFFFFF) % 4 for key, value in hashes.items()}
    found = {message.key().decode(): message.partition() for message in kafka.messages(topic)}
    assert found == expected


def test_a_serialization_schema_may_implement_to_message_and_skip_records(kafka: Kafka) -> None:
    topic = kafka.topic()

    class Even(KafkaRecordSerializationSchema):
        def to_message(
            self, record: Any, timestamp: int | None, partitions_of: Callable[[str], int]
        ) -> KafkaProducerMessage | None:
            if record % 2:
                return None
            return KafkaProducerMessage(topic, None, str(record * partitions_of(topic)).encode())

    written(builder(kafka, Even(), AT_LEAST_ONCE).build(), range(6), 1)
    assert kafka.values(topic) == ["0", "2", "4"]


class Wrong(KafkaPartitioner):
    def partition(
        self, record: Any, key: Any, value: Any, target_topic: str, partitions: int
    ) -> int:
        return partitions


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_missing_partition_is_named(kafka: Kafka, guarantee: DeliveryGuarantee) -> None:
    topic = kafka.topic(2)
    started = KafkaRecordSerializationSchema.builder().set_topic(topic).set_partitioner(Wrong())
    schema = started.set_value_serialization_schema(SimpleStringSchema()).build()
    with pytest.raises(
        ValueError, match=f"returned 2 for topic {topic}, which has the partitions 0"
    ):
        written(builder(kafka, schema, guarantee).build(), ["x"])
    assert kafka.messages(topic) == []


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_message_that_is_too_large_fails_the_job_and_is_named(
    kafka: Kafka, guarantee: DeliveryGuarantee
) -> None:
    topic = kafka.topic(**{"max.message.bytes": "1000"})
    with pytest.raises(KafkaConnectorError, match=rf"topic {topic}.*large.*raise max.request.size"):
        written(builder(kafka, serializer(topic), guarantee).build(), ["small", "x" * 5000])
    if guarantee is EXACTLY_ONCE:
        assert kafka.messages(topic) == []


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_message_that_the_client_refuses_fails_the_job_and_is_named(
    kafka: Kafka, guarantee: DeliveryGuarantee
) -> None:
    topic = kafka.topic()
    with pytest.raises(
        KafkaConnectorError,
        match=rf"topic {topic}, the message .* value b'xxx.*large.*raise max.request.size",
    ):
        written(builder(kafka, serializer(topic), guarantee).build(), ["small", "x" * 2_000_000])
    if guarantee is EXACTLY_ONCE:
        assert kafka.messages(topic) == []
        kafka.produce(topic, ["later"])
        assert kafka.values(topic) == ["later"]  # no open transaction blocks readers


def test_a_message_value_that_is_not_bytes_is_named(kafka: Kafka) -> None:
    class Text(SerializationSchema[Any]):
        def serialize(self, element: Any) -> bytes:
            return element  # type: ignore[no-any-return]

    started = KafkaRecordSerializationSchema.builder().set_topic("t")
    schema = started.set_value_serialization_schema(Text()).build()
    with pytest.raises(TypeError, match=r"the value of a message is 'x' \(str\)"):
        written(builder(kafka, schema, AT_LEAST_ONCE).build(), ["x"])


def test_an_unknown_compression_type_is_named(kafka: Kafka) -> None:
    sink = builder(kafka, serializer("t"), AT_LEAST_ONCE).set_property("compression.type", "rar")
    with pytest.raises(KafkaConnectorError, match=r'Invalid value "rar" for .*compression'):
        written(sink.build(), ["x"])


def test_with_exactly_once_no_record_of_a_failed_job_is_visible(kafka: Kafka) -> None:
    topic = kafka.topic()
    env = environment(1)

    def fails(record: str) -> str:
        if record == "7":
            raise RuntimeError("seven")
        return record

    stream = env.from_collection([str(number) for number in range(10)]).map(fails)
    stream.sink_to(builder(kafka, serializer(topic), EXACTLY_ONCE).build())
    with pytest.raises(RuntimeError, match="seven"):
        env.execute()
    assert kafka.messages(topic) == []


# The outbox, step by step


def staged(sink: KafkaSink, origin: SinkOrigin, checkpoint: int | None, records: Any) -> list[Any]:
    context: Any = SimpleNamespace(
        origin=origin,
        get_index_of_this_subtask=lambda: 0,
        get_number_of_parallel_subtasks=lambda: 1,
    )
    writer = sink.create_writer(context)
    for record in records:
        writer.write(record, None)
    writer.flush(end_of_input=False)
    found = list(writer.prepare_commit_of(checkpoint))
    writer.close()
    return found


def committed(sink: KafkaSink, committables: list[Any]) -> None:
    committer = sink.create_committer()
    assert committer is not None
    committer.commit(committables)
    committer.close()


def origin(folder: Path, operator: str = "operator") -> SinkOrigin:
    lineage = hashlib.sha256(str(folder).encode()).hexdigest()  # the sink uses its first characters
    return SinkOrigin(lineage, operator, "'out' (job.py:3)", str(folder / "outbox"))


def files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def test_committing_a_checkpoint_again_sends_no_message_twice(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    for checkpoint in (1, 2):
        found = staged(sink, origin(tmp_path), checkpoint, [f"{checkpoint}a", f"{checkpoint}b"])
        assert files(tmp_path) == 1
        for _ in range(3):
            committed(sink, found)
        assert files(tmp_path) == 0
    assert kafka.values(topic) == ["1a", "1b", "2a", "2b"]


def test_a_checkpoint_is_sent_once_if_the_transactional_id_prefix_changes(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    before = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    found = staged(before, origin(tmp_path), 1, ["a", "b"])
    committed(before, found)

    after = builder(kafka, serializer(topic), EXACTLY_ONCE)
    sink = after.set_transactional_id_prefix("another").build()
    committed(sink, found)
    committed(sink, staged(sink, origin(tmp_path), 2, ["c"]))
    assert kafka.values(topic) == ["a", "b", "c"]


@pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
def test_the_error_about_a_refused_timestamp_names_the_setting_to_change(
    kafka: Kafka, guarantee: DeliveryGuarantee
) -> None:
    year_3000_ms = 32_503_680_000_000
    sink = builder(kafka, serializer(kafka.topic()), guarantee).build()
    env = environment(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    records = env.from_collection(["5", str(year_3000_ms)]).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: int(record))  # type: ignore[arg-type]
    )
    records.sink_to(sink)
    with pytest.raises(
        KafkaConnectorError, match=r"the batch of .* message.timestamp.after.max.ms"
    ):
        env.execute()


def test_all_parts_of_a_large_checkpoint_are_sent_once(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    monkeypatch.setattr(outbox, "CHUNK_BYTES", 100)
    monkeypatch.setattr(outbox, "PIECE_BYTES", 1500)
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    records = [f"{number:04d}" for number in range(1000)]
    found = staged(sink, origin(tmp_path), 1, records)
    sent: list[int] = []
    send_piece = outbox._Sender._send_piece

    def dies_later(self: Any, piece: Any, note: int) -> None:
        if len(sent) == 3:
            raise SystemExit("the driver dies")
        send_piece(self, piece, note)
        sent.append(note)

    with monkeypatch.context() as dying:
        dying.setattr(outbox._Sender, "_send_piece", dies_later)
        with pytest.raises(SystemExit):
            committed(sink, found)
    assert 0 < len(kafka.values(topic)) < 1000
    committed(sink, found)
    assert kafka.values(topic) == records


def test_a_driver_that_dies_in_its_transaction_sends_everything_after_a_restart(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    found = staged(sink, origin(tmp_path), 1, ["a", "b"])

    def dies(self: Any) -> None:
        self._producer.flush(10)
        raise SystemExit("the driver dies before its commit")

    with monkeypatch.context() as dying:
        dying.setattr(outbox._Sender, "_group", dies)
        with pytest.raises(SystemExit):
            committed(sink, found)
    assert kafka.values(topic, is_open=True) == []
    assert kafka.values(topic, "read_uncommitted", is_open=True) == ["a", "b"]
    committed(sink, found)
    assert kafka.values(topic) == ["a", "b"]


@pytest.mark.cluster
def test_a_broker_that_restarts_during_a_transaction_does_not_block_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_kafka() as kafka:
        topic = kafka.topic()
        sink = builder(kafka, serializer(topic), EXACTLY_ONCE)
        committer = sink.set_property("default.api.timeout.ms", "8000").build().create_committer()
        assert committer is not None
        committer.commit(staged(sink.build(), origin(tmp_path), 1, ["a"]))  # finds the coordinator
        found = staged(sink.build(), origin(tmp_path), 2, ["b"])
        group = outbox._Sender._group
        (broker,) = kafka.brokers.brokers

        def restarts(self: Any) -> Any:
            monkeypatch.undo()
            broker.kill()
            broker.start()
            kafka.brokers.await_ready()
            return group(self)

        monkeypatch.setattr(outbox._Sender, "_group", restarts)
        committer.commit(found)
        assert kafka.values(topic) == ["a", "b"]


def test_a_commit_whose_client_does_not_return_is_repeated(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE)
    sink.set_property("default.api.timeout.ms", "5000")
    monkeypatch.setattr(outbox, "_GRACE_S", 0.0)
    call = outbox.call_with_timeout
    is_over = threading.Event()

    def hangs(name: str, _: object, timeout_s: float) -> object:
        monkeypatch.setattr(outbox, "call_with_timeout", call)
        return call(name, is_over.wait, timeout_s)

    monkeypatch.setattr(outbox, "call_with_timeout", hangs)
    committed(sink.build(), staged(sink.build(), origin(tmp_path), 1, ["a", "b"]))
    is_over.set()
    assert kafka.values(topic) == ["a", "b"]


def test_the_note_of_the_last_commit_can_be_reset(kafka: Kafka, tmp_path: Path) -> None:
    topics = kafka.topic(), kafka.topic()
    schema = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda record: record[:-2])
    schema.set_value_serialization_schema(SimpleStringSchema())
    sink = builder(kafka, schema.build(), EXACTLY_ONCE).build()
    own, other = origin(tmp_path), origin(tmp_path, "other")
    committer = sink.create_committer()
    assert committer is not None

    def commits(checkpoint: int) -> None:
        topic = topics[checkpoint % 2]
        committed(sink, staged(sink, own, checkpoint, [f"{topic}-{checkpoint}"]))

    assert committer.last_commit(own) is None
    for checkpoint in (1, 2, 3, 4):
        commits(checkpoint)
    assert (committer.last_commit(own), committer.last_commit(other)) == (4, None)

    committer.reset_commits(own, 2)
    assert committer.last_commit(own) == 2
    for checkpoint in (2, 3, 4):
        commits(checkpoint)
    assert kafka.values(topics[0]) == [f"{topics[0]}-{number}" for number in (2, 4, 4)]
    assert kafka.values(topics[1]) == [f"{topics[1]}-{number}" for number in (1, 3, 3)]

    command = committer.how_to_reset(own, 1).partition("of the sink, ")[2]
    library: Any = pytest.importorskip("confluent_kafka")
    eval(command, vars(library))  # noqa: S307 - what the error tells the user to run
    assert committer.last_commit(own) == 1


def test_the_last_commit_is_known_while_the_transaction_of_a_killed_driver_is_open(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    started = builder(kafka, serializer(topic), EXACTLY_ONCE)
    sink = started.set_property("default.api.timeout.ms", "3000").build()
    committed(sink, staged(sink, origin(tmp_path), 1, ["a"]))
    found = staged(sink, origin(tmp_path), 2, ["b"])
    send_note = outbox._Sender._send_note

    def dies(self: Any, topics: Sequence[str], note: int) -> None:
        send_note(self, topics, note)
        raise SystemExit("the driver dies before its commit")

    with monkeypatch.context() as dying:
        dying.setattr(outbox._Sender, "_send_note", dies)
        with pytest.raises(SystemExit):
            committed(sink, found)
    committer = sink.create_committer()
    assert committer is not None
    assert committer.last_commit(origin(tmp_path)) == 1
    committed(sink, found)
    assert kafka.values(topic) == ["a", "b"]


def test_an_old_driver_cannot_commit_after_a_new_one(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    found = staged(sink, origin(tmp_path), 1, ["a"])
    name = f"test-operator-{origin(tmp_path).lineage[:16]}"
    old = outbox._Sender(name, sink.properties, "'out' (old.py:1)")
    old._producer.init_transactions(30)
    committed(sink, found)
    library: Any = pytest.importorskip("confluent_kafka")
    piece = [outbox.marshal.dumps([(topic, None, [b"zombie"], None, None, None)], 4)]
    with pytest.raises(library.KafkaException) as failure:
        old._send_piece(piece, 2_000_001)
    assert old.is_final(failure.value)
    assert "another producer has taken over" in str(old.explained(failure.value))
    assert kafka.values(topic) == ["a"]


def test_a_recreated_topic_fails_the_commit(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    committed(sink, staged(sink, origin(tmp_path), 1, ["a"]))
    found = staged(sink, origin(tmp_path), 2, ["b"])
    kafka.delete_topic(topic)
    with pytest.raises(KafkaConnectorError, match=f"topic {topic} was deleted while the sink"):
        committed(sink, found)
    kafka.topic(name=topic)
    for again in (sink, builder(kafka, serializer(topic), EXACTLY_ONCE).build()):
        with pytest.raises(
            KafkaConnectorError, match=rf"job.py:3\): topic {topic} was deleted and created again"
        ):
            committed(again, found)
    assert kafka.values(topic) == []


def test_a_topic_that_is_recreated_during_a_transaction_fails_the_job(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    group = outbox._Sender._group

    def created_again(sender: Any) -> Any:
        kafka.delete_topic(topic)
        kafka.produce(topic, ["makes the broker create the topic"])
        return group(sender)

    monkeypatch.setattr(outbox._Sender, "_group", created_again)
    with pytest.raises(KafkaConnectorError, match=f"topic {topic} was deleted and created again"):
        written(builder(kafka, serializer(topic), EXACTLY_ONCE).build(), ["a"])


def test_a_topic_is_created_by_its_first_message(kafka: Kafka, tmp_path: Path) -> None:
    topic = f"first-{tmp_path.name}"
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    for checkpoint in (1, 2):
        committed(sink, staged(sink, origin(tmp_path), checkpoint, [str(checkpoint)]))
    assert kafka.values(topic) == ["1", "2"]


def test_commits_of_one_run_share_a_producer(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    made: list[str] = []
    make_client = outbox.make_client

    def counted(kind: str, *arguments: Any) -> Any:
        made.append(kind)
        return make_client(kind, *arguments)

    monkeypatch.setattr(outbox, "make_client", counted)
    for checkpoint in (1, 2, 3):
        committed(sink, staged(sink, origin(tmp_path), checkpoint, [str(checkpoint)]))
    assert kafka.values(topic) == ["1", "2", "3"]
    assert sorted(made) == ["Consumer", "Producer"]


def test_two_sinks_of_a_job_have_separate_commit_notes(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()
    sink = builder(kafka, serializer(topic), EXACTLY_ONCE).build()
    both = [
        *staged(sink, origin(tmp_path, "first"), 1, ["a"]),
        *staged(sink, origin(tmp_path, "second"), 1, ["b"]),
    ]
    committed(sink, both)
    assert kafka.values(topic) == ["a", "b"]


def test_staged_messages_that_were_deleted_fail_the_job(kafka: Kafka, tmp_path: Path) -> None:
    sink = builder(kafka, serializer(kafka.topic()), EXACTLY_ONCE).build()
    found = staged(sink, origin(tmp_path), 1, ["a"])
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(KafkaConnectorError, match=r"job.py:3\): messages that wait.*is missing"):
        committed(sink, found)


def test_a_commit_note_that_may_have_expired_fails_the_commit(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = builder(kafka, serializer(kafka.topic()), EXACTLY_ONCE).build()
    found = staged(sink, origin(tmp_path), 1, ["a"])
    now_ms = time.time_ns() // 1_000_000
    monkeypatch.setattr(outbox, "_now_ms", lambda: now_ms + 8 * 24 * 3600 * 1000)
    with pytest.raises(KafkaConnectorError, match="brokers delete this note after a week"):
        committed(sink, found)


def test_orphaned_staged_files_of_killed_runs_are_removed(kafka: Kafka, tmp_path: Path) -> None:
    sink = builder(kafka, serializer("t"), EXACTLY_ONCE).build()
    staged(sink, origin(tmp_path), 1, ["a"])
    staged(sink, origin(tmp_path, "other"), 1, ["a"])
    committer = sink.create_committer()
    assert committer is not None
    confirmed: list[None] = []
    committer.discard_orphans(origin(tmp_path), lambda: confirmed.append(None))
    assert (files(tmp_path), len(confirmed)) == (1, 1)


def test_a_bounded_job_can_stage_messages_in_a_folder(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()
    started = builder(kafka, serializer(topic), EXACTLY_ONCE)
    written(started.set_staging_directory(str(tmp_path)).build(), ["a", "b"], 1)
    assert kafka.values(topic) == ["a", "b"]
    assert files(tmp_path) == 0


# Flink 1.x


def test_flink_kafka_consumer_and_producer_of_flink_1_work(kafka: Kafka) -> None:
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, range(5), timestamp=1_000)
    properties = {"bootstrap.servers": kafka.servers, "group.id": "old"}
    with pytest.warns(DeprecationWarning, match="use KafkaSource"):
        consumer = FlinkKafkaConsumer(source, SimpleStringSchema(), properties)
    consumer.set_start_from_earliest()
    as_source = consumer.as_source()
    as_source.stopping = KafkaOffsetsInitializer.latest()
    consumer.as_source = lambda: as_source  # type: ignore[method-assign]
    env = environment(1)
    producer = FlinkKafkaProducer(
        target,
        SimpleStringSchema(),
        {"bootstrap.servers": kafka.servers},
        semantic=Semantic.EXACTLY_ONCE,
    )
    env.add_source(consumer).add_sink(producer.set_write_timestamp_to_kafka(True))
    env.execute()
    found = kafka.messages(target)
    assert [message.value() for message in found] == [b"0", b"1", b"2", b"3", b"4"]
    assert {message.timestamp()[1] for message in found} == {1_000}


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: KafkaSink.builder().build(), "call set_bootstrap_servers"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("a:1").build(), "set_record_serializer"),
        (
            lambda: (
                KafkaSink.builder()
                .set_bootstrap_servers("a:1")
                .set_record_serializer(serializer("t"))
                .set_delivery_guarantee(EXACTLY_ONCE)
                .build()
            ),
            "EXACTLY_ONCE needs set_transactional_id_prefix",
        ),
        (lambda: KafkaRecordSerializationSchema.builder().build(), r"call set_topic\(\)"),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_topic("t").build(),
            r"call set_value_serialization_schema\(\)",
        ),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic(1), "the name of a topic"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_in_the_builder_are_refused(build: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        build()
