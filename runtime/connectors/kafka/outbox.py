"""The outbox of a KafkaSink: messages wait beside the checkpoint, and are sent when it is complete.

Tasks keep the messages of an epoch in files of the job's checkpoints. When the checkpoint is complete, the driver
sends them in transactions. Each transaction also commits an offset for a group of the sink's own: the note that
says which epoch, and which piece of it, was sent. Kafka takes both or neither. So a commit that is repeated reads the
note and skips what was sent.

No transaction is open between two checkpoints: none can time out with messages in it, none has to be found again by
its id after a failure, and readers are not held back. Flink's KafkaSink keeps transactions open from one checkpoint to
the next one.

Rejected: one transaction for each subtask. With one for all, the messages of an epoch show at the same moment,
as long as they fit into one piece; and the driver, which decides what counts, needs nobody's help.
"""

from __future__ import annotations

import marshal
import time
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.kafka.client import (
    GROUP,
    Brokers,
    KafkaConnectorError,
    advice,
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
from opchain.runtime.files.file_systems import file_system_of, joined, qualified_path
from opchain.runtime.functions.sink import Committer, SinkOrigin, SinkWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


CHUNK_BYTES = 4 << 20
"""How large a file of the outbox gets."""

PIECE_BYTES = 64 << 20
"""How much one transaction sends: it has to end within the client's transaction.timeout.ms, a minute."""

_PIECES = 1_000_000
"""A note is the offset checkpoint * _PIECES + pieces sent."""

_ATTEMPTS = 3
_NOTE_MS = 6 * 24 * 3600 * 1000
"""Brokers forget the offsets of a group after 7 days without a commit (offsets.retention.minutes)."""

_FORMAT = 4
"""Of marshal: what all Pythons from 3.4 on read. Unlike pickle, it only makes plain values."""


class StagedMessages(NamedTuple):
    """The messages of a subtask before a checkpoint: the committable of a KafkaSink.

    `chunks` are files, or the messages themselves in a job without checkpoints. `topic_ids` has the topics that
    existed, so that the driver notices one that was deleted and created again.
    """

    lineage: str
    operator_id: str
    where: str
    checkpoint_id: int | None
    messages: int
    chunks: tuple[StagedFile | bytes, ...]
    staged_ms: int
    topic_ids: tuple[tuple[str, str], ...] = ()


class OutboxWriter(SinkWriter[Any]):
    """The writer of one subtask."""

    def __init__(
        self,
        serializer: Serializer,
        properties: Mapping[str, Any],
        origin: SinkOrigin,
        staging: str | None,
    ) -> None:
        self._serializer = serializer
        self._properties = properties
        self._origin = origin
        self._folder = None if staging is None else _folder(staging, origin)
        self._messages: list[Columns] = []
        self._size = self._count = 0
        self._chunks: list[StagedFile | bytes] = []
        self._topics: set[str] = set()
        self._topic_ids: dict[str, str] = {}

    def write(self, value: Any, timestamp: int | None) -> None:
        """Takes one record."""
        self.write_batch([value], [timestamp])

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Takes a batch."""
        messages = self._serializer(values, timestamps)
        self._messages += messages
        self._size += sum(map(size_of, messages))
        if self._size >= CHUNK_BYTES:
            self._put()

    def flush(self, *, end_of_input: bool) -> None:  # noqa: ARG002 - messages wait in both cases
        """Stores what was written."""
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
        )
        self._chunks, self._count = [], 0
        self._topics.clear()
        return (staged,)

    def _ids(self) -> tuple[tuple[str, str], ...]:
        """The ids of the topics of this checkpoint, as they were when this task first saw them."""
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
    """Sends on the driver, with one producer for each sink, which stays for later checkpoints.

    Args:
        properties: The producer's.
        prefix: Begins the transactional id.
        staging: The folder that the user has chosen for what waits; None for the job's.
        senders: Producers from earlier commits, by transactional id. Those of this commit are added.
    """

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
            KafkaConnectorError: The brokers can't be reached or refuse, or staged messages are gone.
        """
        for _, staged in groupby(committables, key=lambda item: item[:4]):
            found = list(staged)
            self._commit(found)
            for chunk in (chunk for item in found for chunk in item.chunks):
                if isinstance(chunk, StagedFile):
                    delete_file(chunk.path)

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes the files of the sink. Files of committed epochs were removed before."""
        staging = self._staging or origin.staging
        if staging is None:
            return
        folder = _folder(staging, origin)
        content = file_system_of(folder).content(folder)
        if content is not None and content.files:
            confirm()
            for file in content.files:
                delete_file(file.path)

    def _commit(self, staged: Sequence[StagedMessages]) -> None:
        first = staged[0]
        name = f"{self._prefix}-{first.operator_id[:16]}-{first.lineage[:16]}"
        library = confluent_kafka()
        for attempt in range(_ATTEMPTS):
            # A sender that fails is not used again: the next one asks for the note.
            sender = self._senders.pop(name, None) or _Sender(name, self._properties, first.where)
            try:
                sender.send(staged)
            except library.KafkaException as error:
                failure = error
                if attempt + 1 < _ATTEMPTS and not sender.is_final(error):
                    continue
                raise sender.explained(failure) from failure
            else:
                self._senders[name] = sender
                return


class _Sender:
    """One producer, which has the sink's transactional id to itself from its start on."""

    def __init__(self, name: str, properties: Mapping[str, Any], where: str) -> None:
        self._name = name
        self._where = where
        self._properties = properties
        self._brokers = Brokers(properties, where)
        self._failures = Failures()
        settings = {**producer_settings(properties), "transactional.id": name}
        fixed = {"on_delivery": self._failures, "delivery.report.only.error": True}
        self._producer, self._heard = make_client("Producer", settings, fixed, where)
        self._has_begun = False
        self._note: int | None = None
        self._group_metadata: Any = None

    def send(self, staged: Sequence[StagedMessages]) -> None:
        """Sends what the note does not have.

        Raises:
            KafkaException: The library's.
        """
        first = staged[0]
        if not self._has_begun:
            # Ends what an earlier producer of this id has begun: after that only this one changes the note.
            self._producer.init_transactions(self._brokers.timeout_s)
            self._note = self._noted()
            self._has_begun = True
        epoch = (first.checkpoint_id or 0) * _PIECES
        self._require_note(first, self._note)
        sent = False
        for number, piece in enumerate(_pieces(staged), epoch + 1):
            if self._note is None or self._note < number:
                if not sent:
                    self._require_same_topics(staged)
                self._send_piece(piece, number)
                self._note, sent = number, True
        if sent:  # the broker may have created a topic again in the meantime
            self._require_same_topics(staged)

    def _require_same_topics(self, staged: Sequence[StagedMessages]) -> None:
        """Raises if a topic is not the one that the tasks have seen: its messages are gone."""
        expected = sorted({pair for item in staged for pair in item.topic_ids})
        found = self._brokers.topic_ids({topic for topic, _ in expected})
        for topic, topic_id in expected:
            if found.get(topic) != topic_id:
                what = "deleted and created again" if topic in found else "deleted"
                raise KafkaConnectorError(
                    f"{self._where}: topic {topic} was {what} while the sink wrote to it. The messages that it held "
                    "are gone. To write all of them again, start the job with a new directory of checkpoints. To "
                    "go on without them, create the topic, give the sink another uid and allow non-restored state"
                )

    def _send_piece(self, piece: Sequence[StagedFile | bytes], note: int) -> None:
        library = confluent_kafka()
        # Plain values, and checked by the checkpoint's checksum.
        chunks = [marshal.loads(self._read(chunk)) for chunk in piece]  # noqa: S302
        topic = chunks[0][0][0]
        self._producer.begin_transaction()
        try:
            for messages in chunks:
                send(self._producer, messages, self._failures)
            self._producer.send_offsets_to_transaction(
                [library.TopicPartition(topic, 0, note)], self._group(), self._brokers.timeout_s
            )
            self._producer.commit_transaction()
        except library.KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._producer.abort_transaction()
            raise

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
        return KafkaConnectorError(
            f"{self._where}: messages that wait for their commit can't be read: {chunk.path} {problem}. The rest of "
            "that checkpoint was not sent; restore the file, or start the job from an earlier checkpoint"
        )

    def _group(self) -> Any:
        """The group of the note, as the producer wants it: from a consumer, which needs no connection for it."""
        if self._group_metadata is None:
            properties = {**connection_properties(self._properties), GROUP: self._name}
            consumer, _ = make_client("Consumer", properties, {}, self._where)
            self._group_metadata = consumer.consumer_group_metadata()
            consumer.close()
        return self._group_metadata

    def _noted(self) -> int | None:
        """The last epoch and piece that were sent; None where nothing is noted.

        A note is an offset of partition 0 of whatever topic the first message of its piece went to.
        """
        topics = [topic for topic in self._brokers.topics() if not topic.startswith("__")]
        passing = ("TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION")
        notes = self._brokers.committed(self._name, [(topic, 0) for topic in topics], passing)
        return max(notes.values(), default=None)

    def _require_note(self, first: StagedMessages, note: int | None) -> None:
        """Refuses to guess where a note may have expired."""
        if (
            note is None
            and first.checkpoint_id is not None
            and _now_ms() - first.staged_ms > _NOTE_MS
        ):
            raise KafkaConnectorError(
                f"{self._where}: the messages of checkpoint {first.checkpoint_id} were written more than 6 days ago, "
                f"and group {self._name} has no note of what was sent: brokers forget notes after a week. Look in the "
                "topic whether they are there. If they are, remove the folder 'outbox' of the checkpoints and allow "
                "non-restored state under another uid of the sink; if not, start from an earlier checkpoint"
            )

    def is_final(self, error: Any) -> bool:
        """Whether another attempt would fail, too: a message was refused, or another producer has the id."""
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
                "job has its checkpoints, this run must stop. If not, start the job again: it sends what is missing"
            )
        return KafkaConnectorError(
            f"{self._where} can't send in a transaction ({self._name}): {error_text(error)}{self._heard.reason()}"
            f"{advice(error, self._heard)}"
        )


def _pieces(staged: Sequence[StagedMessages]) -> Iterator[list[StagedFile | bytes]]:
    """The chunks of all subtasks in order, cut into transactions; the same each time."""
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


def _folder(staging: str, origin: SinkOrigin) -> str:
    return joined(qualified_path(staging), origin.operator_id, origin.lineage)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
