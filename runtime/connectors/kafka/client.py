"""Clients of confluent-kafka: their settings, and errors that say what to do.

As in PyFlink, programs set properties with the names of Kafka's Java clients. confluent-kafka has the same names for
nearly all of them. Other names are translated here, or refused with an error.
"""

from __future__ import annotations

import contextvars
import logging
import re
import threading
import time
from concurrent.futures import Future, TimeoutError, wait  # noqa: A004 - not the built-in class in Python 3.10
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StreamError, imported, short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from opchain.runtime.types.type_variables import T

SERVERS = "bootstrap.servers"
GROUP = "group.id"
READ_COMMITTED = "read_committed"
"""The default of the property isolation.level."""
READ_UNCOMMITTED = "read_uncommitted"
API_TIMEOUT = "default.api.timeout.ms"
API_TIMEOUT_MS = 60_000
"""The default of the brokers' response time, as in the Java clients."""

_REQUEST_S = 15.0
"""The time in seconds after which a request is repeated."""

_REPEATS_S = 60.0
"""The time in seconds within which a line of librdkafka's log is not repeated."""


class _Once(logging.Filter):
    """Drops a line of librdkafka that was logged a short time before.

    A client that cannot connect logs the same line twenty times a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is new. The numbers of the client, its waiting time and its own suppressed lines make no difference."""
        line = _NUMBERS.sub("", record.getMessage())
        now = time.monotonic()
        is_new = now - self._logged.get(line, -_REPEATS_S) >= _REPEATS_S
        if is_new:
            self._logged[line] = now
        return is_new


_NUMBERS = re.compile(
    r"rdkafka#\w+-\d+|after \d+ms|#\S+(?= failed)|, \d+ identical error\(s\) suppressed"
)
_LOG = logging.getLogger("opchain.kafka")
_LOG.addFilter(_Once())

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
}
_WITHOUT_EFFECT = frozenset(
    {
        "auto.offset.reset",  # the offsets initializer decides
        "enable.auto.commit",  # offsets are committed when a checkpoint is complete
        "key.deserializer",
        "value.deserializer",
        "key.serializer",
        "value.serializer",
        "max.poll.records",
        "default.api.timeout.ms",
        "request.timeout.ms",
        "max.block.ms",
        "buffer.memory",
        "client.id.prefix",
        "partition.discovery.interval.ms",
        "commit.offsets.on.checkpoint",
        "register.consumer.metrics",
        "register.producer.metrics",
        "flink.partition-discovery.interval-millis",
        "flink.poll-timeout",
    }
)
_OF_CONSUMERS = (
    "check.crcs",
    "fetch.",
    "group.",
    "heartbeat.",
    "isolation.level",
    "max.partition.fetch.bytes",
    "max.poll.",
    "partition.assignment.",
    "queued.",
    "session.",
)
"""Prefixes of properties that only consumers have. Other clients print a warning for each of them."""
_JAAS = re.compile(r"(username|password)\s*=\s*(\"[^\"]*\"|'[^']*')")
_JKS = ("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type")
_SECRET = re.compile(r"password|secret|\.pem$|key$|jaas", re.IGNORECASE)


class KafkaConnectorError(StreamError):
    """Kafka can't be reached, refuses a request, or has lost messages that the source must read.

    What to do: Check `bootstrap.servers`, the topics and the permissions. Properties have the names of Kafka's Java
    clients or of librdkafka.
    """


def kafka_datasets(
    properties: Mapping[str, Any], topics: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """OpenLineage's namespace and name of topics."""
    first, _, _ = str(properties.get(SERVERS, "")).partition(",")
    return tuple((f"kafka://{first.strip()}", topic) for topic in topics)


def confluent_kafka() -> Any:
    """Imports confluent_kafka.

    Raises:
        MissingLibraryError: It is not installed.
    """
    return imported("confluent_kafka", "kafka", "The Kafka connector")


def client_settings(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Translates properties of Java clients to those of librdkafka.

    Raises:
        KafkaConnectorError: A property has no counterpart.
    """
    settings: dict[str, Any] = {}
    for name, value in properties.items():
        if name in _WITHOUT_EFFECT:
            continue
        if name == "sasl.jaas.config":
            settings.update(_login(str(value)))
        elif name in _JKS:
            settings.update(_truststore(name, value, properties))
        else:
            settings[_RENAMED.get(name, name)] = value
    return settings


def _login(text: str) -> dict[str, str]:
    found = {name: value[1:-1] for name, value in _JAAS.findall(text)}
    if found.keys() != {"username", "password"}:
        raise KafkaConnectorError(
            "the Kafka property sasl.jaas.config has no username and password; opchain reads those of "
            "PlainLoginModule and ScramLoginModule: set sasl.mechanism, sasl.username and sasl.password, or "
            "what librdkafka documents for another mechanism"
        )
    return {f"sasl.{name}": value for name, value in found.items()}


def _truststore(name: str, value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    if str(properties.get("ssl.truststore.type", "JKS")).upper() != "PEM":
        raise KafkaConnectorError(
            f"the Kafka property {name} names a truststore of Java, which Python can't read: export its "
            "certificates to a PEM file and set ssl.ca.location to that"
        )
    return {"ssl.ca.location": value} if name == "ssl.truststore.location" else {}


def connection_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The properties for the connection to the brokers and the login."""
    return {
        name: value
        for name, value in properties.items()
        if name == SERVERS or name.startswith(("sasl.", "ssl.", "security."))
    }


class ReportedErrors:
    """The errors that a client reports to its callbacks, such as the reason why it cannot connect."""

    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, error: Any) -> None:
        """Stores an error. "All brokers are down" gives no reason, so it does not replace an error with a reason."""
        if self.last is None or error.name() != "_ALL_BROKERS_DOWN":
            self.last = error

    def reason(self) -> str:
        """The stored error, for the end of a message."""
        return "" if self.last is None else f"; the client says: {self.last.str()}"


def make_client(
    kind: str, properties: Mapping[str, Any], fixed: Mapping[str, Any], where: str
) -> tuple[Any, ReportedErrors]:
    """Creates a client, and the object that stores its errors.

    Args:
        kind: Consumer, Producer or AdminClient.
        properties: The user's properties, with Java's names.
        fixed: Settings with librdkafka's names, which override the user's.
        where: The operator, for errors.

    Raises:
        KafkaConnectorError: A property is unknown or invalid.
    """
    library = confluent_kafka()
    if kind == "AdminClient":
        library = imported("confluent_kafka.admin", "kafka", "The Kafka connector")
    if kind != "Consumer":
        properties = {
            name: value for name, value in properties.items() if not name.startswith(_OF_CONSUMERS)
        }
    reported = ReportedErrors()
    settings = {**client_settings(properties), **fixed, "error_cb": reported}
    try:
        return getattr(library, kind)(settings, logger=_LOG), reported
    except (confluent_kafka().KafkaException, TypeError, ValueError) as error:
        shown = ", ".join(
            f"{name}={'***' if _SECRET.search(name) else short_repr(value)}"
            for name, value in sorted(properties.items())
        )
        raise KafkaConnectorError(
            f"{where}: the Kafka client refuses a property: {error_text(error)}. It was given {shown}. "
            "Correct it: names are those of Kafka's Java clients, or those of librdkafka's CONFIGURATION.md"
        ) from error


def error_text(error: BaseException) -> str:
    """The text of an error of confluent-kafka."""
    inner = error.args[0] if error.args else error
    text = inner.str() if hasattr(inner, "str") else str(inner)
    return " ".join(text.split())


def call_with_timeout(name: str, call: Callable[[], T], timeout_s: float) -> T:
    """Calls a function of the client that may not return, in a thread of its own. After the timeout, the thread is abandoned.

    Raises:
        KafkaException: The function has not returned in time.
        BaseException: The exception of the call.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised on the thread of the caller
            done.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name=name, daemon=True).start()
    try:
        return done.result(timeout_s)
    except TimeoutError:
        library = confluent_kafka()
        reason = f"{name} did not return within {timeout_s:g} s"
        raise library.KafkaException(
            library.KafkaError(library.KafkaError._TIMED_OUT, reason)  # noqa: SLF001 - public in spite of its name
        ) from None


class Brokers:
    """Sends requests to the brokers, on the driver. Not picklable.

    Attributes:
        client: The AdminClient.
        timeout_s: The maximum time until there is an answer, including retries.
        request_s: The maximum time of one request.
    """

    def __init__(self, properties: Mapping[str, Any], where: str) -> None:
        self.client, self._reported = make_client("AdminClient", properties, {}, where)
        self._properties = properties
        self._where = where
        self._servers = properties.get(SERVERS)
        self.timeout_s = float(properties.get(API_TIMEOUT, API_TIMEOUT_MS)) / 1000
        self.request_s = min(self.timeout_s, _REQUEST_S)

    def topics(self) -> list[str]:
        """The names of all topics.

        Raises:
            KafkaConnectorError: The brokers do not answer.
        """
        ends_at = time.monotonic() + self.timeout_s
        while True:
            left_s = max(_PAUSE_S, ends_at - time.monotonic())
            try:
                return list(self.client.list_topics(timeout=left_s).topics)
            except confluent_kafka().KafkaException as error:
                self.client.poll(_PAUSE_S)
                if name_of(error) not in _CHANGING or time.monotonic() > ends_at:
                    raise self._refused("list topics", error) from error

    def described(self, topics: Collection[str]) -> dict[str, Any]:
        """The TopicDescription of each topic. None for a topic that does not exist.

        Raises:
            KafkaConnectorError: The brokers do not answer, or refuse the request.
        """
        asked_for = confluent_kafka().TopicCollection(list(topics))
        return self.answers(
            "describe topics",
            lambda: self.client.describe_topics(
                asked_for, request_timeout=min(self.request_s, _DESCRIBE_S)
            ),
            passing="UNKNOWN_TOPIC_OR_PART",
        )

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """The ids of the topics that exist. A topic that was deleted and created again has another id.

        Raises:
            KafkaConnectorError: The brokers do not answer, or refuse the request.
        """
        found = self.described(sorted(topics)) if topics else {}
        return {topic: str(item.topic_id) for topic, item in found.items() if item is not None}

    def answers(
        self,
        what: str,
        request: Callable[[], Mapping[Any, Any]],
        passing: str | None = None,
        check: Callable[[], object] | None = None,
    ) -> dict[Any, Any]:
        """Sends a request and returns the answers. Repeats the request while a leader or coordinator changes.

        Args:
            what: The request, for errors: "list topics".
            request: Sends the request, and returns a future for each item.
            passing: The name of an error that is not a failure: the answer for the item is then None.
            check: Called when the brokers have not answered for some seconds. It may raise an error with the reason.

        Raises:
            KafkaConnectorError: The brokers cannot be reached, or refuse the request.
        """
        began_at = time.monotonic()
        ends_at = began_at + self.timeout_s
        while True:
            futures = request()
            self._wait(what, futures.values(), ends_at)
            errors = [error for error in map(_error_of, futures.values()) if error is not None]
            refused = [error for error in errors if name_of(error) != passing]
            if not refused:
                return {
                    thing: None if _error_of(future) else future.result()
                    for thing, future in futures.items()
                }
            if name_of(refused[0]) not in _CHANGING or time.monotonic() > ends_at:
                raise self._refused(what, refused[0]) from refused[0]
            if name_of(refused[0]) == "_TIMED_OUT":
                # A client keeps asking the same controller for minutes, even if that broker is dead. So a new client is
                # created.
                self.client, self._reported = make_client(
                    "AdminClient", self._properties, {}, self._where
                )
            if check is not None and time.monotonic() > began_at + _SETTLES_S:
                check()
            self.client.poll(_PAUSE_S)

    def committed(
        self,
        group: str,
        partitions: Iterable[tuple[str, int]],
        passing: Collection[str] = (),
        isolation_level: str = READ_COMMITTED,
    ) -> dict[tuple[str, int], int]:
        """The offsets that a group has committed. Partitions without a committed offset are omitted.

        It uses a consumer. The AdminClient could also ask, but it crashes with a segmentation fault while the
        coordinator of the group changes: https://github.com/confluentinc/librdkafka/issues/5040.

        Args:
            group: The group.
            partitions: The partitions.
            passing: Names of errors which only mean that the partition has no offset.
            isolation_level: With read_committed, the request waits for open transactions that commit an offset of the group.

        Raises:
            KafkaConnectorError: The brokers cannot be reached, or refuse the request.
        """
        library = confluent_kafka()
        wanted = [library.TopicPartition(topic, number) for topic, number in partitions]
        if not wanted:
            return {}
        properties = {**connection_properties(self._properties), GROUP: group}
        fixed = {"enable.auto.commit": False, "isolation.level": isolation_level}
        consumer, reported = make_client("Consumer", properties, fixed, self._where)
        ends_at = time.monotonic() + self.timeout_s
        try:
            while True:
                found, errors = [], []
                try:
                    found = consumer.committed(wanted, timeout=min(self.request_s, _COMMITTED_S))
                    errors = [item.error for item in found if item.error is not None]
                except library.KafkaException as error:
                    errors = [error.args[0]]
                refused = [error for error in errors if error.name() not in passing]
                if not refused:
                    return {
                        (item.topic, item.partition): item.offset
                        for item in found
                        if item.error is None and item.offset >= 0
                    }
                consumer.poll(_PAUSE_S)  # reports a failed login
                is_final = reported.last is not None and name_of(reported.last) in _FINAL
                is_passing = refused[0].name() in _CHANGING and time.monotonic() < ends_at
                if is_final or not is_passing:
                    failure = library.KafkaException(reported.last if is_final else refused[0])
                    what = f"ask for the offsets of group {group}"
                    raise self._refused(what, failure, reported)
        finally:
            consumer.close()

    def _wait(self, what: str, futures: Collection[Any], ends_at: float) -> None:
        """Waits for answers, but not after a failed login."""
        waiting = set(futures)
        while waiting and time.monotonic() < ends_at + 1:
            # Not in poll(): while a request is open, poll() loses the KeyboardInterrupt of Ctrl-C.
            waiting = wait(waiting, timeout=_PAUSE_S).not_done
            self.client.poll(0)
            if self._reported.last is not None and name_of(self._reported.last) in _FINAL:
                raise self._refused(what, confluent_kafka().KafkaException(self._reported.last))

    def _refused(
        self, what: str, error: BaseException, reported: ReportedErrors | None = None
    ) -> KafkaConnectorError:
        reported = reported or self._reported
        return KafkaConnectorError(
            f"{self._where} can't {what} (bootstrap.servers={self._servers}): {error_text(error)}"
            f"{reported.reason()}{advice(error, reported)}"
        )


def _error_of(future: Any) -> BaseException | None:
    """The error of an answer, or None. An offset that the client has not set counts as an error.

    The client answers so, without an error, if the broker ends during the request.
    """
    library = confluent_kafka()
    error: BaseException | None = future.exception()
    if error is None and getattr(future.result(), "offset", None) == library.OFFSET_INVALID:
        return library.KafkaException(library.KafkaError(library.KafkaError.OFFSET_NOT_AVAILABLE))  # type: ignore[no-any-return]
    return error


def name_of(error: Any) -> str:
    """The name of an error of confluent-kafka, such as "_TRANSPORT". Empty for other exceptions."""
    inner = error.args[0] if isinstance(error, BaseException) and error.args else error
    return inner.name() if hasattr(inner, "name") else ""


_PAUSE_S = 0.1
_DESCRIBE_S = 5.0
_COMMITTED_S = 5.0
_SETTLES_S = 5.0
"""For this time in seconds, brokers may disagree about a new topic."""
_FINAL = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"})
_CHANGING = frozenset(
    {
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "REPLICA_NOT_AVAILABLE",
        "OFFSET_NOT_AVAILABLE",  # a new leader does not know yet which messages are replicated
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "LISTENER_NOT_FOUND",
        "NETWORK_EXCEPTION",
        "KAFKA_STORAGE_ERROR",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "NOT_CONTROLLER",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PART",
        "UNSTABLE_OFFSET_COMMIT",
        "_UNKNOWN_PARTITION",
        "_TIMED_OUT",
        "_TRANSPORT",  # the broker has ended during the request
        "_WAIT_COORD",
        "_NOENT",
    }
)
"""Errors that pass when the brokers agree on the leaders, or when a broker has started again. Java clients retry, too."""

_ADVICE = {
    "_AUTHENTICATION": "check sasl.mechanism, sasl.username, sasl.password and security.protocol",
    "SASL_AUTHENTICATION_FAILED": "check sasl.mechanism, sasl.username and sasl.password",
    "_TRANSPORT": "check bootstrap.servers, security.protocol, and that the brokers run",
    "_TIMED_OUT": "check bootstrap.servers, security.protocol, and that the brokers run",
    "_ALL_BROKERS_DOWN": "check bootstrap.servers, security.protocol, and that the brokers run",
    "_RESOLVE": "check the host names in bootstrap.servers",
    "_SSL": "check security.protocol and the ssl.* properties",
    "TOPIC_AUTHORIZATION_FAILED": "let the user read or write the topic",
    "GROUP_AUTHORIZATION_FAILED": "let the user read the group",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "let the user write under the transactional id",
    "CLUSTER_AUTHORIZATION_FAILED": "let the user write idempotently",
    "_NOT_IMPLEMENTED": "the client on this machine does not support this compression codec",
    "_BAD_COMPRESSION": "the record is damaged, or compressed with a codec that the client does not support",
    "UNSUPPORTED_COMPRESSION_TYPE": "choose another compression.type",
    "UNKNOWN_TOPIC_OR_PART": "create the topic, or correct its name",
    "_UNKNOWN_TOPIC": "create the topic, or correct its name",
    "_UNKNOWN_PARTITION": "the topic has fewer partitions: correct the partitioner",
    "INVALID_TIMESTAMP": (
        "the event time of a record is too far in the future or in the past: correct it, or raise "
        "message.timestamp.after.max.ms or message.timestamp.before.max.ms of the topic"
    ),
    "MSG_SIZE_TOO_LARGE": "raise max.request.size here and max.message.bytes of the topic",
}


def advice(error: Any, reported: ReportedErrors | None = None) -> str:
    """The advice for an error, for the end of a message."""
    names = [name_of(error)]
    if reported is not None and reported.last is not None:
        names.insert(0, reported.last.name())
    return next((f": {_ADVICE[name]}" for name in names if name in _ADVICE), "")
