"""The page of a running job in a browser. It updates its numbers until the job ends."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from example_metrics import TASK
from forms import seen
from plan_geometry import overlapping, vertices

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.graph.plan import required
from opchain.compiler.interception import StartedJob, watching_jobs
from opchain.compiler.monitoring.job_watch import JobWatch
from opchain.compiler.monitoring.page_server import run_page, serving_pages
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.epochs.epoch_progress import EpochHistory, epoch_progress
from opchain.runtime.job.progress import CountedProgress
from opchain.runtime.job.run import JobRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.datastream import DataStream
    from opchain.runtime.shipping.outcome import JobOutcome

pytestmark = pytest.mark.browser

START_MS = 1_700_000_000_000
LET_IN = "let-me"
PATIENCE_MS = 120_000
"""How long a page may take for what it is waited for."""


def visits(env: StreamExecutionEnvironment) -> DataStream[Any]:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda number, _: START_MS + number
    )
    numbers = given(env, "visits", strategy)
    pairs = numbers.map(lambda number: (number % 7 % 3, 1)).name("pair").set_parallelism(2)
    return pairs.key_by(lambda pair: pair[0]).sum(1).name("count").uid("count")


class RunningJob:
    """A job whose epochs a test runs one by one."""

    def __init__(self, folder: Path) -> None:
        self.epochs = EpochRun(lambda env: seen(visits(env), "counts"), folder, 2)
        self.history = EpochHistory(self.epochs.job)
        self._let_go = threading.Event()
        self.client = JobRun(self._wait, self._let_go.set, history=self.history).start()
        self._number = 0

    def started(self) -> StartedJob:
        """As `opchain run` has it."""
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        seen(visits(env), "counts")
        return StartedJob("visits", self.client, compile_program(env.program("visits")))

    def run_epoch(self, records: int, lags: tuple[int, ...] = ()) -> None:
        """Numbers from where the last epoch ended."""
        first = self.history.last.watermark if self.history.last else None
        begin = 0 if not isinstance(first, int) else first + 2 - START_MS
        self._number += 1
        outcome = self.epochs.run(
            START_MS + begin, visits=list(range(begin, begin + records))
        ).outcome
        progress = epoch_progress(
            self.epochs.job,
            outcome,
            Epoch(self._number, START_MS + begin + 1_500),
            run_id="run",
            batch=self._number - 1,
            checkpoint="",
            durations_ms={"waiting": 400.0, "tasks": 500.0, "checkpoint": 80.0, "commit": 20.0},
            splits={
                self.epochs.job.vertices[0].operators[0].operator_id: {
                    f"visits-of-users-{number}": {"next": 7, "lag": lag}
                    for number, lag in enumerate(lags)
                }
            },
        )
        self.history.add(progress, outcome)

    def _wait(self) -> JobOutcome:
        assert self._let_go.wait(120)
        raise RuntimeError("stopped")


@pytest.fixture
def job(tmp_path: Path) -> Iterator[RunningJob]:
    running = RunningJob(tmp_path)
    yield running
    running.client.cancel().result(60)
    running.epochs.close()


@contextmanager
def page_of(chromium: Any, *started: StartedJob, token: str = LET_IN) -> Iterator[Any]:
    """The last job's page; it must ask for nothing but itself and its updates, and stay silent."""
    complaints: list[str] = []
    with serving_pages(started, 0, token) as base:
        query = f"?token={token}" if token else ""
        context = chromium.new_context(viewport={"width": 1440, "height": 860})
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        allowed = (
            *(f"{base}{page}{query}" for page in ("", "1", "1/updates", "2/updates")),
            *(f"{base}1/{what}" for what in ("cancel", "stop")),
        )
        page.on(
            "request",
            lambda request: None if request.url in allowed else complaints.append(request.url),
        )
        page.goto(base + query)
        page.wait_for_selector(".drawn", state="attached")
        yield page
        context.close()
    assert complaints == []


@pytest.fixture
def opened(chromium: Any, job: RunningJob) -> Iterator[Any]:
    with page_of(chromium, job.started()) as page:
        yield page


def shown(page: Any, vertex: int) -> list[str]:
    """The numbers on a box: records in and out, skew, bytes in and out, watermark."""
    found: list[str] = page.locator(f".vertex[data-number='{vertex}'] .numbers b").all_inner_texts()
    return found


def wait_for_epoch(page: Any, number: int) -> str:
    """Until the page has an epoch; the line that it shows of it."""
    page.wait_for_function(
        "(text) => document.querySelector('#live span').textContent.startsWith(text)",
        arg=f"epoch {number} ",
    )
    text: str = page.inner_text("#live span")
    return " ".join(text.split())


def test_the_live_page_updates_numbers_while_the_job_runs(opened: Any, job: RunningJob) -> None:
    page = opened
    page.wait_for_selector("#live.running")
    assert shown(page, 1)[:3] == ["0", "0", "1.00"]
    job.run_epoch(1_000)
    facts = wait_for_epoch(page, 1)
    assert facts.startswith("epoch 1 in 600 ms \N{MIDDLE DOT} 1,000 records/s")
    assert shown(page, 1)[0] == "1,000"
    assert shown(page, 1)[5] == "1.0 s", "event time is behind"
    busy = page.evaluate(
        "() => Number(document.querySelector('.vertex').style.getPropertyValue('--heat-share'))"
    )
    assert 0 < busy <= 1
    job.run_epoch(500)
    wait_for_epoch(page, 2)
    assert shown(page, 1)[0] == "1,500"  # the totals of the run
    skew = float(shown(page, 2)[2])
    assert skew > 1


def test_boxes_grow_with_their_numbers_without_overlap(opened: Any, job: RunningJob) -> None:
    page = opened
    before = vertices(page)
    job.run_epoch(20_000, lags=(1_200, 300))
    wait_for_epoch(page, 1)
    page.wait_for_function(
        """() => [...document.querySelectorAll('.vertex .numbers')]
          .every((numbers) => numbers.scrollWidth <= numbers.clientWidth)"""
    )
    after = vertices(page)
    assert overlapping(after) == []
    assert [box.right - box.left for box in after] != [box.right - box.left for box in before]
    page.wait_for_function(
        """() => [...document.querySelectorAll('.vertex')]
          .every((box) => box.getBoundingClientRect().right <= innerWidth)"""
    )


def test_an_open_panel_is_updated(opened: Any, job: RunningJob) -> None:
    page = opened
    page.click(".vertex[data-number='2']")
    job.run_epoch(100)
    wait_for_epoch(page, 1)
    for text in ("2 subtasks, skew", "100 in, 100 out"):
        page.wait_for_function(
            "(text) => document.getElementById('details').textContent.includes(text)", arg=text
        )


def test_an_update_keeps_focus_and_scroll_position_of_an_open_panel(
    opened: Any, job: RunningJob
) -> None:
    page = opened
    job.run_epoch(100)
    wait_for_epoch(page, 1)
    page.click(".vertex[data-number='2']")
    page.focus("#details .lineages button:last-child")
    page.evaluate("() => { document.getElementById('details').scrollTop = 90; }")
    job.run_epoch(100)
    page.wait_for_function(
        "() => document.getElementById('details').textContent.includes('200 in, 200 out')"
    )
    assert page.evaluate("() => document.getElementById('details').scrollTop") == 90
    assert page.evaluate("() => document.activeElement.textContent") == "both"
    details = page.inner_text("#details")
    assert "State\nrunning\nStarted\n20" in details
    assert "Duration\n" in details


def test_a_click_on_a_column_sorts_the_table_of_vertices(opened: Any, job: RunningJob) -> None:
    page = opened
    page.wait_for_selector(".vertex[data-number='1'].is-running")
    for _ in range(2):
        job.run_epoch(300)
    wait_for_epoch(page, 2)
    assert tab(page, "Vertices").split("\n")[0].startswith("Vertex\tState\tTasks")
    numbers = (
        "() => [...document.querySelectorAll('#sheet .link')].map((row) => row.textContent[1])"
    )
    assert page.evaluate(numbers) == ["1", "2"]
    page.click("#sheet th button:has-text('Held state')")
    assert page.evaluate(numbers) == ["2", "1"], "the vertex with state first"
    page.click("#sheet th button:has-text('Vertex')")
    assert page.evaluate(numbers) == ["1", "2"]
    page.click("#sheet th button:has-text('Vertex')")
    assert page.get_attribute("#sheet th[aria-sort]", "aria-sort") == "descending"
    assert page.evaluate(numbers) == ["2", "1"]
    job.run_epoch(300)
    wait_for_epoch(page, 3)
    assert page.evaluate(numbers) == ["2", "1"], "the order stays"
    assert page.evaluate("() => document.activeElement.textContent") == "Vertex"
    page.click("#sheet .link >> nth=0")
    assert "Vertex 2" in page.inner_text("#details")


def test_the_live_page_shows_that_the_job_has_ended(opened: Any, job: RunningJob) -> None:
    page = opened
    job.run_epoch(10)
    job.client.cancel().result(60)
    page.wait_for_selector("#live.over")
    assert page.inner_text("#live b") == "canceled"
    assert shown(page, 1)[0] == "10"


def tab(page: Any, name: str) -> str:
    """What a tab of the strip shows."""
    button = page.locator("#tabs button", has_text=name)
    if button.get_attribute("aria-selected") != "true":
        button.click()
    text: str = page.inner_text("#sheet")
    return text


def test_vertices_show_their_state_and_exchanges_their_rate(opened: Any, job: RunningJob) -> None:
    page = opened
    page.wait_for_selector(".vertex[data-number='1'].is-running")
    job.run_epoch(1_000)
    wait_for_epoch(page, 1)
    assert page.locator(".vertex .top .state-word").all_inner_texts() == ["running"] * 2
    assert page.inner_text(".exchange .rate") == "1,000/s"
    assert shown(page, 2)[3] == "1,000", "records a second"
    thickness = (
        "() => parseFloat(getComputedStyle(document.querySelector('#wires path')).strokeWidth)"
    )
    page.wait_for_function(f"() => ({thickness})() > 3")


def test_the_timeline_has_the_epochs_and_events_of_the_run(opened: Any, job: RunningJob) -> None:
    page = opened
    for records in (700, 1_400):
        job.run_epoch(records)
    wait_for_epoch(page, 2)
    epochs = tab(page, "Epochs").split("\n")
    assert epochs[:2] == ["Records a second", "1,400/s"]
    assert "700/s to 1,400/s" in epochs
    assert {"Watermark lag", "Duration", "State"} <= set(epochs)
    assert page.locator("#sheet .bars rect").count() == 8, "four phases of two epochs"
    checkpoints = tab(page, "Checkpoints")
    assert checkpoints.startswith("A restore from checkpoint 2 reads ")
    assert page.locator("#sheet tbody tr").count() == 2
    assert tab(page, "Exceptions") == "Nothing has failed."
    watermarks = tab(page, "Watermarks")
    assert "Source: visits" in watermarks
    assert "2023-11-14 22:13" in watermarks
    assert page.is_visible("#legend")
    page.set_viewport_size({"width": 390, "height": 760})
    assert page.is_hidden("#legend"), "an open tab leaves no room for it on a phone"
    skew = tab(page, "Skew")
    assert "0 to 63" in skew or "64 to 127" in skew, "the key groups of the busiest subtask"
    assert page.locator("#sheet .subtasks i").count() == 4
    keys, groups = page.locator("#sheet .hot-keys table").all()
    hottest = keys.locator("tbody tr").first.inner_text().split()
    assert hottest[0] == "0", "three of seven numbers have this key"
    assert 0.3 * 2_100 < int(hottest[3].replace(",", "")) < 0.6 * 2_100
    assert groups.locator("tbody tr").count() == 3
    assert groups.locator("tbody tr").first.inner_text().split()[0] == hottest[1]
    tab(page, "Timeline")
    assert page.locator("#sheet .track i.running").count() == 2
    assert "parallelism.default" in tab(page, "Configuration")


def test_a_source_with_partitions_shows_their_topic_and_lag(opened: Any, job: RunningJob) -> None:
    page = opened
    job.run_epoch(100, lags=(1_200, 300))
    wait_for_epoch(page, 1)
    row = page.locator(".vertex[data-number='1'] li").first
    row.get_by_text("visits-of-users \u00b7 2 partitions \u00b7 lag 1,500").wait_for()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.vertex li .name')].every((name) => name.scrollWidth <= name.clientWidth)"
    )
    assert overlapping(vertices(page)) == []
    page.click(".vertex[data-number='1']")
    rows = page.locator("#details .splits tbody tr").all_inner_texts()
    assert [text.split() for text in rows] == [
        ["visits-of-users-0", "7", "1,200"],
        ["visits-of-users-1", "7", "300"],
    ]


def test_a_double_click_on_cancel_needs_the_token(chromium: Any, job: RunningJob) -> None:
    started = job.started()
    with page_of(chromium, started, token="") as page:
        page.wait_for_selector("#live.running")
        assert page.is_hidden("#cancel")
        assert page.is_visible("#save")
    with page_of(chromium, started) as page:
        page.wait_for_selector("#live.running")
        page.click("#cancel")
        assert page.inner_text("#cancel") == "Sure?"
        assert not job.client.get_job_status().result().is_terminal_state()
        page.click("#cancel")
        page.wait_for_selector("#live.canceled")
        page.wait_for_selector("#said:has-text('canceled')")


def failed_job() -> StartedJob:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_sequence(1, 100).name("orders").rebalance().map(price).name("price").rebalance().map(
        str
    ).name("text").print()
    with watching_jobs() as jobs, pytest.raises(ValueError, match="no price"):
        env.execute("prices")
    return jobs[0]


def price(number: int) -> int:
    if number == 70:
        raise ValueError("no price for item 70")
    return number


def test_a_failure_is_shown_at_its_vertex(chromium: Any, job: RunningJob) -> None:
    with page_of(chromium, job.started(), failed_job()) as page:
        page.wait_for_selector("#live.failed")
        assert page.locator(".vertex .top .state-word").all_inner_texts() == [
            "finished",
            "failed",
            "not started",
        ]
        failure = page.inner_text("#sheet")
        assert "ValueError: no price for item 70" in failure
        assert "at record 70" in failure
        page.click("#sheet .failure .link")
        assert "price" in page.inner_text("#details h2"), "the vertex that failed"
        page.keyboard.press("Escape")
        heat = "(box) => box.style.getPropertyValue('--heat-share')"
        assert page.locator(".vertex").first.evaluate(heat) == "0", "what is over glows no more"
        assert page.locator("#jobs option").all_inner_texts() == [
            "visits (running)",
            "prices (failed)",
        ]
        page.select_option("#jobs", "1")
        page.wait_for_selector("#live.running")
        assert page.inner_text("#job") == "visits"


def test_failures_with_restarts_are_listed_latest_first(chromium: Any) -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "2")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_sequence(1, 100).map(price).name("price").print()
    with watching_jobs() as jobs, pytest.raises(ValueError, match="no price"):
        env.execute("prices")
    with page_of(chromium, *jobs) as page:
        page.wait_for_selector("#live.failed")
        assert page.inner_text("#tabs .alarming") == "Exceptions (3)"
        sheet = page.inner_text("#sheet")
        assert sheet.startswith("The job was restarted 2 times.")
        facts = page.locator("#sheet .failure p").all_inner_texts()
        assert all(text.startswith("price (") and ".py:" in text for text in facts)
        assert facts[0].endswith("no restart followed")
        assert facts[1].endswith("restart 2 after 1 ms")
        assert facts[2].endswith("restart 1 after 1 ms")
        assert sheet.count("at record 70") == 3


def test_a_saved_run_can_be_opened_without_a_server(open_page: Any, job: RunningJob) -> None:
    job.run_epoch(500)
    watch = JobWatch(job.started())
    watch.latest()
    job.client.cancel().result(60)
    page = open_page(run_page(watch))
    assert page.inner_text("#live b") == "canceled"
    assert shown(page, 1)[0] == "500"
    assert tab(page, "Epochs").split("\n")[:2] == ["Records a second", "500/s"]
    assert page.is_hidden("#cancel")


def test_a_run_saved_while_running_shows_the_time_of_saving(
    open_page: Any, job: RunningJob
) -> None:
    job.run_epoch(500)
    page = open_page(run_page(JobWatch(job.started())))
    assert page.inner_text("#live b") == "was running"
    assert re.search(r"saved 20\d\d-\d\d-\d\d \d\d:\d\d UTC$", page.inner_text("#live small"))
    assert page.evaluate(
        "() => getComputedStyle(document.querySelector('#live b'), '::before').animationName === 'none'"
    )


CUT = """() => ['#facts', '#live small', '#live span']
  .filter((part) => document.querySelector(part).scrollWidth > document.querySelector(part).clientWidth)"""


def test_the_heading_and_the_facts_of_a_run_are_not_cut(chromium: Any, job: RunningJob) -> None:
    with page_of(chromium, job.started()) as page:
        job.run_epoch(20_000)
        wait_for_epoch(page, 1)
        page.evaluate(
            """() => {
              document.getElementById('facts').textContent = 'streaming  ·  269 operators in 153 vertices  ·  152 exchanges';
              document.querySelector('#live span').textContent = 'epoch 12,345 in 12.4 s  ·  120.1 k records/s  ·  state 161.3 KiB  ·  21.5 s behind';
            }"""
        )
        assert page.evaluate(CUT) == []


def test_zoomed_out_vertices_show_their_rate(opened: Any, job: RunningJob) -> None:
    page = opened
    page.wait_for_selector(".vertex[data-number='1'].is-running")
    job.run_epoch(1_000)
    wait_for_epoch(page, 1)
    words = page.locator(".vertex .far .state-word").all_text_contents()
    assert words[0].startswith("1,000/s \u00b7 busy ")


def test_the_legend_is_beside_the_drawing_on_a_phone(opened: Any, job: RunningJob) -> None:
    page = opened
    page.wait_for_selector("#live.running")
    page.click("#tabs [aria-selected='true']")  # closes it
    page.set_viewport_size({"width": 390, "height": 844})
    view, legend, strip = (
        page.locator(name).bounding_box() for name in ("#view", "#legend", "#strip")
    )
    assert view["y"] + view["height"] <= legend["y"]
    assert legend["y"] + legend["height"] <= strip["y"]


def test_a_bounded_job_shows_the_tasks_that_are_done(chromium: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_collection([1]).rebalance().map(str).print()
    plan = compile_program(env.program("numbers"))
    progress = CountedProgress(required(plan.job_program))
    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(120)
        raise RuntimeError("stopped")

    client = JobRun(run, let_go.set, progress=progress).start()
    with page_of(chromium, StartedJob("numbers", client, plan)) as page:
        page.wait_for_function(
            "() => document.querySelector('#live span').textContent === '0 of 3 tasks done'"
        )
        progress.finished(0, TASK)
        page.wait_for_function(
            "() => document.querySelector('#live span').textContent === '1 of 3 tasks done'"
        )
        page.wait_for_function(
            "() => document.querySelector('.vertex .numbers b').textContent === '3'"
        )
        assert shown(page, 1)[:2] == ["3", "2"]
        assert shown(page, 2)[:2] == ["0", "0"]
        client.cancel().result(60)
        page.wait_for_selector("#live.over")
