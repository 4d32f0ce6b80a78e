"""The HTTP responses of the server of plan pages. tests/browser/test_live_page.py uses it with a browser."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from programs import drawn

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.interception import StartedJob
from opchain.compiler.monitoring.page_server import _Handler, serving_pages
from opchain.compiler.passes.pipeline import compile_program
from opchain.runtime.job.run import JobRun
from opchain.runtime.shipping.outcome import JobOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator


def job(run: JobRun) -> StartedJob:
    return StartedJob("words", run, compile_program(drawn("word_count").program()))


@contextmanager
def asked(
    address: str, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=60)
    try:
        connection.request(method, path, headers=headers or {})
        with connection.getresponse() as answer:
            yield answer
    finally:
        connection.close()


def status(address: str, path: str, **headers: str) -> int:
    with asked(address, path, headers) as answer:
        return answer.status


def test_the_server_has_a_page_for_each_started_job() -> None:
    jobs: list[StartedJob] = []
    with serving_pages(jobs, 0) as address:
        with asked(address, "/") as answer:
            text = answer.read().decode("ascii")
        assert "has not started this job yet" in text
        assert status(address, "/1/updates") == 404
        jobs.append(job(JobRun(JobOutcome, lambda: None)))
        for path in ("/", "/1"):
            with asked(address, path) as answer:
                assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
                text = answer.read().decode("ascii")
            assert 'data-updates="1/updates"' in text
            assert "connect-src 'self'" in text
        assert status(address, "/elsewhere") == 404


def test_the_server_exports_metrics_of_running_jobs_for_prometheus() -> None:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(60)
        return JobOutcome()

    jobs: list[StartedJob] = []
    with serving_pages(jobs, 0) as address:
        with asked(address, "/metrics") as answer:
            assert answer.read() == b""
        jobs.append(job(JobRun(run, let_go.set).start()))
        with asked(address, "/metrics") as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        let_go.set()
    states = {family.name: family.samples[0] for family in families}
    assert states["flink_jobmanager_job_runningState"].value == 1
    assert states["flink_jobmanager_job_runningState"].labels["job_name"]


def test_the_server_refuses_requests_with_a_foreign_host_header() -> None:
    with serving_pages([], 0) as address:
        port = address.rsplit(":", 1)[1].rstrip("/")
        assert status(address, "/", Host=f"localhost:{port}") == 200
        assert status(address, "/", Host="localhost") == 200  # browsers leave out port 80
        assert status(address, "/", Host=f"evil.example:{port}") == 403


def test_the_server_sends_updates_until_the_job_has_ended() -> None:
    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(60)
        return JobOutcome()

    client = JobRun(run, let_go.set).start()
    with serving_pages([job(client)], 0) as address, asked(address, "/1/updates") as answer:
        assert answer.getheader("Content-Type") == "text/event-stream"
        first = event(answer)
        assert (first["status"], first["isOver"]) == ("running", False)
        let_go.set()
        last = event(answer)
        assert (last["status"], last["isOver"]) == ("finished", True)
        assert answer.read().strip() == b""


def test_the_server_reports_the_end_of_a_failed_job() -> None:
    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(60)
        raise ZeroDivisionError

    client = JobRun(run, let_go.set).start()
    with serving_pages([job(client)], 0) as address, asked(address, "/1/updates") as answer:
        assert event(answer)["status"] == "running"
        let_go.set()
        with pytest.raises(ZeroDivisionError):
            client.get_job_execution_result().result(60)
        assert event(answer)["status"] == "failed"


@pytest.mark.parametrize("path", ["/", "/1", "/1/updates", "/1/file", "/7"])
@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong", "?token=right%00", "?other=right"]
)
def test_the_server_refuses_reads_without_the_token(path: str, query: str) -> None:
    client = JobRun(JobOutcome, lambda: None).start()
    client.get_job_execution_result().result(60)
    with serving_pages([job(client)], 0, "right") as address:
        with asked(address, path + query) as answer:
            assert answer.status == 403
            assert "the address that opchain printed has a token" in answer.read().decode()
        assert status(address, f"{path}?token=right") == 200
        assert status(address, "/metrics") == 200


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize("served", ["", "right"])
def test_the_server_refuses_to_cancel_without_the_token(token: str, served: str) -> None:
    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(60)
        return JobOutcome()

    client = JobRun(run, let_go.set).start()
    with serving_pages([job(client)], 0, served) as address:
        with asked(address, "/1/cancel", {"X-Opchain-Token": token}, "POST") as answer:
            assert answer.status == 403
        assert not let_go.is_set()
        with asked(address, f"/1/cancel?token={served}") as answer:
            assert answer.status == 405, "a link can't do it"
        if served:
            with asked(address, "/1/stop", {"X-Opchain-Token": served}, "POST") as answer:
                assert answer.status == 409
                assert "has no checkpoints" in answer.read().decode()
            with asked(address, "/1/cancel", {"X-Opchain-Token": served}, "POST") as answer:
                assert (answer.status, answer.read()) == (200, b"canceled")
            assert let_go.is_set()
    let_go.set()


def test_the_server_offers_a_run_as_one_file() -> None:
    client = JobRun(JobOutcome, lambda: None).start()
    client.get_job_execution_result().result(60)
    with (
        serving_pages([job(client)], 0) as address,
        asked(address, "/1/file") as answer,
    ):
        assert answer.getheader("Content-Disposition") == 'attachment; filename="words.html"'
        page = answer.read().decode("ascii")
    assert '<html lang="en">' in page, "nobody is asked for updates"
    assert "connect-src" not in page
    assert '"status":"finished"' in page


def test_a_port_that_is_in_use_is_an_error() -> None:
    with serving_pages([], 0) as address:
        port = int(address.rsplit(":", 1)[1].rstrip("/"))
        with pytest.raises(CommandError, match=f"port {port}.*pass another port to --serve"):
            serving_pages([], port).__enter__()


def event(answer: http.client.HTTPResponse) -> dict[str, Any]:
    line = answer.readline()
    while not line.startswith(b"data: "):
        assert line, "the stream ended"
        line = answer.readline()
    found: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
    return found


@pytest.mark.parametrize(
    "path", ["/" + "9" * 5000, "/1234567890", "/\u00b2", "/-1", "/1/updates/x"]
)
def test_a_malformed_job_number_is_not_found(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    with serving_pages([job(JobRun(JobOutcome, lambda: None))], 0) as address:
        port = int(address.rsplit(":", 1)[1].rstrip("/"))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(
                f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode("latin-1")
            )
            assert client.recv(100).startswith(b"HTTP/1.0 404 ")
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: lo"])
def test_a_request_that_is_never_sent_times_out(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], sent: bytes
) -> None:
    monkeypatch.setattr(_Handler, "timeout", 0.2)
    with serving_pages([], 0) as address:
        port = int(address.rsplit(":", 1)[1].rstrip("/"))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(sent)
            assert client.recv(100) == b""
    assert "Traceback" not in "".join(capfd.readouterr())
