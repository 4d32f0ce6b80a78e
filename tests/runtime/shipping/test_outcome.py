from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import ForgetfulCommitter, job_of, seen

from opchain.runtime.errors import InternalError, SinkError
from opchain.runtime.local.job import run_tasks
from opchain.runtime.program.vertex_program import DRIVER
from opchain.runtime.records.elements import Buffer
from opchain.runtime.records.wire import PayloadKind, frame
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.shipping.outcome import commit, print_lines, read_outcome, with_idle_time
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.program.vertex_program import JobProgram

RECORDS = 3_000


def draw(env: Any) -> None:
    stream = env.from_collection(list(range(RECORDS)))
    stream.rebalance().map(str).print()
    stream.collect_async()


def told(job: JobProgram) -> list[Buffer]:
    """The buffers that the tasks of a job send to the driver on Spark."""
    environment = TaskEnvironment(prints_on_driver=True)
    return list(run_tasks(job, ship_vertices(job), environment=environment))


def test_the_outcome_is_read_from_buffers_in_any_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = job_of(draw, parallelism=2)
    buffers = told(job)
    random.Random(1).shuffle(buffers)
    outcome = read_outcome(job, buffers)
    assert sorted(outcome.reports) == list(job.tasks)
    (uid,) = (where for kind, where in outcome.records if kind == "collect")
    assert list(outcome.collected(uid)) == list(range(RECORDS))
    print_lines(outcome)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == RECORDS
    assert [line[0] for line in lines] == sorted(line[0] for line in lines)
    for subtask in "12":
        numbers = [int(line[3:]) for line in lines if line[0] == subtask]
        assert numbers == sorted(numbers)


def test_records_are_unpickled_when_they_are_read_and_can_be_read_once() -> None:
    job = job_of(draw)
    outcome = read_outcome(job, told(job))
    (uid,) = (where for kind, where in outcome.records if kind == "collect")
    records = outcome.collected(uid)
    assert next(records) == 0
    assert sum(1 for _ in records) == RECORDS - 1
    assert list(outcome.collected(uid)) == []
    assert list(outcome.collected("unknown")) == []
    outcome.close()
    assert list(outcome.printed(to_stderr=False)) == []


def is_report(buffer: Buffer) -> bool:
    return buffer.payload[5] == PayloadKind.REPORT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda buffers: [b for b in buffers if not (is_report(b) and b.channel == 1)],
            "tasks \\[1\\]",
        ),
        (lambda buffers: [b for b in buffers if is_report(b) or b.sequence != 1], "buffers 0 to"),
        (lambda buffers: [*buffers, next(b for b in buffers if not is_report(b))], "buffers 0 to"),
    ],
    ids=["a report is missing", "a buffer is missing", "a buffer is repeated"],
)
def test_a_missing_or_repeated_buffer_is_an_error(change: Any, message: str) -> None:
    job = job_of(draw, parallelism=2)
    buffers = told(job)
    read_outcome(job, buffers).close()
    with pytest.raises(InternalError, match=message):
        read_outcome(job, change(buffers))


def test_an_unknown_acknowledgement_is_an_internal_error() -> None:
    import pickle  # noqa: PLC0415

    job = job_of(draw)
    odd = Buffer(DRIVER, 0, 0, 0, frame(PayloadKind.REPORT, pickle.dumps([("odd", 1, 2)])))
    with pytest.raises(InternalError, match="sent a 'odd'"):
        read_outcome(job, [odd])


def test_the_committer_gets_all_committables_once_and_is_closed() -> None:
    from forms import SeenSink  # noqa: PLC0415

    calls: list[Any] = []

    class Committer(ForgetfulCommitter):
        def commit(self, committables: Any) -> None:
            calls.append(sorted(committables))

        def close(self) -> None:
            calls.append("closed")

    def draw_sink(env: Any) -> None:
        env.from_collection([1, 2, 3]).rebalance().sink_to(SeenSink("s", reads_timestamps=False))

    job = job_of(draw_sink, parallelism=2)
    outcome = read_outcome(job, told(job))
    (vertex, index) = next(iter(outcome.committables))
    job.vertices[vertex].operators[index].spec.sink.create_committer = Committer
    commit(job, outcome)
    assert [len(call) for call in calls] == [2, len("closed")]


def test_output_of_another_kind_of_sink_is_not_committed() -> None:
    from forms import SeenSink  # noqa: PLC0415

    class Committer(ForgetfulCommitter):
        committable = str

    def draw_sink(env: Any) -> None:
        env.from_collection([1]).sink_to(SeenSink("s", reads_timestamps=False))

    job = job_of(draw_sink, parallelism=1)
    outcome = read_outcome(job, told(job))
    (vertex, index) = next(iter(outcome.committables))
    job.vertices[vertex].operators[index].spec.sink.create_committer = Committer
    with pytest.raises(SinkError, match="output of another kind of sink with the same uid"):
        commit(job, outcome)


def test_the_time_between_two_epochs_counts_as_idle(tmp_path: Path) -> None:
    run = EpochRun(lambda env: seen(given(env, "words"), "words"), tmp_path)
    ran = run.run(words=["a"])
    run.close()
    spread = with_idle_time(ran.job, ran.outcome, 3_600_000.0)
    (vertex,) = spread.metrics.vertices
    assert vertex.idle_time_ms_per_second > 990
    assert vertex.records_in == 1
    assert spread.reports[0].metrics.elapsed_ns == 3_600_000_000_000
    assert ran.outcome.metrics.vertices[0].idle_time_ms_per_second < 990
