"""RedisSink, HttpSink and ElasticsearchSink: sinks for targets that recognize repeated requests.

Each is an OutboxSink: the driver sends the records of an epoch when its checkpoint is complete.

- Redis: one MULTI/EXEC runs the commands and notes the epoch, so each command runs once.
- HTTP: each request has an Idempotency-Key. A server that accepts a key once counts each record once.
- Elasticsearch and OpenSearch: each document has an id, so a document that is sent again replaces itself.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.outbox import OutboxSink, place_of
from opchain.runtime.errors import SinkError, imported, short_repr
from opchain.runtime.redaction import redacted_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHOWN = 300


class RedisSink(OutboxSink[Any]):
    """Runs commands of Redis with each record, exactly once. Not in Flink.

    Redis does not undo a transaction if one of its commands fails, because a key has another type for example. The job then
    fails and names the command. It is not repeated, since the other commands ran.

    Needs redis: `pip install 'opchain[redis]'`. A key `opchain:<sink>` notes the last epoch; do not delete it while the job
    exists. Redis Cluster is not supported, since its transactions have one slot.

    >>> sink = RedisSink("redis://localhost", lambda record: [("HINCRBY", "counts", record[0], record[1])])

    Args:
        url: `redis://[user:password@]host:port/database`.
        commands: Returns the commands for a record: tuples of the command's name and its arguments.
    """

    def __init__(self, url: str, commands: Callable[[Any], Sequence[tuple[Any, ...]]]) -> None:
        self.url = url
        self.commands = commands

    def __repr__(self) -> str:
        return f"RedisSink({redacted_url(self.url)!r})"

    def send(self, key: str, records: Sequence[Any]) -> None:
        """Runs the commands in one transaction, unless the note says that they ran.

        Raises:
            SinkError: Redis refuses a command, or can't be reached.
        """
        library = imported("redis", "redis", "RedisSink")
        owner, number, piece = place_of(key)
        note = f"opchain:{owner}"
        with library.Redis.from_url(self.url) as client:
            try:
                with client.pipeline(transaction=True) as transaction:
                    transaction.watch(note)
                    if _is_noted(transaction.get(note), number, piece):
                        return
                    transaction.multi()
                    commands = [command for record in records for command in self.commands(record)]
                    for command in commands:
                        transaction.execute_command(*command)
                    transaction.set(note, f"{number}.{piece}")
                    results = transaction.execute(raise_on_error=False)
            except library.RedisError as error:
                raise SinkError(
                    f"{self!r} can't run its commands: {type(error).__name__}: {error}. Correct the commands or the "
                    "server, and start the job again"
                ) from error
        # Redis does not roll back: the other commands and the note are in the database.
        failed = [
            (command, result)
            for command, result in zip(commands, results, strict=False)
            if isinstance(result, Exception)
        ]
        if failed:
            command, refusal = failed[0]
            raise SinkError(
                f"{self!r}: Redis refused {len(failed)} of {len(commands)} commands, first {short_repr(command)}: {refusal}. "
                "The other commands ran, and opchain repeats none of them. Correct the commands, make up for the refused "
                "ones by hand, and start the job again"
            )

    def last_commit(self, owner: str) -> int | None:
        """The epoch in the note."""
        library = imported("redis", "redis", "RedisSink")
        with library.Redis.from_url(self.url) as client:
            found = client.get(f"opchain:{owner}")
        return None if found is None else int(found.split(b".")[0])

    def reset_commits(self, owner: str, number: int) -> None:
        """Sets the note."""
        library = imported("redis", "redis", "RedisSink")
        with library.Redis.from_url(self.url) as client:
            client.set(f"opchain:{owner}", f"{number}.{1_000_000_000}")


class HttpSink(OutboxSink[Any]):
    """Sends records as JSON arrays to a URL, with an Idempotency-Key. Not in Flink.

    A request is repeated with the same key if it fails to connect, or gets one of the statuses 408, 425, 429, 500, 502, 503
    and 504. Other statuses from 400 on fail the job.

    Args:
        url: The URL for POST requests.
        headers: More headers, such as Authorization.
        body: Returns the body of a request for a list of records, as bytes; JSON by default.
        retries: The number of times that a request is repeated, after 1, 2, 4, ... seconds.
        timeout_s: The longest time that a request may take, in seconds.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: Callable[[Sequence[Any]], bytes] | None = None,
        retries: int = 5,
        timeout_s: float = 30,
    ) -> None:
        self.url = url
        self.headers = {"Content-Type": "application/json", **(headers or {})}
        self.body = body
        self.retries = retries
        self.timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"HttpSink({redacted_url(self.url)!r})"

    def send(self, key: str, records: Sequence[Any]) -> None:
        """Sends a request.

        Raises:
            SinkError: The server refuses it, or can't be reached.
        """
        data = json.dumps(list(records)).encode() if self.body is None else self.body(records)
        self.request(self.url, data, {**self.headers, "Idempotency-Key": key})

    def request(self, url: str, data: bytes, headers: Mapping[str, str]) -> bytes:
        """The body of the answer.

        Raises:
            SinkError: The server refuses the request, or can't be reached.
        """
        urllib3 = imported("urllib3", "http", type(self).__name__)
        problem: Any = None
        with urllib3.PoolManager(timeout=self.timeout_s, retries=False) as pool:
            for attempt in range(self.retries + 1):
                if attempt:
                    time.sleep(2.0 ** (attempt - 1))
                try:
                    answer = pool.request("POST", url, body=data, headers=dict(headers))
                except urllib3.exceptions.HTTPError as error:
                    problem = f"{type(error).__name__}: {error}"
                    continue
                if answer.status < 400:  # noqa: PLR2004 - HTTP's own
                    found: bytes = answer.data
                    return found
                text = answer.data[:_SHOWN].decode(errors="replace")
                problem = f"status {answer.status}: {' '.join(text.split())}"
                if answer.status not in _RETRY_STATUS:
                    break
        raise SinkError(
            f"{self!r} could not send a request in {attempt + 1} attempts: {problem}. Nothing is lost: correct the "
            "server or the records, and start the job again"
        )


class ElasticsearchSink(HttpSink):
    """Indexes documents by the `_bulk` API of Elasticsearch and OpenSearch. Not in PyFlink, whose own is Java only.

    Args:
        url: The server: `http://host:9200`.
        index: The index.
        document: Returns the document of a record, as a dict; by default the record itself.
        document_id: Returns the id of a record's document. A document replaces another one of the same id. By default the
            id consists of the sink, the epoch and the record's position, so a document that is sent again replaces itself.
        headers: More headers, such as Authorization.
        retries: As for HttpSink.
        timeout_s: As for HttpSink.
    """

    def __init__(
        self,
        url: str,
        index: str,
        document: Callable[[Any], Mapping[str, Any]] | None = None,
        document_id: Callable[[Any], str] | None = None,
        headers: Mapping[str, str] | None = None,
        retries: int = 5,
        timeout_s: float = 30,
    ) -> None:
        super().__init__(url, headers, None, retries, timeout_s)
        self.index = index
        self.document = document
        self.document_id = document_id

    def __repr__(self) -> str:
        return f"ElasticsearchSink({redacted_url(self.url)!r}, {self.index!r})"

    def send(self, key: str, records: Sequence[Any]) -> None:
        """Sends the documents. Documents that the server rejects for lack of capacity are sent again.

        Raises:
            SinkError: The server refuses a document, or can't be reached.
        """
        left = [self._lines(record, f"{key}.{place}") for place, record in enumerate(records)]
        headers = {**self.headers, "Content-Type": "application/x-ndjson"}
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(2.0 ** (attempt - 1))
            url = f"{self.url.rstrip('/')}/_bulk"
            answer = json.loads(self.request(url, "".join(left).encode(), headers))
            if not answer.get("errors"):
                return
            failed = [
                (lines, next(iter(item.values())))
                for lines, item in zip(left, answer["items"], strict=True)
            ]
            failed = [(lines, item) for lines, item in failed if item["status"] >= 300]  # noqa: PLR2004 - HTTP's own
            for lines, item in failed:
                if item["status"] not in _RETRY_STATUS:
                    raise SinkError(
                        f"{self!r}: the server refuses the document {short_repr(lines)}: {item.get('error')}. Correct "
                        "the mapping of the index, and start the job again"
                    )
            left = [lines for lines, _ in failed]
        raise SinkError(
            f"{self!r}: the server rejected {len(left)} documents {self.retries + 1} times; give it more capacity, and "
            "start the job again"
        )

    def _lines(self, record: Any, default_id: str) -> str:
        found = record if self.document is None else self.document(record)
        document_id = default_id if self.document_id is None else self.document_id(record)
        action = {"index": {"_index": self.index, "_id": document_id}}
        return f"{json.dumps(action)}\n{json.dumps(found)}\n"


def _is_noted(note: bytes | None, number: int, piece: int) -> bool:
    if note is None:
        return False
    noted_number, _, noted_piece = note.partition(b".")
    return (int(noted_number), int(noted_piece)) >= (number, piece)
