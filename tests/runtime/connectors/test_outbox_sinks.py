"""RedisSink against a real server; HttpSink and the _bulk API of Elasticsearch against a local one."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.connectors import outbox_sinks
from opchain.runtime.connectors.outbox_sinks import ElasticsearchSink, HttpSink, RedisSink
from opchain.runtime.errors import SinkError
from opchain.runtime.testing.kafka_broker import run_at_the_end
from opchain.runtime.testing.ports import free_ports
from opchain.testing import SinkConformance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def redis_server(folder: Path) -> Iterator[int]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    pytest.importorskip("redis")
    [port] = free_ports(1)
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen(
        [*command, "--dir", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with run_at_the_end("kill", "-9", str(server.pid)):
        client = client_of(port)
        until = time.monotonic() + 60
        while True:
            try:
                client.ping()
                break
            except Exception:  # noqa: BLE001 - errors of the library while the server starts
                assert time.monotonic() < until, "redis-server does not answer"
                assert server.poll() is None
        client.close()
        yield port
    server.wait(60)


def client_of(port: int) -> Any:
    import redis  # noqa: PLC0415 - it may be missing

    return redis.Redis(port=port)


@pytest.fixture(scope="module")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with redis_server(tmp_path_factory.mktemp("redis")) as port:
        yield port


@pytest.mark.slow
class TestRedis(SinkConformance):
    """Each target is a list of its own database."""

    most_failures = 10
    port = 0

    @pytest.fixture(autouse=True)
    def _port(self, redis_port: int) -> None:
        type(self).port = redis_port

    def make_sink(self, target: Path) -> Any:
        with client_of(self.port) as client:
            if not target.exists():  # each target has the same commit note
                client.delete(*(client.keys("opchain:*") or ["none"]))
                target.mkdir()
        name = str(target)
        return RedisSink(f"redis://127.0.0.1:{self.port}", lambda record: [("RPUSH", name, record)])

    def visible(self, target: Path) -> list[str]:
        with client_of(self.port) as client:
            return [value.decode() for value in client.lrange(str(target), 0, -1)]


def test_a_rejected_redis_transaction_changes_nothing(redis_port: int) -> None:
    sink = RedisSink(
        f"redis://127.0.0.1:{redis_port}", lambda r: [("SET", "x", r), ("NONSENSE", r)]
    )
    with pytest.raises(SinkError, match=r"can't run its commands: .*unknown command"):
        sink.send("o.1.1.d", ["a"])
    with client_of(redis_port) as client:
        assert client.get("x") is None


def test_a_failed_command_of_a_redis_transaction_is_named_and_not_repeated(redis_port: int) -> None:
    def commands(record: str) -> list[tuple[Any, ...]]:
        return [("RPUSH", "seen", record), ("INCR", "seen")]

    sink = RedisSink(f"redis://127.0.0.1:{redis_port}", commands)
    with pytest.raises(
        SinkError,
        match=r"refused 1 of 2 commands, first \('INCR', 'seen'\): .*WRONGTYPE.* repeats none",
    ):
        sink.send("among.1.1.d", ["a"])
    sink.send("among.1.1.d", ["a"])
    with client_of(redis_port) as client:
        assert client.lrange("seen", 0, -1) == [b"a"]


class Server(ThreadingHTTPServer):
    """Records requests; answers with `answers` first."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, Any]] = []
        self.requests: list[tuple[str, Any, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        default = (200, {"errors": False, "items": []})
        status, answer = self.server.answers.pop(0) if self.server.answers else default
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(outbox_sinks.time, "sleep", lambda _: None)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_http_retries_have_the_same_idempotency_key(server: Server) -> None:
    server.answers = [(503, {}), (429, {})]
    HttpSink(f"{server.url}/orders", {"Authorization": "Bearer x"}).send("k", [{"n": 1}])
    assert len(server.requests) == 3
    assert {headers["Idempotency-Key"] for _, headers, _ in server.requests} == {"k"}
    path, headers, body = server.requests[-1]
    assert (path, headers["Authorization"], json.loads(body)) == ("/orders", "Bearer x", [{"n": 1}])


def test_http_errors_that_a_retry_cannot_solve_fail(server: Server) -> None:
    server.answers = [(400, {"error": "bad"})]
    with pytest.raises(SinkError, match=r"in 1 attempts: status 400: .*bad"):
        HttpSink(server.url).send("k", [1])
    with pytest.raises(SinkError, match=r"in 2 attempts: .*refused"):
        HttpSink("http://127.0.0.1:1", retries=1).send("k", [1])


def test_elasticsearch_documents_have_the_same_ids_in_a_retry(server: Server) -> None:
    sink = ElasticsearchSink(server.url, "clicks")
    sink.send("o.1.1.d", [{"n": 1}, {"n": 2}])
    path, headers, body = server.requests[0]
    assert (path, headers["Content-Type"]) == ("/_bulk", "application/x-ndjson")
    assert list(map(json.loads, body.splitlines())) == [
        {"index": {"_index": "clicks", "_id": "o.1.1.d.0"}},
        {"n": 1},
        {"index": {"_index": "clicks", "_id": "o.1.1.d.1"}},
        {"n": 2},
    ]


def test_elasticsearch_sends_rejected_documents_again(server: Server) -> None:
    items = [{"index": {"status": 201}}, {"index": {"status": 429, "error": "busy"}}]
    server.answers = [(200, {"errors": True, "items": items})]
    ElasticsearchSink(server.url, "i", document_id=lambda record: record["id"]).send(
        "k", [{"id": "a"}, {"id": "b"}]
    )
    assert [json.loads(body.splitlines()[0])["index"]["_id"] for _, _, body in server.requests] == [
        "a",
        "b",
    ]
    server.answers = [
        (200, {"errors": True, "items": [{"index": {"status": 400, "error": "mapping"}}]})
    ]
    with pytest.raises(SinkError, match=r"refuses the document .*mapping"):
        ElasticsearchSink(server.url, "i").send("k", [{"id": "a"}])
