from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of

from opchain.datastream.functions import SourceFunction
from opchain.runtime.mailbox.mailbox_executor import YieldNotAllowedError
from opchain.runtime.mailbox.timer_service import PeriodTimer
from opchain.runtime.task.report import TaskReport, read_items
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream import StreamExecutionEnvironment
    from opchain.runtime.records.elements import Buffer


def two_vertices(env: StreamExecutionEnvironment) -> None:
    """A buffer for each batch of numbers, from one vertex to another."""
    env.set_buffer_timeout(0)
    env.from_collection(list(range(10))).map(int).rebalance().map(str).name("text").print()


class Numbers(SourceFunction[int]):
    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        for number in range(10):
            ctx.collect(number)

    def cancel(self) -> None:
        pass


def legacy(env: StreamExecutionEnvironment) -> None:
    env.set_buffer_timeout(0)
    env.add_source(Numbers(), "numbers").rebalance().print()


def task_of(draw: Any, clock: ManualClock | None = None, **keys: Any) -> StreamTask:
    return StreamTask(job_of(draw, **keys), 0, iter(()), TaskEnvironment(timers=clock))


def report_of(buffers: list[Buffer]) -> TaskReport:
    report: TaskReport = read_items(buffers[-1])[-1]
    return report


def test_the_report_is_sent_last_and_once() -> None:
    buffers = list(task_of(two_vertices, batch_size=3).run())
    assert [buffer.target for buffer in buffers] == [1] * (len(buffers) - 1) + [-1]
    (report,) = read_items(buffers[-1])
    assert report == report_of(buffers)
    assert (report.task, report.attempt_id) == (0, "local")
    assert report.metrics.records_out == 10


def test_due_timers_fire_before_operators_finish_and_later_ones_never() -> None:
    clock = ManualClock()
    task = task_of(two_vertices, clock)
    happened: list[Any] = []
    source, operator = task.chain.operators
    time = operator.context.processing_time
    time.register_timer(5, lambda at_ms: happened.append(("fired for", at_ms)))
    time.register_timer(9, lambda at_ms: happened.append(("fired for", at_ms)))
    finish = operator.finish

    def finish_and_tell() -> None:
        happened.append("finish")
        clock.advance(100)
        finish()

    operator.finish = finish_and_tell  # type: ignore[method-assign]
    clock.advance(5)  # one timer is mail now, the other still waits
    assert happened == []
    list(task.run())
    assert happened == [("fired for", 5), "finish"]
    assert source.records_in == 10


def test_a_task_is_back_pressured_while_a_buffer_is_being_taken() -> None:
    clock = ManualClock()
    task = task_of(two_vertices, clock, batch_size=1)
    task.processor.metrics.back_pressured = timer = PeriodTimer(clock.now_ns)
    buffers = []
    for buffer in task.run():
        buffers.append(buffer)
        clock.advance(7)
    assert len(buffers) > 10
    assert timer.total_ns == 7_000_000 * len(buffers)
    # The report was made before the last two buffers were taken: the end of input, and the report itself.
    assert report_of(buffers).metrics.back_pressured_ns == 7_000_000 * (len(buffers) - 2)


def test_a_task_is_idle_while_it_waits_for_a_buffer() -> None:
    clock = ManualClock()
    job = job_of(two_vertices, batch_size=1)
    sent = list(StreamTask(job, 0, iter(())).run())[:-1]

    def arriving() -> Iterator[Buffer]:
        for buffer in sent:
            clock.advance(3)
            yield buffer
        clock.advance(3)

    task = StreamTask(job, 1, arriving(), TaskEnvironment(timers=clock))
    task.processor.metrics.idle = PeriodTimer(clock.now_ns)
    metrics = report_of(list(task.run())).metrics
    assert metrics.idle_ns == 3_000_000 * (len(sent) + 1)
    assert metrics.buffers_in == len(sent)


def test_a_source_on_its_own_thread_waits_while_buffers_are_taken() -> None:
    task = task_of(legacy, batch_size=2)
    lock = task._source_lock
    taken = 0
    with ThreadPoolExecutor(1) as others:
        for _ in task.run():
            taken += 1
            assert not others.submit(lock.acquire, False).result()  # type: ignore[attr-defined]
    assert taken > 5


def test_an_operator_chained_to_a_source_function_must_not_yield() -> None:
    task = task_of(legacy)
    with pytest.raises(YieldNotAllowedError):
        task.chain.operators[0].context.mailbox.yield_()
    with pytest.raises(YieldNotAllowedError):
        task.chain.operators[0].context.mailbox.try_yield()
    other = task_of(two_vertices)
    assert other.chain.operators[0].context.mailbox.try_yield() is False
    task._close()
    other._close()


@pytest.mark.parametrize("draw", [two_vertices, legacy])
def test_a_task_cancels_its_own_timers_only(draw: Any) -> None:
    own = task_of(draw)
    own._timers.call_at(2**60, lambda: None)
    list(own.run())
    thread = own._timers._thread  # type: ignore[attr-defined]
    assert thread is not None
    assert not thread.is_alive()
    clock = ManualClock()
    list(task_of(draw, clock).run())
    fired: list[int] = []
    clock.call_at(1, lambda: fired.append(1))
    clock.advance(1)
    assert fired == [1]
