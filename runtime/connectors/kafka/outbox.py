"""The outbox of a KafkaSink: messages are staged in the checkpoint directory, and sent when the checkpoint is complete.

Tasks write the messages of an epoch to files. When the checkpoint is complete, the driver sends them in transactions.
Each transaction also commits an offset for a group of the sink. This offset is a *note*: it encodes the epoch, and how
many pieces of the epoch were sent. Kafka commits both or neither. A repeated commit reads the note, and skips what was
sent.

No transaction is open between two checkpoints. So no transaction with messages times out, none must be found again by
its id after a failure, and readers are not blocked. Flink's KafkaSink keeps transactions open from one checkpoint to
the next.

Rejected: one transaction per subtask. With a single transaction, the messages of an epoch become visible at the same
time, if they fit into one piece. And the driver, which decides on commits, depends on no other process.
"""

from __future__ import annotations

import marshal
import time
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.kafka.client import (
    GROUP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    SERVERS,
    Brokers,
    KafkaConnectorError,
    advice,
    call_with_timeout,
    confluent_kafka,
    connection_properties,
    error_text,
    make_client,
)
from opchain.runtime.connectors.kafka.producer import (
    Columns,
    Failures,
    Serializer,
    producer_settings,
    send,
    size_of,
)
from opchain.runtime.connectors.outbox import OutboxFile as StagedFile
from opchain.runtime.connectors.outbox import delete_file, put_chunk, read_chunk
from opchain.runtime.errors import ALLOW_NON_RESTORED_STATE
from opchain.runtime.files.file_systems import file_system_of, joined, qualified_path
from opchain.runtime.functions.sink import BatchSinkWriter, Committer, SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


CHUNK_BYTES = 4 << 20
"""The maximum size of a file of the outbox."""

PIECE_BYTES = 64 << 20
"""The maximum size of a transaction. It must end within transaction.timeout.ms of the client, a minute."""

_PIECES = 1_000_000
"""A note is the offset checkpoint * _PIECES + number of sent pieces."""

_ATTEMPTS = 3
_GRACE_S = 2.0
"""The time after its timeout in which the client should report an error of its own."""

_NOTE_MS = 6 * 24 * 3600 * 1000
"""The age at which a note may be lost: brokers delete the offsets of a group 7 days after its last commit."""

_FORMAT = 4
"""The version of marshal, which all Pythons since 3.4 can read. Unlike pickle, marshal only creates plain values."""


class StagedMessages(NamedTuple):
    """The messages of a subtask before a checkpoint: the committable of a KafkaSink.

    `chunks` are files or, in a job without checkpoints, the messages themselves. `topic_ids` has the topics that
    existed. With it the driver detects a topic that was deleted and created again. `transactional_id` is that of the
    program that wrote the messages: a later program may have another prefix.
    """

    lineage: str
    operator_id: str
    where: str
    checkpoint_id: int | None
    messages: int
    chunks: tuple[StagedFile | bytes, ...]
    staged_ms: int
    topic_ids: tuple[tuple[str, str], ...] = ()
    transactional_id: str = ""


class OutboxWriter(BatchSinkWriter[Any]):
    """The writer of one subtask."""

    def __init__(
        self,
        serializer: Serializer,
        properties: Mapping[str, Any],
        origin: SinkOrigin,
        staging: str | None,
        prefix: str,
    ) -> None:
        self._serializer = serializer
        self._properties = properties
        self._prefix = prefix
        self._origin = origin
        self._folder = None if staging is None else _folder(staging, origin)
        self._messages: list[Columns] = []
        self._size = self._count = 0
        self._chunks: list[StagedFile | bytes] = []
        self._topics: set[str] = set()
        self._topic_ids: dict[str, str] = {}

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Writes a batch."""
        messages = self._serializer(values, timestamps)
        self._messages += messages
        self._size += sum(map(size_of, messages))
        if self._size >= CHUNK_BYTES:
            self._put()

    def flush(self, *, end_of_input: bool) -> None:  # noqa: ARG002 - messages wait in both cases
        """Stores all buffered messages."""
        if self._messages:
            self._put()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[StagedMessages]:
        """The messages since the last checkpoint."""
        if not self._chunks:
            return ()
        origin = self._origin
        staged = StagedMessages(
            *(origin.lineage, origin.operator_id, origin.where, checkpoint_id),
            *(self._count, tuple(self._chunks), _now_ms(), self._ids()),
            _transactional_id(self._prefix, origin.operator_id, origin.lineage),
        )
        self._chunks, self._count = [], 0
        self._topics.clear()
        return (staged,)

    def _ids(self) -> tuple[tuple[str, str], ...]:
        """The ids of the topics of this checkpoint, when this task first wrote to them."""
        unknown = self._topics - self._topic_ids.keys()
        if unknown:
            brokers = Brokers(self._properties, self._origin.where)
            self._topic_ids.update(brokers.topic_ids(unknown))
        there = self._topics & self._topic_ids.keys()
        return tuple(sorted((topic, self._topic_ids[topic]) for topic in there))

    def _put(self) -> None:
        data = marshal.dumps(self._messages, _FORMAT)
        if self._folder is None:
            self._chunks.append(data)
        else:
            self._chunks.append(put_chunk(self._folder, data))
        self._count += sum(len(messages[2]) for messages in self._messages)
        self._topics.update(messages[0] for messages in self._messages)
        self._messages, self._size = [], 0


class OutboxCommitter(Committer):
    """Sends on the driver. Each sink has one producer, which is reused for later checkpoints.

    Args:
        properties: The properties of the producer.
        prefix: The prefix of the transactional id.
        staging: The staging folder that the user has set. None: the job's.
        senders: Producers of earlier commits, by transactional id. Those of this commit are added.
    """

    committable = StagedMessages

    def __init__(
        self,
        properties: Mapping[str, Any],
        prefix: str,
        staging: str | None,
        senders: dict[str, _Sender],
    ) -> None:
        self._properties = properties
        self._prefix = prefix
        self._staging = staging
        self._senders = senders

    def commit(self, committables: Sequence[StagedMessages]) -> None:
        """Sends the messages of each checkpoint that were not sent before.

        Raises:
            KafkaConnectorError: The brokers cannot be reached or refuse messages, or staged messages are missing.
        """
        for _, staged in groupby(committables, key=lambda item: item[:4]):
            found = list(staged)
            self._commit(found)
            for chunk in (chunk for item in found for chunk in item.chunks):
                if isinstance(chunk, StagedFile):
                    delete_file(chunk.path)

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes the files of the sink. The files of committed epochs were removed before."""
        staging = self._staging or origin.staging
        if staging is None:
            return
        folder = _folder(staging, origin)
        content = file_system_of(folder).content(folder)
        if content is not None and content.files:
            confirm()
            for file in content.files:
                delete_file(file.path)

    def last_commit(self, origin: SinkOrigin) -> int | None:
        """The checkpoint of the note."""
        note = max(self._notes_of(origin).values(), default=None)
        return None if note is None else note // _PIECES

    def reset_commits(self, origin: SinkOrigin, checkpoint_id: int) -> None:
        """Lowers the note to the end of this checkpoint."""
        topics = self._later_topics(origin, checkpoint_id)
        if not topics:
            return
        name = self._name_of(origin)
        sender = _Sender(name, self._properties, origin.where)
        try:
            sender.reset(topics, _end_of(checkpoint_id))
        except confluent_kafka().KafkaException as error:
            raise sender.explained(error) from error
        self._senders[name] = sender  # an earlier one remembers the later note

    def how_to_reset(self, origin: SinkOrigin, checkpoint_id: int) -> str:
        """The offsets to commit. Kafka's command-line tools can't, because a note is beyond the end of its topic."""
        note = _end_of(checkpoint_id)
        offsets = ", ".join(
            f"TopicPartition({topic!r}, 0, {note})"
            for topic in self._later_topics(origin, checkpoint_id)
        )
        return (
            "in Python, with confluent_kafka and the properties of the sink, "
            f"Consumer({{'bootstrap.servers': {self._properties.get(SERVERS)!r}, 'group.id': {self._name_of(origin)!r}}})"
            f".commit(offsets=[{offsets}], asynchronous=False)"
        )

    def _later_topics(self, origin: SinkOrigin, checkpoint_id: int) -> list[str]:
        """The topics with a note of a later checkpoint."""
        notes = self._notes_of(origin).items()
        return sorted(topic for topic, note in notes if note > _end_of(checkpoint_id))

    def _notes_of(self, origin: SinkOrigin) -> dict[str, int]:
        # A killed driver may have left its transaction open. Such a transaction has no note of a later checkpoint.
        brokers = Brokers(self._properties, origin.where)
        return _notes(brokers, self._name_of(origin), READ_UNCOMMITTED)

    def _name_of(self, origin: SinkOrigin) -> str:
        return _transactional_id(self._prefix, origin.operator_id, origin.lineage)

    def _commit(self, staged: Sequence[StagedMessages]) -> None:
        first = staged[0]
        name = first.transactional_id or _transactional_id(
            self._prefix, first.operator_id, first.lineage
        )
        library = confluent_kafka()
        for attempt in range(_ATTEMPTS):
            # A sender is not reused after a failure. The next sender reads the note again.
            used = self._senders.pop(name, None)
            sender = used or _Sender(name, self._properties, first.where)
            try:
                sender.send(staged)
            except KafkaConnectorError:
                if used is None:
                    raise
            except library.KafkaException as error:
                failure = error
                # The note of a used sender is old if another process has continued the job since.
                if attempt + 1 < _ATTEMPTS and (used is not None or not sender.is_final(error)):
                    continue
                raise sender.explained(failure) from failure
            else:
                self._senders[name] = sender
                return


class _Sender:
    """A producer. From its start on, no other producer can use the sink's transactional id."""

    def __init__(self, name: str, properties: Mapping[str, Any], where: str) -> None:
        self._name = name
        self._where = where
        self._properties = properties
        self._brokers = Brokers(properties, where)
        self._failures = Failures()
        settings = {**producer_settings(properties), "transactional.id": name}
        fixed = {"on_delivery": self._failures, "delivery.report.only.error": True}
        self._producer, self._reported = make_client("Producer", settings, fixed, where)
        self._has_begun = False
        self._note: int | None = None
        self._group_metadata: Any = None

    def send(self, staged: Sequence[StagedMessages]) -> None:
        """Sends the pieces that are not in the note.

        Raises:
            KafkaException: An error of confluent-kafka.
        """
        first = staged[0]
        if not self._has_begun:
            self._begin()
            self._note = max(_notes(self._brokers, self._name).values(), default=None)
        epoch = (first.checkpoint_id or 0) * _PIECES
        self._require_note(first, self._note)
        sent = False
        for number, piece in enumerate(_pieces(staged), epoch + 1):
            if self._note is None or self._note < number:
                if not sent:
                    self._require_same_topics(staged)
                self._send_piece(piece, number)
                self._note, sent = number, True
        if sent:  # the broker may have created the topic again in the meantime
            self._require_same_topics(staged)

    def reset(self, topics: Sequence[str], note: int) -> None:
        """Sets the notes of topics.

        Raises:
            KafkaException: An error of confluent-kafka.
        """
        self._begin()
        self._producer.begin_transaction()
        self._send_note(topics, note)
        self._producer.commit_transaction()
        self._note = note

    def _begin(self) -> None:
        """Ends the transaction of an earlier producer with this id. Afterwards, only this producer can change the note."""
        self._producer.init_transactions(self._brokers.timeout_s)
        self._has_begun = True

    def _require_same_topics(self, staged: Sequence[StagedMessages]) -> None:
        """Raises an error if a topic is not the one that the tasks have seen: its messages are lost."""
        expected = sorted({pair for item in staged for pair in item.topic_ids})
        found = self._brokers.topic_ids({topic for topic, _ in expected})
        for topic, topic_id in expected:
            if found.get(topic) != topic_id:
                what = "deleted and created again" if topic in found else "deleted"
                raise KafkaConnectorError(
                    f"{self._where}: topic {topic} was {what} while the sink wrote to it. Its messages are lost. To "
                    "write all of them again, start the job with a new directory of checkpoints. To continue without "
                    f"them, create the topic, give the sink another uid and {ALLOW_NON_RESTORED_STATE}"
                )

    def _send_piece(self, piece: Sequence[StagedFile | bytes], note: int) -> None:
        library = confluent_kafka()
        # Plain values, whose checksum is part of the checkpoint.
        chunks = [marshal.loads(self._read(chunk)) for chunk in piece]  # noqa: S302
        topic = chunks[0][0][0]
        self._producer.begin_transaction()
        try:
            for messages in chunks:
                send(self._producer, messages, self._failures)
                self._failures.require_none()
            self._send_note([topic], note)
            self._producer.commit_transaction()
        except library.KafkaException as error:
            if self._failures.first is not None or error.args[0].txn_requires_abort():
                self._producer.abort_transaction()
            raise

    def _send_note(self, topics: Sequence[str], note: int) -> None:
        place = confluent_kafka().TopicPartition
        # Not longer: each sink of the job may wait in turn. A new producer waits for the brokers while it begins.
        offsets, timeout_s = [place(topic, 0, note) for topic in topics], self._brokers.request_s
        arguments = (offsets, self._group(), timeout_s)
        # If a broker restarts during this call, the client ignores the timeout: https://github.com/confluentinc/librdkafka/issues/5456
        call_with_timeout(
            "send_offsets_to_transaction",
            lambda: self._producer.send_offsets_to_transaction(*arguments),
            timeout_s + _GRACE_S,
        )

    def _read(self, chunk: StagedFile | bytes) -> bytes:
        if isinstance(chunk, bytes):
            return chunk
        try:
            return read_chunk(chunk)
        except FileNotFoundError as error:
            raise self._lost(chunk, "is missing") from error
        except ValueError as error:
            raise self._lost(chunk, str(error)) from error

    def _lost(self, chunk: StagedFile, problem: str) -> KafkaConnectorError:
        note = f", and the brokers have no note of group {self._name} that they were sent"
        return KafkaConnectorError(
            f"{self._where}: messages that wait for their commit can't be read: {chunk.path} {problem}"
            f"{note if self._note is None else ''}. Restore the file, start the job from an earlier checkpoint, or "
            "correct bootstrap.servers if the checkpoint was made with another cluster"
        )

    def _group(self) -> Any:
        """The group metadata for the note. They come from a consumer, which needs no connection for this."""
        if self._group_metadata is None:
            properties = {**connection_properties(self._properties), GROUP: self._name}
            consumer, _ = make_client("Consumer", properties, {}, self._where)
            self._group_metadata = consumer.consumer_group_metadata()
            consumer.close()
        return self._group_metadata

    def _require_note(self, first: StagedMessages, note: int | None) -> None:
        """Raises an error if the note may have expired."""
        if (
            note is None
            and first.checkpoint_id is not None
            and _now_ms() - first.staged_ms > _NOTE_MS
        ):
            raise KafkaConnectorError(
                f"{self._where}: the messages of checkpoint {first.checkpoint_id} were written more than 6 days ago, "
                f"and group {self._name} does not say whether they were sent: brokers delete this note after a week. "
                "Check whether the topic has the messages. If it does, remove the folder 'outbox' of the checkpoints, "
                f"give the sink another uid and {ALLOW_NON_RESTORED_STATE}; if not, start from an earlier checkpoint"
            )

    def is_final(self, error: Any) -> bool:
        """Whether a retry would also fail: a message was refused, or another producer has taken over the id."""
        inner = error.args[0]
        return self._failures.first is not None or inner.name() in (
            *("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "_AUTHENTICATION"),
            *("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
        )

    def explained(self, error: Any) -> KafkaConnectorError:
        """The error for the user."""
        if self._failures.first is not None:
            return self._failures.explained(self._where)
        inner = error.args[0]
        if inner.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
            return KafkaConnectorError(
                f"{self._where}: another producer has taken over the transactional id {self._name}, or the brokers "
                "have aborted the transaction because it took longer than transaction.timeout.ms. If another run of the "
                "job has its checkpoints, this run must stop. If not, start the job again: it sends the missing messages"
            )
        return KafkaConnectorError(
            f"{self._where} can't send in a transaction ({self._name}): {error_text(error)}{self._reported.reason()}"
            f"{advice(error, self._reported)}"
        )


def _notes(brokers: Brokers, group: str, isolation_level: str = READ_COMMITTED) -> dict[str, int]:
    """The notes of a sink, by topic: each has the last epoch and piece whose first message went to the topic.

    A note is the offset of partition 0. The greatest note counts.
    """
    topics = [topic for topic in brokers.topics() if not topic.startswith("__")]
    passing = ("TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION")
    found = brokers.committed(group, [(topic, 0) for topic in topics], passing, isolation_level)
    return {topic: note for (topic, _), note in found.items()}


def _end_of(checkpoint_id: int) -> int:
    """The note after all pieces of a checkpoint."""
    return (checkpoint_id + 1) * _PIECES - 1


def _pieces(staged: Sequence[StagedMessages]) -> Iterator[list[StagedFile | bytes]]:
    """Splits the chunks of all subtasks, in order, into transactions. The result is the same in every attempt."""
    piece: list[StagedFile | bytes] = []
    size = 0
    for chunk in (chunk for item in staged for chunk in item.chunks):
        chunk_size = chunk.size if isinstance(chunk, StagedFile) else len(chunk)
        if piece and size + chunk_size > PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(chunk)
        size += chunk_size
    if piece:
        yield piece


def _transactional_id(prefix: str, operator_id: str, lineage: str) -> str:
    return f"{prefix}-{operator_id[:16]}-{lineage[:16]}"


def _folder(staging: str, origin: SinkOrigin) -> str:
    return joined(qualified_path(staging), origin.operator_id, origin.lineage)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
