"""Serves the pages of running jobs on this machine: the pages, their updates as server-sent events, and their buttons.

`/metrics` has the metrics of all jobs for Prometheus.

A page is one self-contained file. It asks this server for updates, and loads nothing else. Only this machine can
connect, and only as `localhost` or 127.0.0.1. So a foreign web page whose host name resolves to this machine is refused.
All but `/metrics` needs the token in the address that `opchain run` prints: pages show keys and records of the input,
which other users of this machine must not read.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.monitoring.job_watch import (
    JobWatch,
    JobWatches,
    settings_of,
    watching,
)
from opchain.runtime.errors import MissingLibraryError, StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.interception import StartedJob

HOST = "127.0.0.1"

PERIOD_S = 0.5
"""The time between two checks for updates of a job while its page is open."""

_ALIVE_EVERY = 30
"""After this many periods without updates, an empty comment is sent. It fails if the page was closed."""

_LAST_UPDATE_S = 3.0
_CONTROL_S = 600.0
_TOKEN_HEADER = "X-Opchain-Token"  # noqa: S105 - a name; pages of other origins cannot send this header

_REFUSED = "the address that opchain printed has a token"

_METRICS = "/metrics"
_PATH = re.compile(r"/([0-9]{0,9})(/updates|/file|/stop|/cancel)?(?:\?[^#]*)?")
_WAITING = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="1">'
    '<meta name="color-scheme" content="light dark"><title>opchain</title>'
    '<body style="font: 14px sans-serif; display: grid; place-items: center; height: 90vh">'
    "<p>The program has not started this job yet.</p></html>"
)


@contextmanager
def serving_pages(jobs: Sequence[StartedJob], port: int, token: str = "") -> Iterator[str]:
    """Within the block the pages of a growing list of jobs are served; returns the address, without the token.

    `/` is the page of the job that was started last, and `/1` the page of the first job.

    Args:
        jobs: The jobs.
        port: The port; 0 for any free port.
        token: Needed to read pages, and to stop and cancel jobs. If it is empty, everyone can read, and nobody can stop.

    Raises:
        CommandError: The port is taken.
    """
    with watching(jobs) as watches:
        try:
            server = PageServer(watches, port, token)
        except OSError as error:
            raise CommandError(
                f"cannot serve the plan page at port {port} ({error.strerror}): pass another port to "
                f"--serve, or 0 for any free port"
            ) from error
        thread = threading.Thread(
            target=server.serve_forever, args=(0.1,), name="pages", daemon=True
        )
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}/"
        finally:
            server.end()
            thread.join()


class PageServer(ThreadingHTTPServer):
    """Serves the pages of jobs, with one thread per request."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, watches: JobWatches, port: int, token: str) -> None:
        super().__init__((HOST, port), _Handler)
        self.watches = watches
        self.token = token
        self.ended = threading.Event()
        self._listening = threading.Condition()
        self._listeners = 0

    def end(self) -> None:
        """Sends the last update to open pages, and closes the server."""
        self.ended.set()
        with self._listening:
            self._listening.wait_for(lambda: not self._listeners, _LAST_UPDATE_S)
        self.shutdown()
        self.server_close()

    @contextmanager
    def listener(self) -> Iterator[None]:
        """Counts an open page that waits for updates, within the block."""
        with self._listening:
            self._listeners += 1
        try:
            yield
        finally:
            with self._listening:
                self._listeners -= 1
                self._listening.notify_all()


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = 30.0
    """Seconds to wait for a request, and for the client to take the answer. Each connection holds a thread."""

    def do_GET(self) -> None:
        requested = self._requested()
        if requested is None:
            return
        number, what, watch = requested
        given = parse_qs(urlsplit(self.path).query).get("token", ())
        if self.path == _METRICS:
            self._send_metrics()
        elif self.server.token and not any(map(self._is_token, given)):
            self.send_error(HTTPStatus.FORBIDDEN, _REFUSED)
        elif what is None:
            self._send_page(number, watch)
        elif watch is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif what == "/updates":
            self._send_updates(watch)
        elif what == "/file":
            self._send_file(watch)
        else:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    def do_POST(self) -> None:
        requested = self._requested()
        if requested is None:
            return
        _, what, watch = requested
        given = self.headers.get(_TOKEN_HEADER, "")
        if not self.server.token or not self._is_token(given):
            self.send_error(HTTPStatus.FORBIDDEN, _REFUSED)
        elif watch is None or what not in ("/stop", "/cancel"):
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._control(watch, what)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(self.server.token.encode(), given.encode())

    def _requested(self) -> tuple[int, str | None, JobWatch | None] | None:
        """The number of a job, the rest of the path, and the job's watch. Sends an error and returns None if the request is wrong."""
        name = self.headers.get("Host", "").partition(":")[0]
        path = _PATH.fullmatch("/" if self.path == _METRICS else self.path)
        if name not in (HOST, "localhost"):
            self.send_error(HTTPStatus.FORBIDDEN, "the page is served only to this machine")
            return None
        if path is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        watches = self.server.watches.all()
        number = int(path[1] or len(watches))
        return number, path[2], watches[number - 1] if 0 < number <= len(watches) else None

    def _send_page(self, number: int, watch: JobWatch | None) -> None:
        from opchain.compiler.plan.page.render import live_page  # noqa: PLC0415 - slow to import

        if watch is None:
            self._send_html(_WAITING)
            return
        settings = settings_of(watch.job)
        self._send_html(live_page(watch.job.plan, f"{number}/updates", {"settings": settings}))

    def _send_file(self, watch: JobWatch) -> None:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", watch.job.name).strip("-") or "job"
        self._send_html(
            run_page(watch), **{"Content-Disposition": f'attachment; filename="{name}.html"'}
        )

    def _send_metrics(self) -> None:
        """The metrics of all jobs that have not ended, for Prometheus."""
        from opchain.runtime.reporting.prometheus import exposition  # noqa: PLC0415 - optional library

        try:
            found = [
                sample
                for watch in self.server.watches.all()
                if not watch.is_over
                for sample in watch.samples()
            ]
            text = exposition(found)
        except MissingLibraryError as error:
            self._send_text(HTTPStatus.NOT_IMPLEMENTED, str(error))
            return
        self._send(HTTPStatus.OK, "text/plain; version=0.0.4", text)

    def _send_html(self, page: str, **headers: str) -> None:
        headers |= {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        self._send(HTTPStatus.OK, "text/html", page.encode("ascii"), **headers)

    def _control(self, watch: JobWatch, what: str) -> None:
        """Stops the job with a savepoint, or cancels it; answers when the job has ended."""
        run = watch.job.run
        try:
            if what == "/cancel":
                run.cancel().result(_CONTROL_S)
                answer = "canceled"
            else:
                path = run.stop_with_savepoint(False).result(_CONTROL_S)
                answer = f"stopped with savepoint {path}"
        except (StreamError, TimeoutError) as error:
            self._send_text(HTTPStatus.CONFLICT, str(error) or "the job has not ended yet")
        else:
            self._send_text(HTTPStatus.OK, answer)

    def _send_text(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "text/plain", text.encode())

    def _send(self, status: HTTPStatus, kind: str, data: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _send_updates(self, watch: JobWatch) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        updates, silent, others = watch.updates(), 0, None
        with self.server.listener():
            while True:
                is_last = self.server.ended.is_set()
                latest = next(updates)
                jobs = [each.title for each in self.server.watches.all()]
                if latest is not None or jobs != others:
                    others = jobs
                    event = json.dumps(
                        (latest or {}) | {"jobs": jobs}, separators=(",", ":"), allow_nan=False
                    )
                    self._write(f"data: {event}\n\n".encode("ascii"))
                silent = 0 if latest is not None else silent + 1
                if is_last or (latest is not None and latest["isOver"]):
                    return
                if silent % _ALIVE_EVERY == _ALIVE_EVERY - 1:
                    self._write(b":\n\n")
                self.server.ended.wait(PERIOD_S)

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def handle(self) -> None:
        """Answers the requests of a connection, which breaks if the page is closed."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of http.server
        """Logs nothing: the terminal belongs to the program."""


def run_page(watch: JobWatch) -> str:
    """The page of a run as a file: the plan, the last update and all epochs."""
    from opchain.compiler.plan.page.render import saved_page  # noqa: PLC0415 - slow to import

    return saved_page(watch.job.plan, watch.whole() | {"settings": settings_of(watch.job)})
