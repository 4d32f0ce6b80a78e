"""Tables in Kafka: keys, formats, offsets and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Row
from opchain.datastream import StreamExecutionEnvironment
from opchain.table import EnvironmentSettings, StreamTableEnvironment

if TYPE_CHECKING:
    from kafka_broker import Kafka


@pytest.fixture
def tables() -> StreamTableEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    tables = StreamTableEnvironment.create(env, EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("execution.target", "local")
    return tables


def create(
    tables: StreamTableEnvironment, kafka: Kafka, topic: str, columns: str, options: str
) -> str:
    name = f"t{len(tables.list_tables())}"
    tables.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='kafka', 'topic'='{topic}', "
        f"'properties.bootstrap.servers'='{kafka.servers}', 'properties.group.id'='g', "
        f"'scan.bounded.mode'='latest-offset', {options})"
    )
    return name


def rows(tables: StreamTableEnvironment, name: str) -> list[list[Any]]:
    with tables.execute_sql(f"SELECT * FROM {name}").collect() as found:
        return [list(row) for row in found]


def messages(kafka: Kafka, topic: str) -> list[tuple[bytes | None, bytes | None, int]]:
    kafka.await_commits(topic)
    return [(each.key(), each.value(), each.partition()) for each in kafka.messages(topic)]


EARLIEST = "'scan.startup.mode'='earliest-offset'"


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("'value.fields-include'='ALL'", b'{"id":1}', b'{"id":1,"name":"a"}'),
        ("'value.fields-include'='EXCEPT_KEY'", b'{"id":1}', b'{"name":"a"}'),
    ],
)
def test_key_fields_are_written_to_the_message_key_and_read_from_it(
    kafka: Kafka, tables: StreamTableEnvironment, options: str, key: bytes, value: bytes
) -> None:
    topic = kafka.topic()
    form = f"'key.format'='json', 'key.fields'='id', 'value.format'='json', {EARLIEST}, {options}"
    name = create(tables, kafka, topic, "id INT, name STRING", form)
    tables.execute_sql(f"INSERT INTO {name} VALUES (1, 'a')").wait()
    assert messages(kafka, topic) == [(key, value, 0)]
    assert rows(tables, name) == [[1, "a"]]


def test_the_message_key_omits_the_prefix_and_columns_keep_their_order(
    kafka: Kafka, tables: StreamTableEnvironment
) -> None:
    topic = kafka.topic()
    form = (
        "'key.format'='csv', 'key.fields'='k_id;k_at', 'key.fields-prefix'='k_', 'value.format'='json', "
        f"'value.fields-include'='EXCEPT_KEY', 'value.json.timestamp-format.standard'='ISO-8601', {EARLIEST}"
    )
    columns = "k_id INT, at TIMESTAMP(3), k_at BIGINT, part INT METADATA FROM 'partition' VIRTUAL"
    name = create(tables, kafka, topic, columns, form)
    tables.execute_sql(f"INSERT INTO {name} VALUES (7, TIMESTAMP '2024-01-02 03:04:05', 9)").wait()
    kafka.produce(topic, ['{"at": "2024-01-02T03:04:06"}'])
    assert messages(kafka, topic)[0] == (b"7,9", b'{"at":"2024-01-02T03:04:05"}', 0)
    found = rows(tables, name)
    assert [(row[0], row[1].second, row[2], row[3]) for row in found] == [
        (7, 5, 9, 0),
        (None, 6, None, 0),
    ]


@pytest.mark.parametrize(
    ("of", "value", "message"),
    [
        ("STRING", "'é'", "é".encode("latin-1")),
        ("BIGINT", "258", b"\x02\x01" + b"\0" * 6),
        ("DOUBLE", "CAST(1 AS DOUBLE)", b"\0" * 6 + b"\xf0?"),
        ("BOOLEAN", "TRUE", b"\x01"),
    ],
)
def test_the_raw_format_writes_and_reads_single_values(
    kafka: Kafka, tables: StreamTableEnvironment, of: str, value: str, message: bytes
) -> None:
    topic = kafka.topic()
    form = f"'format'='raw', 'raw.charset'='latin-1', 'raw.endianness'='little-endian', {EARLIEST}"
    name = create(tables, kafka, topic, f"v {of}", form)
    tables.execute_sql(f"INSERT INTO {name} SELECT {value}").wait()
    assert messages(kafka, topic) == [(None, message, 0)]
    expected = {"STRING": "é", "BIGINT": 258, "DOUBLE": 1.0, "BOOLEAN": True}
    assert rows(tables, name) == [[expected[of]]]


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ("id INT", "'format'='json'", Row(id=1)),
        ("id STRING", "'format'='raw'", Row(id='{"id": 1}')),
        ("p INT METADATA FROM 'partition' VIRTUAL, id INT", "'format'='json'", Row(p=0, id=1)),
        (
            "k STRING, id INT",
            "'value.format'='json', 'value.fields-include'='EXCEPT_KEY', 'key.format'='raw', 'key.fields'='k'",
            Row(k="key", id=1),
        ),
    ],
)
def test_rows_of_a_stream_have_the_names_of_the_columns(
    kafka: Kafka, tables: StreamTableEnvironment, columns: str, options: str, expected: Row
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ['{"id": 1}'], key=b"key")
    name = create(tables, kafka, topic, columns, f"{options}, {EARLIEST}")
    with tables.to_data_stream(tables.from_path(name)).execute_and_collect() as found:
        assert list(found) == [expected]


def test_reading_starts_and_ends_at_the_given_offsets(
    kafka: Kafka, tables: StreamTableEnvironment
) -> None:
    topic = kafka.topic(2)
    for partition in (0, 1):
        kafka.produce(topic, [f"{partition}{n}" for n in range(4)], partition)
    name = create(
        tables,
        kafka,
        topic,
        "v STRING",
        "'format'='raw', 'scan.startup.mode'='specific-offsets', "
        "'scan.startup.specific-offsets'='partition:0,offset:2;partition:1,offset:3'",
    )
    assert sorted(row[0] for row in rows(tables, name)) == ["02", "03", "13"]
    tables.execute_sql(
        f"CREATE TABLE ends WITH ('scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='specific-offsets', "
        f"'scan.bounded.specific-offsets'='partition:0,offset:1;partition:1,offset:0') LIKE {name} (OVERWRITING OPTIONS)"
    )
    assert rows(tables, "ends") == [["00"]]


def test_the_fixed_partitioner_writes_each_subtask_to_one_partition(
    kafka: Kafka, tables: StreamTableEnvironment
) -> None:
    topic = kafka.topic(4)
    form = "'format'='raw', 'sink.partitioner'='fixed', 'sink.parallelism'='2'"
    name = create(tables, kafka, topic, "v STRING", form)
    tables.execute_sql(f"INSERT INTO {name} VALUES ('a'), ('b'), ('c'), ('d')").wait()
    assert {partition for _, _, partition in messages(kafka, topic)} == {0, 1}
