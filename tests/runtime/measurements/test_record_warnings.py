"""Late records are counted, shown and warned about, wherever a job runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from example_epoch import PROGRESS
from forms import FORMS, job_of, run_form, seen

from opchain.common import Configuration, Duration, Time, WatermarkStrategy
from opchain.datastream import OutputTag, StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.functions import ProcessJoinFunction
from opchain.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from opchain.runtime.epochs.epoch_progress import EpochHistory
from opchain.runtime.local.live_run import LiveRun, StopSwitch
from opchain.runtime.measurements.record_warnings import RecordWarnings
from opchain.runtime.shipping.outcome import read_outcome
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from pathlib import Path

ASCENDING: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)
TIMES = [5, 50, 7, 51, 8, 9]
"""Three records are late where watermarks follow each record."""


def local(parallelism: int = 1) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    configuration.set_string("opchain.batch-size", "1")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(parallelism)


def counted(stream: Any, windows: Any = None) -> Any:
    windows = windows or TumblingEventTimeWindows.of(Time.milliseconds(10))
    keyed = stream.assign_timestamps_and_watermarks(ASCENDING).key_by(lambda value: 0)
    return keyed.window(windows).reduce(lambda a, b: a + b).name("sums")


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "dropped" in record.message]


@pytest.mark.parametrize(
    "windows",
    [
        None,
        SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(10)),
    ],
)
def test_a_bounded_job_warns_once_and_shows_a_column(
    caplog: pytest.LogCaptureFixture, windows: Any
) -> None:
    env = local()
    counted(env.from_collection(TIMES), windows).collect_async()
    metrics = env.execute().metrics
    assert metrics.operator("sums").late_records_dropped == 3
    (warning,) = warnings_in(caplog)
    assert warning.startswith("'sums' (")
    assert "test_record_warnings.py:" in warning
    assert "dropped 3 of 6 records as late: their windows had closed" in warning
    assert "allowed_lateness() or side_output_late_data()" in warning
    lines = metrics.table().splitlines()
    assert lines[0].endswith("dropped late")
    assert [line.split()[-1] for line in lines if line.strip().startswith("sums")] == ["3"] * 3


def test_a_job_without_late_records_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    env = local()
    counted(env.from_collection([1, 2, 30])).collect_async()
    assert "dropped late" not in env.execute().metrics.table()
    assert warnings_in(caplog) == []


def test_records_for_a_late_side_output_are_not_counted_as_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = local()
    tag: Any = OutputTag("late")
    keyed = (
        env.from_collection(TIMES)
        .assign_timestamps_and_watermarks(ASCENDING)
        .key_by(lambda value: 0)
    )
    windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    sums = windowed.side_output_late_data(tag).reduce(lambda a, b: a + b)
    late = sums.get_side_output(tag).collect_async()
    sums.collect_async()
    env.execute()
    assert list(late) == [7, 8, 9]
    assert warnings_in(caplog) == []


class Pairs(ProcessJoinFunction[Any, Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


@pytest.mark.parametrize("form", FORMS)
def test_an_interval_join_counts_its_late_records(
    caplog: pytest.LogCaptureFixture, form: str
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        first, second = (
            env.from_collection(TIMES)
            .assign_timestamps_and_watermarks(ASCENDING)
            .key_by(lambda value: 0)
            for _ in range(2)
        )
        joined = first.interval_join(second).between(Time.milliseconds(0), Time.milliseconds(1))
        seen(joined.process(Pairs()).name("pairs"), "out")

    ran = run_form(draw, form, batch_size=1)
    metrics = ran.outcome.metrics
    assert metrics.operator("pairs").late_records_dropped == 6  # three of each input
    RecordWarnings(ran.job).look_at(metrics)
    (warning,) = warnings_in(caplog)
    assert "dropped 6 of 12 records as late: they were behind the watermark" in warning
    assert "side_output_left_late_data()" in warning


def test_the_warning_is_repeated_when_ten_times_as_many_were_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = job_of(lambda env: seen(counted(env.from_collection(TIMES)), "out"))
    (operator,) = (
        operator
        for vertex in job.vertices
        for operator in vertex.operators
        if operator.name == "sums"
    )
    warnings = RecordWarnings(job)
    for dropped in (0, 1, 2, 9, 10, 11, 99, 1000, 1001):
        warnings.note(operator.operator_id, dropped, 2000)
    assert [text.split(" dropped ")[1].split(" ")[0] for text in warnings_in(caplog)] == [
        "1",
        "10",
        "1,000",
    ]


@pytest.mark.parametrize("restarts", [False, True])
def test_dropped_records_of_epochs_are_added(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, restarts: bool
) -> None:
    """A process that takes over a task counts from 0; the totals of the run continue."""

    def draw(env: StreamExecutionEnvironment) -> None:
        seen(counted(given(env, "times")), "out")

    run = EpochRun(draw, tmp_path, settings={"batch_size": 1})
    history = EpochHistory(run.job)
    for times in (TIMES, [60, 2, 3], [61]):
        history.add(PROGRESS, run.run(times=times).outcome)
        if restarts:
            run = run.restarted()
    run.close()
    assert history.totals().operator("sums").late_records_dropped == 5
    assert [text.split("dropped ")[1].split(" as")[0] for text in warnings_in(caplog)] == [
        "3 of 6 records"
    ]


def test_an_unbounded_job_in_process_warns(caplog: pytest.LogCaptureFixture) -> None:
    job = job_of(lambda env: seen(counted(env.from_collection(TIMES)), "out"), batch_size=1)
    live = LiveRun(job, TaskEnvironment(), StopSwitch())
    read_outcome(job, live.buffers())
    (warning,) = warnings_in(caplog)
    assert "dropped 3 of 6 records as late" in warning


def test_the_warning_about_files_read_one_after_the_other_gives_the_cause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f"{time}\n" for time in range(0, 100, 5)))
    env = local()
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    strategy: Any = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    stream = env.from_source(lines.build(), WatermarkStrategy.no_watermarks(), "lines")
    counted(stream.map(int).assign_timestamps_and_watermarks(strategy)).collect_async()
    with caplog.at_level(logging.WARNING, "opchain.job"):
        metrics = env.execute().metrics
    assert metrics.operator("sums").late_records_dropped == 18
    (warning,) = warnings_in(caplog)
    assert "downstream of 'Source: lines'" in warning
    assert "Give the watermark strategy to from_source()" in warning
