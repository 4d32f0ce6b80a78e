"""A simulated Kafka cluster that replaces the clients of confluent-kafka, as far as an exactly-once KafkaSink uses them.

As in Kafka from 3.6 on, which checks each request of a producer against its transaction:

- `init_transactions` gives a transactional id a new epoch. It first aborts the open transaction of this id, or completes
  the one whose commit was decided. Requests with an older epoch are refused: that producer is fenced.
- A commit is decided when the coordinator has the request. Messages and offsets become visible later, with the markers.
- The coordinator aborts a transaction that takes too long, and fences its producer.
- A read of offsets with `read_committed` is refused while a transaction with an offset of this group is not complete.
- librdkafka retries requests. A call that still fails may have reached the broker, may reach it later, or never. After
  an error of delivery the transaction must be aborted.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from simulated_outputs import Output

from opchain.common import SimpleStringSchema
from opchain.datastream.connectors import DeliveryGuarantee
from opchain.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from opchain.runtime.connectors.kafka.client import KafkaConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simulated_scheduler import Scheduler

_TOPIC = "results"
_Note = tuple[str, str, int]
"""A group, a topic and a partition."""


@dataclass
class _Transaction:
    """The transactional id of a producer, and its transaction."""

    epoch: int = -1
    state: str = "none"  # none, open, or decided
    messages: list[str] = field(default_factory=list)
    notes: dict[_Note, int] = field(default_factory=dict)


class Kafka(Output):
    """The cluster.

    Attributes:
        topic: The committed messages.
        offsets: The committed offsets of groups.
        transactions: By transactional id.
    """

    failures = (KafkaException, KafkaConnectorError)

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self.topic: list[str] = []
        self.offsets: dict[_Note, int] = {}
        self.transactions: dict[str, _Transaction] = {}

    @staticmethod
    def add_to(stream: Any) -> Any:
        records = KafkaRecordSerializationSchema.builder().set_topic(_TOPIC)
        builder = KafkaSink.builder().set_bootstrap_servers("simulated:9092")
        builder.set_record_serializer(
            records.set_value_serialization_schema(SimpleStringSchema()).build()
        )
        builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        return stream.sink_to(builder.set_transactional_id_prefix("simulated").build())

    def substitutes(self) -> dict[str, Any]:
        kafka, world = "opchain.runtime.connectors.kafka", self.world
        return {
            "confluent_kafka.Producer": lambda settings, **_: _Producer(self, settings),
            "confluent_kafka.Consumer": lambda settings, **_: _Consumer(self, settings),
            "confluent_kafka.admin.AdminClient": lambda *_, **__: _AdminClient(self),
            f"{kafka}.outbox.file_system_of": lambda _: self.files,
            f"{kafka}.outbox.time": SimpleNamespace(time_ns=lambda: world.now_ms * 1_000_000),
            f"{kafka}.client.time": SimpleNamespace(monotonic=lambda: 0.0),
        }

    def happen(self) -> None:
        """The coordinator writes the markers of a transaction, or aborts one that takes too long."""
        running = [name for name, found in self.transactions.items() if found.state != "none"]
        if running:
            name = self.world.draw.choice(running)
            found = self.transactions[name]
            self.world.trace.append(f"the coordinator ends the {found.state} transaction")
            if found.state == "open":
                found.epoch += 1  # fences the producer
            self.complete(found)

    def lines(self) -> Iterator[str]:
        for found in self.transactions.values():
            if found.state == "decided":
                self.complete(found)
        yield from self.topic

    # Requests

    def begin_epoch(self, name: str) -> int:
        found = self.transactions.setdefault(name, _Transaction())
        self.complete(found)
        found.epoch += 1
        return found.epoch

    def add(
        self, name: str, epoch: int, messages: Sequence[str], notes: Mapping[_Note, int]
    ) -> None:
        found = self._require_epoch(name, epoch)
        if found.state == "decided":  # the client waits for the markers before it begins another
            self.complete(found)
        found.state = "open"
        found.messages += messages
        found.notes.update(notes)

    def end(self, name: str, epoch: int, *, commits: bool) -> None:
        found = self._require_epoch(name, epoch)
        if found.state == "open":
            if commits:
                found.state = "decided"
            else:
                self.complete(found)

    def is_unstable(self, note: _Note) -> bool:
        return any(note in found.notes for found in self.transactions.values())

    def complete(self, found: _Transaction) -> None:
        """Writes the markers of a transaction: of a commit if that was decided, otherwise of an abort."""
        if found.state == "decided":
            self.topic += found.messages
            self.offsets.update(found.notes)
        found.state = "none"
        found.messages.clear()
        found.notes.clear()

    def _require_epoch(self, name: str, epoch: int) -> _Transaction:
        found = self.transactions[name]
        if found.epoch != epoch:
            raise _error("_FENCED", "the producer was fenced by a newer instance", fatal=True)
        return found

    def ask(self, what: str, effect: Callable[[], Any], *, changes: bool) -> Any:
        """A request, and the client's own retries."""
        try:
            return self.world.call(what, effect, changes=changes)
        except OSError as error:
            raise _error("_TIMED_OUT", str(error), retriable=True) from error


class _Producer:
    """What KafkaSink needs of a Producer. Messages are sent when it polls."""

    def __init__(self, kafka: Kafka, settings: Mapping[str, Any]) -> None:
        self._kafka = kafka
        self._name = settings["transactional.id"]
        self._report = settings["on_delivery"]
        self._epoch = -1
        self._has_failed = False
        self._queued: list[str] = []

    def init_transactions(self, timeout: float) -> None:
        self._epoch = self._ask("begin an epoch", lambda: self._kafka.begin_epoch(self._name))

    def begin_transaction(self) -> None:
        """The client tells nobody."""
        assert self._epoch >= 0

    def produce(self, topic: str, value: bytes) -> None:
        assert topic == _TOPIC
        self._queued.append(value.decode())

    def poll(self, timeout: float) -> None:
        messages, self._queued = self._queued, []
        if not messages:
            return
        try:
            self._ask(f"produce {len(messages)} messages", lambda: self._add(messages, {}))
        except KafkaException as error:
            self._has_failed = True
            failure = error.args[0]
            if failure.name() == "_TIMED_OUT":
                failure = KafkaError(KafkaError._MSG_TIMED_OUT, "the message timed out")
            message = SimpleNamespace(
                topic=lambda: _TOPIC,
                partition=lambda: 0,
                key=lambda: None,
                value=lambda: messages,
                timestamp=lambda: (1, 0),
            )
            self._report(failure, message)

    def send_offsets_to_transaction(
        self, positions: Sequence[Any], group: str, timeout: float
    ) -> None:
        self._require_delivered()
        notes = {(group, item.topic, item.partition): item.offset for item in positions}
        self._ask("send the note", lambda: self._add((), notes))

    def commit_transaction(self) -> None:
        self._require_delivered()
        self._ask("commit", lambda: self._kafka.end(self._name, self._epoch, commits=True))

    def abort_transaction(self) -> None:
        self._ask("abort", lambda: self._kafka.end(self._name, self._epoch, commits=False))
        self._has_failed = False

    def _add(self, messages: Sequence[str], notes: Mapping[_Note, int]) -> None:
        self._kafka.add(self._name, self._epoch, messages, notes)

    def _require_delivered(self) -> None:
        if self._has_failed:
            raise _error("_STATE", "a message was not delivered", txn_requires_abort=True)

    def _ask(self, what: str, effect: Callable[[], Any]) -> Any:
        return self._kafka.ask(what, effect, changes=True)


class _Consumer:
    """What KafkaSink needs of a Consumer: committed offsets, and the name of its group."""

    def __init__(self, kafka: Kafka, settings: Mapping[str, Any]) -> None:
        self._kafka = kafka
        self._group = settings["group.id"]
        self._reads_committed = settings.get("isolation.level") == "read_committed"

    def committed(self, partitions: Sequence[Any], timeout: float) -> list[Any]:
        def read() -> list[Any]:
            return [self._position(item.topic, item.partition) for item in partitions]

        found: list[Any] = self._kafka.ask("read the note", read, changes=False)
        return found

    def consumer_group_metadata(self) -> str:
        return str(self._group)

    def poll(self, timeout: float) -> None:
        """Waits. The coordinator may end a transaction in this time."""
        self._kafka.ask("wait for the coordinator", lambda: None, changes=False)
        if self._kafka.world.draw.random() < 0.2:
            self._kafka.happen()

    def close(self) -> None:
        """There is nothing to close."""

    def _position(self, topic: str, partition: int) -> Any:
        note = (self._group, topic, partition)
        error = None
        if self._reads_committed and self._kafka.is_unstable(note):
            error = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT, "a transaction is not complete")
        return SimpleNamespace(
            topic=topic,
            partition=partition,
            offset=self._kafka.offsets.get(note, -1001),
            error=error,
        )


class _AdminClient:
    """What KafkaSink needs of an AdminClient: the topics and their ids."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka

    def list_topics(self, timeout: float) -> Any:
        self._kafka.ask("list topics", lambda: None, changes=False)
        return SimpleNamespace(topics={_TOPIC: None, "__consumer_offsets": None})

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        self._kafka.ask("describe topics", lambda: None, changes=False)
        described: Future[Any] = Future()
        described.set_result(SimpleNamespace(topic_id="id"))
        return {_TOPIC: described}

    def poll(self, timeout: float) -> None:
        """All answers are there at once."""


def _error(name: str, text: str, **kind: bool) -> KafkaException:
    return KafkaException(KafkaError(getattr(KafkaError, name), text, **kind))
