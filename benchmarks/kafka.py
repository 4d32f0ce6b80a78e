"""Measures a job from Kafka to Kafka, exactly once: reads and parses JSON events, counts them by key, writes the counts.

    python benchmarks/kafka.py [--only throughput|latency|backlog] [--records 1000000] [--rounds 3] [--json FILE]
                               [--pyflink PYTHON --connector JAR]

opchain on Spark and PyFlink run the same program. The baseline is a loop with confluent-kafka's consumer and
transactional producer, which keeps its counts only in memory. Each contender runs in its own process and first reads
a small topic to warm up. Processor time includes all processes of a contender, but not the broker.

- throughput: the time for a backlog of records, in alternating rounds.
- latency: at a steady rate, the time from writing an event until a reader of committed messages has its count.
- backlog: only opchain, with many records: the resident memory of its Python processes during the job.

The benchmark starts the broker, as `opchain dev kafka` does.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.path[0] = str(ROOT)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYS = 10_000
PARTITIONS = 2
WARM_UP = 100_000
RATE = 2_000
"""Events per second of the latency test."""

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


# The contenders, each in its own process


def program(root: str, servers: str, source_topic: str, target_topic: str, *more: str) -> None:
    """The program with the package `opchain` or `pyflink`. It reads up to the topic's current end, or until it is killed."""
    ends, interval_ms, jar, mode = (*more, "", "")[:4]
    common = importlib.import_module(f"{root}.common")
    datastream = importlib.import_module(f"{root}.datastream")
    kafka = importlib.import_module(f"{root}.datastream.connectors.kafka")
    guarantees = importlib.import_module(f"{root}.datastream.connectors.base")
    configuration = common.Configuration()
    configuration.set_string("execution.checkpointing.interval", f"{interval_ms} ms")
    if root == "pyflink":
        configuration.set_string("pipeline.jars", f"file://{jar}")
        configuration.set_string("python.execution-mode", mode)
        configuration.set_string("python.executable", sys.executable)
        configuration.set_string("restart-strategy.type", "none")
    else:
        configuration.set_string("execution.checkpointing.dir", tempfile.mkdtemp())
    env = datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(PARTITIONS)
    source = kafka.KafkaSource.builder().set_bootstrap_servers(servers).set_topics(source_topic)
    source.set_starting_offsets(kafka.KafkaOffsetsInitializer.earliest())
    source.set_value_only_deserializer(common.SimpleStringSchema())
    if ends == "ends":
        # A Flink job finishes only if its source is bounded. It still takes checkpoints.
        stop = source.set_bounded if root == "pyflink" else source.set_unbounded
        stop(kafka.KafkaOffsetsInitializer.latest())
    schema = kafka.KafkaRecordSerializationSchema.builder().set_topic(target_topic)
    schema.set_value_serialization_schema(common.SimpleStringSchema())
    sink = kafka.KafkaSink.builder().set_bootstrap_servers(servers)
    sink.set_delivery_guarantee(guarantees.DeliveryGuarantee.EXACTLY_ONCE)
    sink.set_transactional_id_prefix(f"to-{target_topic}").set_record_serializer(schema.build())
    sink.set_property("transaction.timeout.ms", "600000")
    pair = common.Types.TUPLE([common.Types.LONG(), common.Types.LONG(), common.Types.LONG()])
    texts = env.from_source(source.build(), common.WatermarkStrategy.no_watermarks(), "events").uid(
        "events"
    )
    events = texts.map(json.loads, common.Types.PICKLED_BYTE_ARRAY())
    ones = events.map(lambda event: (event["user"], 1, event["time"]), pair)
    counts = ones.key_by(lambda one: one[0], common.Types.LONG()).reduce(
        lambda left, right: (left[0], left[1] + right[1], right[2])
    )
    shown = counts.uid("counts").map(
        lambda count: json.dumps({"user": count[0], "count": count[1], "time": count[2]}),
        common.Types.STRING(),
    )
    shown.sink_to(sink.build()).uid("written")
    env.execute("kafka")


def loop(servers: str, source_topic: str, target_topic: str, *more: str) -> None:
    """The hand-written baseline of the same job."""
    import confluent_kafka  # noqa: PLC0415 - of this contender

    ends, interval_ms = more[:2]
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"loop-{target_topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": ends == "ends",
        }
    )
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": f"loop-{target_topic}",
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions()
    consumer.assign(
        [confluent_kafka.TopicPartition(source_topic, item, 0) for item in range(PARTITIONS)]
    )
    counts: dict[int, int] = {}
    left = set(range(PARTITIONS))
    while left:
        producer.begin_transaction()
        commits_at = time.monotonic() + int(interval_ms) / 1000
        while left and (now := time.monotonic()) < commits_at:
            for message in consumer.consume(1000, min(commits_at - now, 0.1)):
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    left.discard(message.partition())
                    continue
                event = json.loads(message.value().decode())
                user = event["user"]
                count = counts[user] = counts.get(user, 0) + 1
                data = json.dumps({"user": user, "count": count, "time": event["time"]}).encode()
                while True:
                    try:
                        producer.produce(target_topic, data)
                        break
                    except BufferError:
                        producer.poll(0.1)
            producer.poll(0)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction()
    consumer.close()


def contend(kind: str, servers: str, *arguments: str) -> None:
    """Runs as a contender: reads topics from standard input, runs a job for each, and prints a line when it is over."""
    if kind == "ours":
        from benchmarks.environment import spark_session  # noqa: PLC0415 - of this contender

        spark_session()
    elif kind == "pyflink":  # the JVM looks for `python`
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in sys.stdin:
        topics = line.split()
        if kind == "loop":
            loop(servers, *topics, *arguments)
        else:
            program("opchain" if kind == "ours" else "pyflink", servers, *topics, *arguments)
        print("over", flush=True)


# Measuring


class Contender:
    """The process of a contender, and the time and memory that it and its children use."""

    def __init__(
        self, kind: str, servers: str, *arguments: str, python: str = sys.executable
    ) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__)), "--contender", kind, servers, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def begin(self, *topics: str) -> None:
        """Starts a job."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(topics) + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Waits until the job is over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line == "over\n":
                return
        raise RuntimeError(f"{self.process.args!r} ended: {self.process.wait()}")

    def processor_s(self) -> float:
        """The processor time so far, including children that have exited."""
        return sum(sum(map(int, stat[11:15])) for _, stat in self._stats()) / _TICKS

    def python_bytes(self) -> int:
        """The resident memory of the contender's Python processes."""
        return sum(int(stat[21]) for name, stat in self._stats() if "python" in name) * _PAGE

    def _stats(self) -> Iterator[tuple[str, list[str]]]:
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                name, _, rest = path.read_text().rpartition(")")
                fields = rest.split()
                if int(fields[3]) == self.process.pid:  # the session
                    yield name, fields

    def __enter__(self) -> Contender:  # noqa: PYI034 - Self needs Python 3.11
        """Returns itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Kills all processes of the session."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if int(path.read_text().rpartition(")")[2].split()[3]) == self.process.pid:
                    os.kill(int(path.parent.name), 9)
        self.process.wait()


def event(number: int, time_ms: int) -> bytes:
    """An event as JSON."""
    return (
        b'{"user": %d, "item": %d, "price": %d.25, "action": "view", "page": "/products/%d", "time": %d}'
        % (number * 7919 % KEYS, number % 997, number % 100, number % 997, time_ms)
    )


class Broker:
    """Creates topics on a broker, and writes and reads their messages."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - contenders may lack it

        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.number = 0

    def topic(self) -> str:
        """Creates a topic."""
        from confluent_kafka.admin import NewTopic  # noqa: PLC0415 - contenders may lack it

        self.number += 1
        name = f"topic-{self.number}"
        new = NewTopic(name, num_partitions=PARTITIONS)
        self.admin.create_topics([new])[name].result()
        return name

    def producer(self) -> Any:
        """A producer that waits at most 5 ms for further messages."""
        import confluent_kafka  # noqa: PLC0415 - contenders may lack it

        return confluent_kafka.Producer({"bootstrap.servers": self.servers, "linger.ms": 5})

    def filled(self, records: int) -> str:
        """Creates a topic and writes `records` events to it."""
        topic, producer = self.topic(), self.producer()
        for number in range(records):
            while True:
                try:
                    producer.produce(topic, event(number, 0), partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()
        return topic

    def read(self, topic: str, until: Callable[[Any], bool]) -> None:
        """Passes each committed message of a topic to `until`, until that returns True."""
        import confluent_kafka  # noqa: PLC0415 - contenders may lack it

        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"reads-{topic}",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 5,
            }
        )
        consumer.assign(
            [confluent_kafka.TopicPartition(topic, item, 0) for item in range(PARTITIONS)]
        )
        with_end = iter(lambda: consumer.poll(180), None)
        for message in with_end:
            if until(message):
                break
        else:
            raise RuntimeError(f"{topic} has no more messages")
        consumer.close()

    def require_counts(self, topic: str, records: int) -> None:
        """Raises an error unless the last counts of all keys add up to `records`."""
        seen: dict[int, int] = {}
        left = [records]

        def take(message: Any) -> bool:
            count = json.loads(message.value())
            user = count["user"]
            seen[user] = max(seen.get(user, 0), count["count"])
            left[0] -= 1
            return left[0] == 0

        self.read(topic, take)
        total = sum(seen.values())
        if total != records:
            raise AssertionError(f"{topic} has counts of {total} events, not {records}")


def throughput(
    broker: Broker, kinds: list[list[str]], records: int, rounds: int, interval_ms: int
) -> dict[str, Any]:
    """Measures seconds and processor seconds of each contender for a backlog."""
    small, large = broker.filled(WARM_UP), broker.filled(records)
    found: dict[str, list[tuple[float, float]]] = {kind[0]: [] for kind in kinds}
    for number in range(rounds):
        for name, python, kind, *more in kinds[:: 1 if number % 2 else -1]:
            arguments = ("ends", str(interval_ms), *more)
            with Contender(kind, broker.servers, *arguments, python=python) as contender:
                contender.begin(small, broker.topic())
                contender.end()
                target = broker.topic()
                began, used = time.perf_counter(), contender.processor_s()
                contender.begin(large, target)
                contender.end()
                taken = time.perf_counter() - began, contender.processor_s() - used
            broker.require_counts(target, records)
            found[name].append(taken)
            print(
                f"round {number + 1}: {name}: {taken[0]:.2f} s, processor {taken[1]:.2f} s",
                flush=True,
            )
    result = {}
    for name, rounds_of in found.items():
        elapsed, processor = (statistics.median(values) for values in zip(*rounds_of, strict=True))
        result[name] = {
            "seconds": elapsed,
            "processor_s": processor,
            "records_per_s": records / elapsed,
            "records_per_processor_s": records / processor,
        }
    ours = found["opchain"]
    for name, rounds_of in found.items():
        pairs = list(zip(ours, rounds_of, strict=True))
        result[name]["ratio"] = statistics.median(their[0] / own[0] for own, their in pairs)
        result[name]["processor_ratio"] = statistics.median(
            their[1] / own[1] for own, their in pairs
        )
    return result


def latency(
    broker: Broker, kinds: list[list[str]], seconds: int, interval_ms: int
) -> dict[str, Any]:
    """Measures milliseconds from writing an event to reading its count."""
    result = {}
    for name, python, kind, *more in kinds:
        source, target = broker.topic(), broker.topic()
        over = threading.Event()

        def write(source: str = source, over: threading.Event = over) -> None:
            producer = broker.producer()
            number, began = 0, time.monotonic()
            while not over.is_set():
                for _ in range(int((time.monotonic() - began) * RATE) - number):
                    now_ms = time.time_ns() // 1_000_000
                    producer.produce(source, event(number, now_ms), partition=number % PARTITIONS)
                    number += 1
                producer.poll(0.005)
            producer.flush()

        arguments = ("runs", str(interval_ms), *more)
        taken: list[int] = []
        with Contender(kind, broker.servers, *arguments, python=python) as contender:
            contender.begin(source, target)
            writer = threading.Thread(target=write)
            writer.start()
            first_s: list[float] = []

            def take(
                message: Any, taken: list[int] = taken, first_s: list[float] = first_s
            ) -> bool:
                now = time.time()
                first_s[:] = first_s or [now]
                # Results count after a third of the time, when the job is warm.
                if now - first_s[0] > seconds / 3:
                    taken.append(int(now * 1000) - json.loads(message.value())["time"])
                return now - first_s[0] > seconds

            try:
                broker.read(target, take)
            finally:
                over.set()
                writer.join()
        cut = statistics.quantiles(taken, n=100)
        result[name] = {"p50_ms": cut[49], "p99_ms": cut[98], "events": len(taken)}
        print(f"{name}: latency {result[name]}", flush=True)
    return result


def backlog(broker: Broker, records: int, interval_ms: int) -> dict[str, Any]:
    """Measures the memory of opchain's Python processes in each tenth of the job."""
    source, target = broker.filled(records), broker.topic()
    samples: list[int] = []
    with Contender("ours", broker.servers, "ends", str(interval_ms)) as contender:
        began = time.perf_counter()
        contender.begin(source, target)
        waiting = threading.Thread(target=contender.end)
        waiting.start()
        while waiting.is_alive():
            waiting.join(0.5)
            samples.append(contender.python_bytes())
        elapsed = time.perf_counter() - began
    broker.require_counts(target, records)
    tenth = max(len(samples) // 10, 1)
    found = {
        "records": records,
        "seconds": elapsed,
        "records_per_s": records / elapsed,
        "megabytes": [
            max(samples[first : first + tenth]) // 1_000_000
            for first in range(0, len(samples), tenth)
        ],
    }
    print(f"backlog: {found}", flush=True)
    return found


def main() -> int:
    """Runs the measurements, and prints a table."""
    if sys.argv[1:2] == ["--contender"]:
        contend(*sys.argv[2:])
        return 0
    from opchain.runtime.testing.kafka_broker import kafka_brokers  # noqa: PLC0415 - contenders may lack it

    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", choices=["throughput", "latency", "backlog"])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--backlog", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=30, help="duration of the latency test")
    parser.add_argument("--interval", type=int, default=1000, help="checkpoint interval in ms")
    parser.add_argument("--pyflink", help="a Python interpreter with PyFlink")
    parser.add_argument("--connector", help="flink-sql-connector-kafka's jar")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    kinds = [["opchain", sys.executable, "ours"], ["loop by hand", sys.executable, "loop"]]
    if options.pyflink:
        kinds += [
            [f"PyFlink, {mode} mode", options.pyflink, "pyflink", options.connector, mode]
            for mode in ("process", "thread")
        ]
    found: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        kafka_brokers(Path(folder)) as brokers,
    ):
        broker = Broker(brokers.bootstrap_servers)
        if options.only in (None, "throughput"):
            found["throughput"] = throughput(
                broker, kinds, options.records, options.rounds, options.interval
            )
            for name, numbers in found["throughput"].items():
                print(name, {key: round(value, 2) for key, value in numbers.items()})
        if options.only in (None, "latency"):
            found["latency"] = latency(broker, kinds, options.seconds, options.interval)
        if options.only in (None, "backlog"):
            found["backlog"] = backlog(broker, options.backlog, options.interval)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
