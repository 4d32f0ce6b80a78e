"""What the page of a running job is told: its status, how far it is, and its numbers.

The plan page of a running job on this machine: the page, and its numbers as server-sent events.

A page is the same self-contained file as ever; the one thing that it asks for are the numbers, from where it came
from. Nobody is asked while no page is open. Only this machine can connect, and only by its own name: a web page
elsewhere that lets its name point here is refused.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opchain.compiler.commands.failures import CommandError
from opchain.compiler.graph.plan import made
from opchain.compiler.plan.page.numbers import page_numbers
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.run import JobRun
from opchain.runtime.measurements.job_metrics import metrics_so_far

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.interception import StartedJob
    from opchain.runtime.epochs.epoch_history import EpochHistory


_OVER = (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED)


class PageNews:
    """The news of one job for one reader."""

    def __init__(self, job: StartedJob) -> None:
        self._job = job
        self._last_version: Any = None

    def take(self) -> dict[str, Any] | None:
        """What is new since the last time; None where nothing is.

        `status` is the job's, `isOver` whether that is its last. `epoch` has the facts of the last epoch of an
        unbounded job, `tasks` how many of a bounded one are done; each is None for the other kind. `numbers` are
        those of `page_numbers`: of an unbounded job the totals of this run, with the shares of time in its last
        epoch; of a bounded one those of the tasks that are done, for vertices that have some. None where
        there are none yet.
        """
        run = self._job.client
        status = run.get_job_status().result()
        history = run.history if isinstance(run, JobRun) else None
        news: dict[str, Any] = {
            "status": status.name.lower(),
            "isOver": status in _OVER,
            "epoch": None,
            "tasks": None,
        }
        version: Any
        if history is not None:
            last = history.last
            version = (status, None if last is None else last.epoch)
        else:
            news["tasks"] = _tasks(run)
            version = (status, news["tasks"])
        if version == self._last_version:
            return None
        self._last_version = version
        news["numbers"] = self._of_tasks(status) if history is None else _of_epochs(history)
        news["epoch"] = None if history is None else _epoch(history)
        return news

    def _of_tasks(self, status: JobStatus) -> dict[str, Any] | None:
        run = self._job.client
        if status is JobStatus.FINISHED:
            return page_numbers(run.get_job_execution_result().result().metrics)
        finished = (
            run.progress.finished_tasks() if isinstance(run, JobRun) and run.progress else None
        )
        if not finished:
            return None
        return page_numbers(metrics_so_far(made(self._job.plan.job_program), finished))


def _tasks(run: Any) -> dict[str, int] | None:
    if not isinstance(run, JobRun) or run.progress is None:
        return None
    stages = run.progress.stages()
    return {
        "done": sum(stage.done for stage in stages),
        "all": sum(stage.tasks for stage in stages),
    }


def _of_epochs(history: EpochHistory) -> dict[str, Any] | None:
    totals = history.totals()
    return page_numbers(totals, history.last_metrics) if totals.vertices else None


def _epoch(history: EpochHistory) -> dict[str, Any] | None:
    last = history.last
    if last is None:
        return None
    return {
        "epoch": last.epoch,
        "recordsPerSecond": round(last.records_per_second, 1),
        "durationMs": last.duration_ms,
        "stateBytes": last.state_bytes,
        "watermarkLagMs": last.watermark_lag_ms,
    }


HOST = "127.0.0.1"

PERIOD_S = 0.5
"""How often a job is asked while a page is open."""

_ALIVE_EVERY = 30
"""After so many periods without news a comment is sent, which finds out whether somebody listens."""

_LAST_NEWS_S = 3.0
_PATH = re.compile(r"/([0-9]{0,9})(/news)?")
_WAITING = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="1">'
    '<meta name="color-scheme" content="light dark"><title>opchain</title>'
    '<body style="font: 14px sans-serif; display: grid; place-items: center; height: 90vh">'
    "<p>The program has not started this job yet.</p></html>"
)


@contextmanager
def serving_pages(jobs: Sequence[StartedJob], port: int) -> Iterator[str]:
    """Within the block the pages of a growing list of jobs are served; gives their address.

    `/` is the page of the job that was started last, `/1` that of the first.

    Args:
        jobs: The jobs.
        port: Where; 0 for any that is free.

    Raises:
        CommandError: The port is taken.
    """
    try:
        server = PageServer(jobs, port)
    except OSError as error:
        raise CommandError(
            f"cannot serve the plan page at port {port} ({error.strerror}): pass another port to "
            f"--serve, or 0 for any free port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="pages", daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.end()
        thread.join()


class PageServer(ThreadingHTTPServer):
    """Serves the pages of jobs, each request on a thread of its own."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, jobs: Sequence[StartedJob], port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.jobs = jobs
        self.ended = threading.Event()
        self._listening = threading.Condition()
        self._listeners = 0

    def end(self) -> None:
        """Sends last news to open pages, and closes."""
        self.ended.set()
        with self._listening:
            self._listening.wait_for(lambda: not self._listeners, _LAST_NEWS_S)
        self.shutdown()
        self.server_close()

    @contextmanager
    def listener(self) -> Iterator[None]:
        """Within the block somebody waits for news."""
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
    """Seconds for a request to come, and for an answer to be taken; each connection holds a thread."""

    def do_GET(self) -> None:
        name = self.headers.get("Host", "").rpartition(":")[0]
        path = _PATH.fullmatch(self.path)
        if name not in (HOST, "localhost"):
            self.send_error(HTTPStatus.FORBIDDEN, "pages are for this machine alone")
        elif path is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            number = int(path[1] or len(self.server.jobs))
            jobs = self.server.jobs
            job = jobs[number - 1] if 0 < number <= len(jobs) else None
            if path[2] is None:
                self._send_page(number, job)
            elif job is None:
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                self._send_news(job)

    def _send_page(self, number: int, job: StartedJob | None) -> None:
        from opchain.compiler.plan.page.render import live_page  # noqa: PLC0415 - it takes a while

        page = _WAITING if job is None else live_page(job.plan, f"{number}/news")
        data = page.encode("ascii")
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def _send_news(self, job: StartedJob) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        news, silent = PageNews(job), 0
        with self.server.listener():
            while True:
                is_last = self.server.ended.is_set()
                latest = news.take()
                if latest is not None:
                    self._send_event(latest)
                silent = 0 if latest is not None else silent + 1
                if is_last or (latest is not None and latest["isOver"]):
                    return
                if silent % _ALIVE_EVERY == _ALIVE_EVERY - 1:
                    self._write(b":\n\n")
                self.server.ended.wait(PERIOD_S)

    def _send_event(self, news: dict[str, Any]) -> None:
        text = json.dumps(news, separators=(",", ":"), allow_nan=False)
        self._write(f"data: {text}\n\n".encode("ascii"))

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def handle(self) -> None:
        """Answers; a page that is closed meanwhile breaks the connection."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of http.server
        """Nothing: the terminal is the program's."""
