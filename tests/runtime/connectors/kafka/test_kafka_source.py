"""KafkaSource in process against a real broker: records, offsets, epochs, and failures."""

from __future__ import annotations

import json
import pickle
import signal
import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Duration, WatermarkStrategy
from opchain.common.serialization import DeserializationSchema, SimpleStringSchema
from opchain.common.time import Time
from opchain.datastream import OutputTag, StreamExecutionEnvironment
from opchain.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
)
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.kafka.client import Brokers, KafkaConnectorError
from opchain.runtime.connectors.kafka.reader import PartitionRange, RangeReader
from opchain.runtime.connectors.kafka.record import MalformedMessageError
from opchain.runtime.testing.kafka_broker import PASSWORD, USER

if TYPE_CHECKING:
    from kafka_broker import Kafka

    from opchain.datastream.connectors.kafka import KafkaMessage, KafkaSourceBuilder

LATEST = KafkaOffsetsInitializer.latest()


class Int(DeserializationSchema[int]):
    def deserialize(self, message: bytes) -> int:
        return int(message)


def builder(kafka: Kafka, *topics: str) -> KafkaSourceBuilder[str]:
    started = KafkaSource.builder().set_bootstrap_servers(kafka.servers)
    if topics:
        started.set_topics(*topics)
    return started.set_value_only_deserializer(SimpleStringSchema())


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    return env


def collected(source: KafkaSource[Any], parallelism: int = 2) -> list[Any]:
    env = environment(parallelism)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    return list(stream.execute_and_collect())


def epochs(source: KafkaSource[Any], position: Any, now_ms: int = 0) -> list[tuple[Any, list[Any]]]:
    """Runs epochs until no records are left; returns each position with the records up to it."""
    found = []
    while True:
        end = json.loads(json.dumps(source.latest_position(position, now_ms)))
        if end == position:
            source.close()
            return found
        records = []
        for own in source.splits_between(position, end, 2):
            for split in own:
                for batch in source.read_delivery(pickle.dumps(split), 100):
                    records.extend(batch.values)  # type: ignore[attr-defined]
        found.append((end, records))
        position = end


def test_a_bounded_source_reads_each_record_once_and_partitions_in_order(kafka: Kafka) -> None:
    topics = [kafka.topic(3), kafka.topic(1)]
    for number in range(3):
        kafka.produce(topics[0], range(number, 3000, 3), number)
    kafka.produce(topics[1], range(3000, 3100))
    found = list(map(int, collected(builder(kafka, *topics).set_bounded(LATEST).build())))
    assert sorted(found) == list(range(3100))
    for number in range(3):
        own = [value for value in found if value < 3000 and value % 3 == number]
        assert own == sorted(own)


def test_an_unbounded_source_in_process_stops_at_its_stopping_offsets(kafka: Kafka) -> None:
    topic = kafka.topic(3)
    kafka.produce(topic, range(100), 0)
    kafka.produce(topic, range(100, 150), 2)
    source = builder(kafka, topic).set_unbounded(LATEST).build()
    assert sorted(map(int, collected(source))) == list(range(150))


def test_only_committed_messages_are_read(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.transaction(topic, range(10), "commit")
    kafka.transaction(topic, range(10, 20), "abort")
    kafka.transaction(topic, range(20, 30), "commit")
    open_one = kafka.transaction(topic, range(30, 40), "open")
    expected = [*range(10), *range(20, 30)]
    assert list(map(int, collected(builder(kafka, topic).set_bounded(LATEST).build()))) == expected
    unbounded = builder(kafka, topic).build()
    found = epochs(unbounded, unbounded.initial_position(0))
    assert [int(value) for _, records in found for value in records] == expected
    open_one.abort_transaction(30)


def test_a_bounded_source_ends_at_a_range_of_aborted_messages(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["first"])
    kafka.transaction(topic, range(5), "abort")
    assert collected(builder(kafka, topic).set_bounded(LATEST).build()) == ["first"]


def test_an_epoch_can_be_read_again_between_its_two_positions(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, range(100), 0)
    kafka.produce(topic, range(100, 300), 1)
    source = builder(kafka, topic).set_max_records_per_epoch(60).build()
    start = source.initial_position(0)
    found = epochs(source, start)
    assert [len(records) for _, records in found] == [60, 60, 60, 60, 60]
    assert sorted(int(value) for _, records in found for value in records) == list(range(300))
    assert [found[0][1].count(str(number)) for number in (19, 20, 139, 140)] == [1, 0, 1, 0], (
        "each partition gets the same share of what waits in it"
    )
    again = epochs(builder(kafka, topic).set_max_records_per_epoch(60).build(), found[2][0])
    assert again == found[3:]


def test_the_progress_of_an_epoch_has_offsets_and_lag(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, range(100), 0)
    source = builder(kafka, topic).set_max_records_per_epoch(60).build()
    found = epochs(source, source.initial_position(0))
    assert [source.split_offsets(position)[f"{topic}-0"] for position, _ in found] == [
        {"next": 60, "lag": 40},
        {"next": 100, "lag": 0},
    ]
    assert source.split_offsets(found[0][0])[f"{topic}-1"] == {"next": 0, "lag": 0}


def test_json_messages_are_parsed_as_json_loads_parses_them(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ['{"user": "a", "more": [1]}', '{"user": "b"}'])
    source = builder(kafka, topic).set_bounded(LATEST).build()

    def users() -> list[str]:
        env = environment(1)
        stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "kafka")
        parsed = stream.map(json.loads).map(lambda event: event["user"])
        return list(parsed.execute_and_collect())

    assert users() == ["a", "b"]
    kafka.produce(topic, ['{"user": '])
    with pytest.raises(json.JSONDecodeError, match="Expecting value"):
        users()


def test_new_messages_are_read_in_the_next_epoch(kafka: Kafka) -> None:
    topic = kafka.topic()
    source = builder(kafka, topic).build()
    start = source.initial_position(0)
    assert source.latest_position(start, 0) == start
    kafka.produce(topic, ["late"])
    assert [records for _, records in epochs(source, start)] == [["late"]]


def test_epochs_can_be_limited_by_bytes(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["x" * 100] * 50)
    source = builder(kafka, topic).set_max_bytes_per_epoch(1000).build()
    found = epochs(source, source.initial_position(0))
    assert [len(records) for _, records in found] == [10] * 5


def test_epochs_can_be_limited_by_time(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, range(30_000))
    source = builder(kafka, topic).set_max_time_per_epoch(Duration.of_seconds(1)).build()
    position = source.initial_position(0)
    sizes = []
    # The first epoch took 2 s, so the second one gets half as much.
    for now_ms in (1_000, 3_000, 4_000):
        end = source.latest_position(position, now_ms)
        at, position = position["topics"][topic]["next"]["0"], end
        sizes.append(end["topics"][topic]["next"]["0"] - at)
    assert sizes == [10_000, 5_000, 5_000]


@pytest.mark.parametrize("now_ms", [1500, -500])
def test_new_partitions_and_topics_are_read_from_their_beginning(kafka: Kafka, now_ms: int) -> None:
    """Also if the clock was set back since the last discovery."""
    name = f"grows-at-{now_ms}"
    topic = kafka.topic(name=f"{name}-a")
    kafka.produce(topic, ["first"])
    started = builder(kafka).set_topic_pattern(f"{name}-.").set_starting_offsets(LATEST)
    source = started.set_property("partition.discovery.interval.ms", "1000").build()
    start = source.initial_position(0)
    kafka.add_partitions(topic, 2)
    kafka.produce(topic, ["of a new partition"], 1)
    kafka.produce(kafka.topic(name=f"{name}-b"), ["of a new topic"])
    assert epochs(source, start, 500) == []
    found = epochs(source, start, now_ms)
    assert sorted(value for _, records in found for value in records) == [
        "of a new partition",
        "of a new topic",
    ]


def test_starting_offsets_decide_where_reading_starts(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, range(10), 0, timestamp=1_000)
    kafka.produce(topic, range(10, 20), 0, timestamp=2_000)
    kafka.produce(topic, range(20, 30), 1, timestamp=3_000)
    given = {KafkaTopicPartition(topic, 0): 5, KafkaTopicPartition(topic, 1): 999}
    reset = KafkaOffsetResetStrategy
    starts = {
        KafkaOffsetsInitializer.earliest(): range(30),
        KafkaOffsetsInitializer.latest(): [],
        KafkaOffsetsInitializer.timestamp(2_000): range(10, 30),
        KafkaOffsetsInitializer.timestamp(9_000): [],
        KafkaOffsetsInitializer.offsets(given): range(5, 30),
        KafkaOffsetsInitializer.offsets(given, reset.LATEST): range(5, 20),
        KafkaOffsetsInitializer.committed_offsets(reset.EARLIEST): range(30),
        KafkaOffsetsInitializer.committed_offsets(reset.LATEST): [],
    }
    for initializer, expected in starts.items():
        started = builder(kafka, topic).set_group_id("fresh").set_starting_offsets(initializer)
        found = collected(started.set_bounded(LATEST).build())
        assert sorted(map(int, found)) == list(expected), initializer


def test_a_starting_offset_that_was_deleted_is_logged(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, range(10))
    kafka.delete_records(topic, 0, 6)
    start = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 2})
    found = collected(builder(kafka, topic).set_starting_offsets(start).set_bounded(LATEST).build())
    assert found == ["6", "7", "8", "9"]
    [warning] = [each.getMessage() for each in caplog.records if topic in each.getMessage()]
    assert "there is no offset 2, so the source starts at 6 (EARLIEST)" in warning


def test_the_error_about_a_group_without_offsets_names_the_call_to_add(kafka: Kafka) -> None:
    topic = kafka.topic()
    started = builder(kafka, topic).set_group_id("new-group")
    started.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    with pytest.raises(
        KafkaConnectorError, match=r"give KafkaOffsetsInitializer\.committed_offsets\(\) a"
    ):
        collected(started.set_bounded(LATEST).build())


def test_a_job_starts_at_the_committed_offsets_of_its_group(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, range(10), 1)
    source = builder(kafka, topic).set_group_id("follows").build()
    [(position, _)] = epochs(source, source.initial_position(0))
    source.checkpoint_completed(position)
    assert kafka.committed("follows") == {(topic, 0): 0, (topic, 1): 10}
    kafka.produce(topic, ["new"], 1)
    started = builder(kafka, topic).set_group_id("follows")
    started.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    assert collected(started.set_bounded(LATEST).build()) == ["new"]


def test_offsets_are_not_committed_if_commits_are_disabled(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["x"])
    started = builder(kafka, topic).set_group_id("silent")
    source = started.set_property("commit.offsets.on.checkpoint", "false").build()
    [(position, _)] = epochs(source, source.initial_position(0))
    source.checkpoint_completed(position)
    assert kafka.committed("silent") == {}


def test_only_the_given_partitions_are_read(kafka: Kafka) -> None:
    topic = kafka.topic(3)
    for number in range(3):
        kafka.produce(topic, [number], number)
    partitions = {KafkaTopicPartition(topic, number) for number in (0, 2)}
    started = builder(kafka).set_partitions(partitions).set_bounded(LATEST)
    assert sorted(collected(started.build())) == ["0", "2"]


def test_a_deserializer_gets_the_whole_message(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, ["v"], 1, key=b"k", headers=[("h", b"1")], timestamp=5_000)
    kafka.produce(topic, [None], 1, key=b"gone", timestamp=6_000)

    class Whole(KafkaRecordDeserializationSchema[Any]):
        def deserialize(self, message: KafkaMessage) -> Any:
            return tuple(message[1:])

    started = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    env = environment(1)
    stream = env.from_source(
        started.set_deserializer(Whole()).set_bounded(LATEST).build(),
        WatermarkStrategy.no_watermarks(),
        "kafka",
    )
    assert list(stream.execute_and_collect()) == [
        (1, 0, 5_000, b"k", b"v", (("h", b"1"),)),
        (1, 1, 6_000, b"gone", None, ()),
    ]


def test_records_have_the_timestamps_of_their_messages(kafka: Kafka) -> None:
    from opchain.datastream.functions import ProcessFunction  # noqa: PLC0415 - used by this test only

    class Timestamp(ProcessFunction[Any, Any]):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value, ctx.timestamp()

    topic = kafka.topic()
    kafka.produce(topic, ["a"], timestamp=7_000)
    env = environment(1)
    source = builder(kafka, topic).set_bounded(LATEST).build()
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    assert list(stream.process(Timestamp()).execute_and_collect()) == [("a", 7_000)]


def test_records_of_a_partition_that_is_behind_are_not_late(kafka: Kafka) -> None:
    """Each partition has its own watermark. With one for all, a partition that is a day behind would be late."""
    topic = kafka.topic(2)
    day_ms = 24 * 3600 * 1000
    kafka.produce(topic, ["ahead"] * 5_000, 0, timestamp=10 * day_ms)
    kafka.produce(topic, ["behind"] * 5_000, 1, timestamp=9 * day_ms)
    env = environment(1)
    source = builder(kafka, topic).set_unbounded(LATEST).build()
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    ones = stream.map(lambda value: (value, 1)).key_by(lambda pair: pair[0])
    hours = ones.window(TumblingEventTimeWindows.of(Time.hours(1)))
    counted = hours.reduce(lambda left, right: (left[0], left[1] + right[1]))
    assert sorted(counted.execute_and_collect()) == [("ahead", 5_000), ("behind", 5_000)]


def test_an_unbounded_source_stops_at_its_stopping_timestamp(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, range(10), 0, timestamp=1_000)
    kafka.produce(topic, range(10, 20), 1, timestamp=1_000)
    kafka.produce(topic, range(20, 30), 1, timestamp=5_000)
    stop = KafkaOffsetsInitializer.timestamp(3_000)
    source = builder(kafka, topic).set_unbounded(stop).build()
    found = epochs(source, source.initial_position(0))
    assert sorted(int(value) for _, records in found for value in records) == list(range(20))
    assert source.is_at_end(found[-1][0])
    assert source.split_offsets(found[-1][0])[f"{topic}-1"] == {"next": 10, "lag": 10}


def test_a_codec_that_the_client_does_not_know_fails_the_job_with_its_offset(kafka: Kafka) -> None:
    """No broker accepts such a message, so the test raises the client's error itself."""
    library: Any = pytest.importorskip("confluent_kafka")
    unknown = library.KafkaError(library.KafkaError._NOT_IMPLEMENTED, "Unsupported codec 9")
    message = SimpleNamespace(error=lambda: unknown, offset=lambda: 7)
    reader = RangeReader({"bootstrap.servers": kafka.servers}, "KafkaSource(t)")
    with pytest.raises(
        KafkaConnectorError,
        match=r"topic t, partition 1, offset 7: .*codec 9.*does not support this compression",
    ):
        reader._is_end(message, PartitionRange("t", 1, 0, 9))
    reader.close()


def test_a_malformed_message_fails_the_job_with_its_offset(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["1", "two"])
    source = builder(kafka, topic).set_value_only_deserializer(Int()).set_bounded(LATEST).build()
    with pytest.raises(
        MalformedMessageError, match=rf"topic {topic}, partition 0, offset 1: b'two' can't be"
    ):
        collected(source)


def test_malformed_messages_can_be_skipped_or_sent_to_a_side_output(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["1", "two", None, "4"], key=b"k", timestamp=5)
    started = builder(kafka, topic).set_value_only_deserializer(Int()).set_bounded(LATEST)
    assert collected(started.on_malformed("skip").build()) == [1, 4]
    tag: OutputTag[Any] = OutputTag("malformed")
    env = environment(1)
    source = started.on_malformed(tag).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    aside = stream.get_side_output(tag).collect_async()
    good = stream.collect_async()
    env.execute()
    assert list(good) == [1, 4]
    assert [tuple(item)[:6] for item in aside] == [
        (topic, 0, 1, 5, b"k", b"two"),
        (topic, 0, 2, 5, b"k", None),
    ]


def test_the_error_names_a_missing_topic(kafka: Kafka) -> None:
    with pytest.raises(KafkaConnectorError, match="there is no topic nowhere on 127"):
        collected(builder(kafka, "nowhere").set_bounded(LATEST).build())


def test_the_error_names_a_missing_partition(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    started = builder(kafka).set_partitions({KafkaTopicPartition(topic, 5)}).set_bounded(LATEST)
    with pytest.raises(KafkaConnectorError, match=f"reads partition 5 of topic {topic}, but the"):
        collected(started.build())


def test_messages_deleted_by_retention_before_they_were_read_fail_the_job(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, range(10))
    source = builder(kafka, topic).build()
    start = source.initial_position(0)
    end = source.latest_position(start, 0)
    kafka.delete_records(topic, 0, 5)
    lost = f"topic {topic}, partition 0: the next offset to read is 0, but it no longer exists"
    with pytest.raises(KafkaConnectorError, match=lost):
        source.latest_position(start, 0)
    [split] = [own[0] for own in source.splits_between(start, end, 2) if own]
    with pytest.raises(KafkaConnectorError, match=lost):
        list(source.read_delivery(pickle.dumps(split), 100))
    source.close()


def test_a_topic_that_was_deleted_or_recreated_fails_the_job(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, range(10))
    started = builder(kafka, topic).set_property("partition.discovery.interval.ms", "1000")
    source = started.build()
    [(position, _)] = epochs(source, source.initial_position(0))
    kafka.delete_topic(topic)
    with pytest.raises(KafkaConnectorError, match=f"there is no topic {topic}"):
        source.latest_position(position, 10_000)
    kafka.topic(name=topic)
    anew = f"topic {topic} was deleted and created again"
    with pytest.raises(KafkaConnectorError, match=anew):
        source.latest_position(position, 10_100)
    kafka.produce(topic, range(20))
    with pytest.raises(KafkaConnectorError, match=anew):  # before the next discovery
        source.latest_position(position, 10_200)
    with pytest.raises(KafkaConnectorError, match=anew):
        source.latest_position(position, 20_000)


def test_a_topic_that_was_recreated_with_fewer_partitions_fails_the_job_within_seconds(
    kafka: Kafka,
) -> None:
    topic = kafka.topic(2)
    source = builder(kafka, topic).build()
    position = source.initial_position(0)
    source.latest_position(position, 100)
    kafka.delete_topic(topic)
    kafka.topic(1, topic)
    began_at = time.monotonic()
    with pytest.raises(KafkaConnectorError, match=f"topic {topic} has no partition 1 any more"):
        source.latest_position(position, 200)
    assert time.monotonic() - began_at < 30  # the timeout of a request is 60 s


def test_removing_a_topic_from_the_program_is_an_error(kafka: Kafka) -> None:
    before, after = kafka.topic(), kafka.topic()
    kafka.produce(before, range(10))
    kafka.produce(after, range(10))
    source = builder(kafka, before).build()
    [(position, _)] = epochs(source, source.initial_position(0))
    with pytest.raises(KafkaConnectorError, match=f"topic {before}, which this source no longer"):
        builder(kafka, after).build().latest_position(position, 0)


def test_the_error_names_an_unreachable_broker() -> None:
    pytest.importorskip("confluent_kafka")
    started = KafkaSource.builder().set_bootstrap_servers("127.0.0.1:1").set_topics("t")
    started.set_property("default.api.timeout.ms", "1000")
    source = started.set_value_only_deserializer(SimpleStringSchema()).set_bounded(LATEST).build()
    with pytest.raises(KafkaConnectorError, match=r"servers=127.0.0.1:1.*and that the brokers run"):
        collected(source)


def test_ctrl_c_interrupts_a_request_to_an_unreachable_broker() -> None:
    library = pytest.importorskip("confluent_kafka")
    brokers = Brokers({"bootstrap.servers": "127.0.0.1:9"}, "KafkaSource(t)")

    def asked() -> dict[str, Future[Any]]:
        futures = brokers.client.describe_topics(library.TopicCollection(["t"]), request_timeout=30)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        return futures  # type: ignore[no-any-return]

    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            brokers.answers("describe topics", asked)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_a_wrong_password_is_not_reported_as_an_unreachable_broker(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["x"])

    def source(password: str) -> KafkaSource[str]:
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required "
        started = builder(kafka, topic).set_properties(
            {
                "bootstrap.servers": kafka.brokers.login_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{login} username="{USER}" password="{password}";',
            }
        )
        return started.set_bounded(LATEST).build()

    assert collected(source(PASSWORD)) == ["x"]
    with pytest.raises(KafkaConnectorError, match=r"uthentication.*: check sasl.mechanism"):
        collected(source("wrong"))


def test_the_error_names_an_unknown_client_property(kafka: Kafka) -> None:
    started = builder(kafka, "t").set_property("no.such.property", "1").set_bounded(LATEST)
    with pytest.raises(KafkaConnectorError, match=r'No such configuration property: "no.such.pro'):
        collected(started.build())


def test_properties_of_consumers_cause_no_warnings(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic(1)
    kafka.produce(topic, ["a"])
    started = builder(kafka, topic).set_group_id("readers").set_bounded(LATEST)
    started.set_property("fetch.min.bytes", "1").set_property("max.poll.interval.ms", "400000")
    assert collected(started.build()) == ["a"]
    assert [record.message for record in caplog.records if "CONFWARN" in record.message] == []


def test_a_java_truststore_is_refused_and_the_error_says_what_to_do(kafka: Kafka) -> None:
    started = builder(kafka, "t").set_property("ssl.truststore.location", "/trust.jks")
    with pytest.raises(KafkaConnectorError, match=r"a PEM file and set ssl\.ca\.location"):
        collected(started.set_bounded(LATEST).build())


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: KafkaSource.builder().build(), "call set_bootstrap_servers"),
        (lambda: KafkaSource.builder().set_bootstrap_servers("a:1").build(), "call set_topics"),
        (
            lambda: KafkaSource.builder().set_topics("a").set_topics("b"),
            "the source reads a already",
        ),
        (lambda: KafkaSource.builder().set_topics(), "it takes names of topics"),
        (lambda: KafkaSource.builder().set_partitions({("a", 1)}), "a set of KafkaTopicPartition"),  # type: ignore[arg-type]
        (lambda: KafkaSource.builder().set_starting_offsets("x"), "takes a KafkaOffsetsIniti"),  # type: ignore[arg-type]
        (
            lambda: KafkaSource.builder().set_max_records_per_epoch(0),
            "it takes a number of at least 1",
        ),
        (lambda: KafkaOffsetsInitializer.timestamp(-1), "milliseconds since 1970"),
    ],
)
def test_mistakes_in_the_builder_are_refused(build: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        build()


def test_partitions_are_assigned_to_subtasks_as_in_flink() -> None:
    """Java: ((topic.hashCode() * 31) & 0x7FFFFFFF) % readers, plus the partition."""
    started = KafkaSource.builder().set_bootstrap_servers("a:1").set_topics("clickstream-events")
    source = started.set_value_only_deserializer(SimpleStringSchema()).build()
    nexts = {str(number): 0 for number in range(4)}
    start = {"topics": {"clickstream-events": {"id": "x", "next": nexts}}}
    end = {"topics": {"clickstream-events": {"id": "x", "next": dict.fromkeys(nexts, 1)}}}
    dealt = source.splits_between(start, end, 3)
    # "clickstream-events".hashCode() is 1894777726 in Java.
    first = ((1894777726 * 31) & 0x7FFFFFFF) % 3
    owners = {item.partition: reader for reader, [own] in enumerate(dealt) for item in own}
    assert owners == {number: (first + number) % 3 for number in range(4)}


@pytest.mark.parametrize(
    "name", ["OFFSET_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "NOT_CONTROLLER", "_TRANSPORT"]
)
def test_brokers_are_asked_again_while_they_elect_a_leader_or_start_again(
    kafka: Kafka, name: str
) -> None:
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 - it may be missing

    refused: Future[int] = Future()
    refused.set_exception(KafkaException(KafkaError(getattr(KafkaError, name))))
    offset: Future[int] = Future()
    offset.set_result(7)
    answers = iter([refused, offset])
    brokers = Brokers({"bootstrap.servers": kafka.servers}, "KafkaSource(t)")
    assert brokers.answers("ask for offsets", lambda: {"t-0": next(answers)}) == {"t-0": 7}


def test_the_topics_are_requested_again_if_a_broker_ends_during_the_request() -> None:
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 - it may be missing

    answers = iter([KafkaException(KafkaError(KafkaError._TRANSPORT)), {"clicks": None}])

    def list_topics(timeout: float) -> Any:
        answer = next(answers)
        if isinstance(answer, KafkaException):
            raise answer
        return SimpleNamespace(topics=answer)

    brokers = Brokers({"bootstrap.servers": "127.0.0.1:9"}, "KafkaSource(t)")
    brokers.client = SimpleNamespace(list_topics=list_topics, poll=lambda timeout: 0)
    assert brokers.topics() == ["clicks"]


def test_an_offset_that_the_client_has_not_set_is_requested_again() -> None:
    from confluent_kafka import OFFSET_INVALID  # noqa: PLC0415 - it may be missing

    answers = iter([OFFSET_INVALID, 7])

    def asked() -> dict[str, Future[SimpleNamespace]]:
        answer: Future[SimpleNamespace] = Future()
        answer.set_result(SimpleNamespace(offset=next(answers)))
        return {"t-0": answer}

    brokers = Brokers({"bootstrap.servers": "127.0.0.1:9"}, "KafkaSource(t)")
    assert brokers.answers("ask for offsets", asked)["t-0"].offset == 7
