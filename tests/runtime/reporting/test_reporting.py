"""Metrics and events for Prometheus, OTLP and OpenLineage, read by the parsers of these projects."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen
from receivers import JsonReceiver, OtlpReceiver, receiving

from opchain.common import Configuration, Duration, Encoder, Time, WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from opchain.datastream.connectors.hybrid_source import HybridSource
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.epochs.epoch_progress import EpochHistory, epoch_progress
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.restarts import Restarts, RestartStrategy
from opchain.runtime.job.run import JobRun
from opchain.runtime.reporting.open_lineage import OpenLineageReporter, datasets_of
from opchain.runtime.reporting.open_telemetry import OpenTelemetryReporter
from opchain.runtime.reporting.prometheus import PrometheusEndpoint, PrometheusTextfile
from opchain.runtime.reporting.reporting import Reporter, Reporting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.reporting.samples import JobSamples
    from opchain.runtime.shipping.outcome import JobOutcome

MONITORING = Path(__file__).parents[3] / "docs" / "monitoring"
START_MS = 1_700_000_000_000
LONGEST_S = 60


def parsed(text: str) -> dict[str, list[Any]]:
    """The samples by name, as the parser of Prometheus reads them."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    found: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def total(samples: list[Any], **labels: str) -> float:
    """The sum of the samples with the given labels."""
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def windowed(env: StreamExecutionEnvironment) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(0)
    ).with_timestamp_assigner(lambda number, _: START_MS + number)
    numbers = given(env, "numbers", strategy).map(lambda number: (number % 2, number)).name("pair")
    windows = numbers.key_by(lambda pair: pair[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    )
    return windows.reduce(lambda a, b: (a[0], a[1] + b[1])).name("sums").uid("sums")


def job_program(folder: Path) -> JobProgram:
    run = EpochRun(lambda env: seen(windowed(env), "out"), folder / "names", 1)
    run.close()
    return run.job


class EpochsByHand:
    """An unbounded job with reporters, whose epochs a test runs one by one."""

    def __init__(self, folder: Path, *makers: Callable[[JobSamples], Reporter]) -> None:
        self.epochs = EpochRun(
            lambda env: seen(windowed(env), "out"), folder, 1, settings={"batch_size": 1}
        )
        self.job = self.epochs.job
        self.history = EpochHistory(self.job)
        self._let_go = threading.Event()
        self.restarts = Restarts(RestartStrategy("fixed-delay", attempts=3))
        self.client = JobRun(
            self._wait, self._let_go.set, history=self.history, restarts=self.restarts
        )
        self.reporting = Reporting(self.job, self.client, makers, interval_s=LONGEST_S)
        self.client.start()
        self._number = 0

    def run_epoch(self, numbers: list[int], lags: tuple[int, ...] = (0,)) -> None:
        self._number += 1
        outcome = self.epochs.run(START_MS, numbers=numbers).outcome
        source = self.job.vertices[0].operators[0].operator_id
        progress = epoch_progress(
            self.job,
            outcome,
            Epoch(self._number, START_MS + 1_500),
            run_id="run",
            batch=self._number - 1,
            checkpoint=f"place/chk-{self._number}",
            durations_ms={"waiting": 400.0, "tasks": 500.0, "checkpoint": 80.0, "commit": 20.0},
            splits={source: {f"visits-{n}": {"next": 7, "lag": lag} for n, lag in enumerate(lags)}},
        )
        self.history.add(progress, outcome)

    def end(self) -> None:
        self.client.cancel().result(LONGEST_S)
        self.epochs.close()

    def _wait(self) -> JobOutcome:
        assert self._let_go.wait(120)
        raise RuntimeError("stopped")


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[EpochsByHand]:
    running = EpochsByHand(tmp_path, lambda samples: PrometheusEndpoint("127.0.0.1:0", samples.now))
    yield running
    running.end()


def scraped(running: EpochsByHand) -> dict[str, list[Any]]:
    (endpoint,) = running.reporting.reporters
    assert isinstance(endpoint, PrometheusEndpoint)
    with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=60) as answer:
        return parsed(answer.read().decode())


def test_prometheus_gets_the_metrics_of_an_unbounded_job_under_flinks_names(
    by_hand: EpochsByHand,
) -> None:
    by_hand.run_epoch([1, 2, 3, 25, 26], lags=(30, 12))
    by_hand.run_epoch([4, 27], lags=(5, 0))
    by_hand.restarts.count = 2
    found = scraped(by_hand)
    operator = "flink_taskmanager_job_task_operator_"
    assert total(found[f"{operator}numRecordsIn"], operator_name="pair") == 7
    assert total(found["flink_taskmanager_job_task_numRecordsIn"]) == 14  # the sum of both tasks
    assert total(found[f"{operator}numLateRecordsDropped"], operator_name="sums") == 1
    assert total(found[f"{operator}pendingRecords"]) == 5
    assert total(found[f"{operator}pendingRecordsOfPartition"], partition="visits-0") == 5
    (lag,) = found[f"{operator}watermarkLag"]
    assert lag.value > 1e9  # the event time is in 2023
    job = "flink_jobmanager_job_"
    assert total(found[f"{job}numRestarts"]) == 2
    assert total(found[f"{job}runningState"]) == 1
    assert total(found[f"{job}numberOfCompletedCheckpoints"]) == 2
    assert total(found[f"{job}lastCompletedCheckpointId"]) == 2
    assert total(found[f"{job}lastCheckpointAge"]) > 1e9
    assert total(found[f"{job}epochDuration"], phase="tasks") == 500.0
    busy = found["flink_taskmanager_job_task_busyTimeMsPerSecond"]
    assert all(0 <= sample.value <= 1000 for sample in busy)
    (name,) = {sample.labels["job_name"] for sample in busy}
    assert name == by_hand.job.job_name


def test_dashboard_and_alerts_use_metrics_that_jobs_report(by_hand: EpochsByHand) -> None:
    import yaml  # noqa: PLC0415 - comes with the tools of the docs

    by_hand.run_epoch([1, 2, 3, 25, 26], lags=(30, 12))
    by_hand.run_epoch([4, 27])
    reported = scraped(by_hand)
    dashboard = json.loads((MONITORING / "grafana.json").read_text("utf-8"))
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    asked += [rule["expr"] for rule in alerts]
    names = {name for text in asked for name in re.findall(r"flink_\w+", text)}
    assert names - reported.keys() == set()
    assert len(names) >= 15
    assert all(rule["annotations"]["summary"] and rule["for"] for rule in alerts)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    labels = {label for text in asked for label in re.findall(r'(\w+)=~?"', text)}
    assert labels <= {label for each in reported.values() for one in each for label in one.labels}


def test_an_otlp_receiver_gets_metrics_and_one_trace_per_epoch(tmp_path: Path) -> None:
    otlp = OtlpReceiver()
    with receiving(otlp.take) as address:
        names = job_program(tmp_path)
        job = EpochsByHand(tmp_path / "job", lambda _: OpenTelemetryReporter(address, names))
        job.run_epoch([1, 2, 3, 25, 26])
        job.run_epoch([4, 27])
        job.end()
    name = job.job.job_name
    assert ("service.name", name) in otlp.resources
    records = otlp.points["flink.taskmanager.job.task.operator.numrecordsin"]
    assert sum(v for key, v in records.items() if ("operator_name", "pair") in key) == 7
    assert set(otlp.points["flink.jobmanager.job.lastcompletedcheckpointid"].values()) == {2.0}
    epochs = [span for span in otlp.spans if span.name == f"epoch {name}"]
    assert len({span.trace_id for span in epochs}) == len(epochs) == 2
    for span in epochs:
        assert span.end_time_unix_nano - span.start_time_unix_nano == 600_000_000
        phases = [each for each in otlp.spans if each.parent_span_id == span.span_id]
        assert [each.name for each in phases] == ["tasks", "checkpoint", "commit"]
        assert phases[0].start_time_unix_nano == span.start_time_unix_nano
        assert phases[-1].end_time_unix_nano == span.end_time_unix_nano
    (whole,) = (span for span in otlp.spans if span.name == f"job {name}")
    (status,) = (
        item.value.string_value for item in whole.attributes if item.key == "opchain.status"
    )
    assert status == "CANCELED"


def test_openlineage_gets_events_for_start_epochs_and_end(tmp_path: Path) -> None:
    events = JsonReceiver()
    with receiving(events.take) as address:
        names = job_program(tmp_path)
        job = EpochsByHand(
            tmp_path / "job",
            lambda _: OpenLineageReporter(address, "prod", names, is_streaming=True),
        )
        job.run_epoch([1, 2])
        job.run_epoch([3])
        job.end()
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "RUNNING", "ABORT"]
    assert len({event["run"]["runId"] for event in events}) == 1
    assert {event["job"]["namespace"] for event in events} == {"prod"}
    assert events[0]["job"]["facets"]["jobType"]["processingType"] == "STREAMING"


def file_job(tmp_path: Path, settings: dict[str, str], *, fail: bool = False) -> Any:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\nc\n")
    configuration = Configuration()
    for key, value in ({"execution.target": "local"} | settings).items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(tmp_path / "in")
    ).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    upper = lines.map(lambda line: 1 / 0 if fail else line.upper()).name("upper")
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    upper.sink_to(sink)
    return env


def test_a_bounded_job_reports_to_all_configured_receivers(tmp_path: Path) -> None:
    """Textfile, OTLP and OpenLineage of one job, all enabled by configuration keys."""
    otlp, events = OtlpReceiver(), JsonReceiver()
    textfile = tmp_path / "job.prom"
    with receiving(otlp.take) as collector, receiving(events.take) as lineage:
        env = file_job(
            tmp_path,
            {
                "opchain.metrics.prometheus.textfile": str(textfile),
                "opchain.metrics.otlp.endpoint": collector,
                "opchain.openlineage.url": lineage,
            },
        )
        env.execute("upper")
    found = parsed(textfile.read_text())
    records = found["flink_taskmanager_job_task_operator_numRecordsIn"]
    assert total(records, operator_name="upper", job_name="upper") == 3
    assert total(found["flink_jobmanager_job_runningState"]) == 0
    points = otlp.points["flink.taskmanager.job.task.operator.numrecordsin"]
    assert sum(v for key, v in points.items() if ("operator_name", "upper") in key) == 3
    start, end = events
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    (read,) = end["inputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "in"))
    assert [each["name"] for each in end["outputs"]] == [str(tmp_path / "out")]
    assert end["job"]["name"] == "upper"


def test_a_failure_is_reported(tmp_path: Path) -> None:
    otlp, events = OtlpReceiver(), JsonReceiver()
    with receiving(otlp.take) as collector, receiving(events.take) as lineage:
        env = file_job(
            tmp_path,
            {"opchain.metrics.otlp.endpoint": collector, "opchain.openlineage.url": lineage},
            fail=True,
        )
        with pytest.raises(ZeroDivisionError):
            env.execute("fails")
    assert [event["eventType"] for event in events] == ["START", "FAIL"]
    message = events[1]["run"]["facets"]["errorMessage"]["message"]
    assert message.startswith("ZeroDivisionError: division by zero")
    (span,) = otlp.spans
    assert span.status.code == 2
    assert span.events[0].name == "exception"


@pytest.mark.slow
def test_an_unreachable_receiver_does_not_end_the_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = file_job(tmp_path, {"opchain.openlineage.url": "http://127.0.0.1:9"})
    env.execute("alone")
    assert any("OpenLineageReporter failed" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("9249", "it must be HOST:PORT, such as 0.0.0.0:9249"),
        ("127.0.0.1:99999", "where no server can listen"),
    ],
)
def test_an_invalid_address_is_refused(tmp_path: Path, address: str, said: str) -> None:
    env = file_job(tmp_path, {"opchain.metrics.prometheus.address": address})
    with pytest.raises(UnsupportedFeatureError, match=re.escape(said)):
        env.execute("refused")


def test_reporting_to_sparks_metrics_system_is_refused_in_process(tmp_path: Path) -> None:
    env = file_job(tmp_path, {"opchain.metrics.spark": "true"})
    with pytest.raises(UnsupportedFeatureError, match="this job runs in this process"):
        env.execute("refused")


def test_a_reporter_that_fails_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Reporter):
        def epoch(self, progress: Any) -> None:
            raise ZeroDivisionError(progress.epoch)

    job = EpochsByHand(tmp_path, lambda _: Fails())
    job.run_epoch([1])
    job.run_epoch([2])
    job.end()
    assert job.client.get_job_status().result() is JobStatus.CANCELED
    failures = [message for message in caplog.messages if "Fails failed" in message]
    assert len(failures) == 1


def test_readers_of_a_textfile_never_see_a_partial_file(tmp_path: Path) -> None:
    path = tmp_path / "job.prom"
    job = EpochsByHand(tmp_path / "job", lambda _: PrometheusTextfile(str(path)))
    job.run_epoch([1, 2])
    job.end()
    assert total(parsed(path.read_text())["flink_jobmanager_job_lastCompletedCheckpointId"]) == 1
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("job.prom")] == [
        "job.prom"
    ]


@pytest.mark.parametrize(
    "url",
    [
        "marquez:5000",
        "ftp://marquez",
        "http://",
        "http://host:port",
        "",
        "http://[::1",
        "https://h:0",
    ],
)
def test_an_invalid_openlineage_url_is_refused(tmp_path: Path, url: str) -> None:
    env = file_job(tmp_path, {"opchain.openlineage.url": url})
    with pytest.raises(GraphError, match=r"opchain.openlineage.url is '.*http://marquez:5000"):
        env.execute("job")


def test_watched_folders_and_hybrid_sources_are_reported_as_inputs(tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("old", "new")]
    old, new = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder)
        for folder in folders
    )
    watched = new.monitor_continuously(Duration.of_seconds(1)).build()
    env = StreamExecutionEnvironment.get_execution_environment()
    hybrid = HybridSource.builder(old.build()).add_source(watched).build()
    for source in (watched, hybrid):
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").print()
    job = compile_program(env.program("lines")).job_program
    assert job is not None
    inputs, outputs = datasets_of(job)
    assert inputs == (("file", folders[1]), ("file", folders[0]))
    assert outputs == ()
