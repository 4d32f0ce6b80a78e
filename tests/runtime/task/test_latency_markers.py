"""Latency markers from the sources to every operator, with a clock that the test advances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of

from opchain.datastream.functions import SourceFunction
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.program.vertex_program import DRIVER
from opchain.runtime.records.elements import LatencyMarker, RecordBatch
from opchain.runtime.records.wire import decode
from opchain.runtime.task.report import read_items
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment
    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.records.elements import Buffer


def two_vertices(interval_ms: int) -> Any:
    """Ten numbers in batches of one buffer each, sent to a vertex of two operators."""

    def draw(env: StreamExecutionEnvironment) -> None:
        env.get_config().set_latency_tracking_interval(interval_ms)
        env.set_buffer_timeout(0)
        numbers = env.from_collection(list(range(10))).name("numbers").map(int).name("to int")
        numbers.rebalance().filter(bool).name("some").print()

    return draw


def run(
    job: JobProgram, task: int, buffers: list[Buffer], clock: ManualClock, step_ms: int
) -> tuple[list[Buffer], TaskMetrics]:
    """Runs a task; each buffer that it yields is taken after the given number of milliseconds."""
    out = []
    for buffer in StreamTask(job, task, iter(buffers), TaskEnvironment(timers=clock)).run():
        out.append(buffer)
        clock.advance(step_ms)
    *others, last = out
    assert last.target == DRIVER
    return others, read_items(last)[-1].metrics


def markers(buffers: list[Buffer]) -> list[LatencyMarker]:
    elements = (element for buffer in buffers for element in decode(buffer.payload))
    return [element for element in elements if isinstance(element, LatencyMarker)]


@pytest.mark.parametrize("form", FORMS)
def test_markers_are_sent_at_the_interval_and_timed_in_all_operators(
    form: str, capsys: Any
) -> None:
    job = job_of(two_vertices(20), form, batch_size=1)
    source, to_int = job.vertices[0].operators
    clock = ManualClock(1_000)
    sent, at_source = run(job, 0, [], clock, step_ms=10)
    found = markers(sent)
    assert [(marker.operator_id, marker.subtask) for marker in found] == [
        (source.operator_id, 0)
    ] * len(found)
    assert [marker.marked_time_ms for marker in found] == [
        1_000 + 20 * number for number in range(len(found))
    ]
    assert len(found) > 3
    (source_counts, map_counts) = at_source.operators
    assert source_counts.latencies == {}
    assert map_counts.latencies == {
        source.operator_id: HistogramValue(len(found), 0, 0, 0, {0: len(found)})
    }
    assert to_int.name == "to int"

    clock.advance_to(5_000)
    _, at_sink = run(job, 1, sent, clock, step_ms=0)
    expected = {5_000 - marker.marked_time_ms: 1 for marker in found}
    for counts in at_sink.operators:
        assert counts.latencies[source.operator_id].exact == expected
    assert [counts.records_in for counts in at_sink.operators] == [10, 9]
    assert capsys.readouterr().out.split() == [str(number) for number in range(1, 10)]


@pytest.mark.parametrize("interval_ms", [0, -1])
def test_without_an_interval_there_is_no_marker_and_no_timer(interval_ms: int) -> None:
    job = job_of(two_vertices(interval_ms), batch_size=1)
    clock = ManualClock()
    sent, metrics = run(job, 0, [], clock, step_ms=10)
    assert markers(sent) == []
    assert clock.waiting_calls == 0
    assert [counts.latencies for counts in metrics.operators] == [{}, {}]


class Numbers(SourceFunction[int]):
    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        for number in range(10):
            ctx.collect(number)

    def cancel(self) -> None:
        pass


def test_a_marker_does_not_overtake_records_of_a_source_on_a_thread() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        env.get_config().set_latency_tracking_interval(20)
        env.add_source(Numbers(), "numbers").rebalance().print()

    job = job_of(draw, batch_size=1_000)
    task = StreamTask(job, 0, iter(()), TaskEnvironment(timers=ManualClock(1_000)))
    task.chain.open()  # the first marker is mail now; the thread of the source is not started
    for number in range(3):
        task._input._deliver((number, None))  # type: ignore[attr-defined]
    assert task.processor.run_mailbox_step()
    for writer in task.writers:
        writer.flush()
    records, marker = (element for buffer in task._ready for element in decode(buffer.payload))
    assert isinstance(records, RecordBatch)
    assert records.values == [0, 1, 2]
    assert marker == LatencyMarker(1_000, job.vertices[0].operators[0].operator_id, 0)
    task._close()
