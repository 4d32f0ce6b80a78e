from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, job_of, notes_of, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.datastream.functions import ProcessFunction, SourceFunction
from opchain.runtime.errors import InternalError
from opchain.runtime.functions.source import Source
from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.records.elements import (
    CheckpointBarrier,
    EndOfInput,
    LatencyMarker,
    NothingYet,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.records.wire import decode
from opchain.runtime.task.input import task_input
from opchain.runtime.task.input.input_gate import InputElement
from opchain.runtime.task.input.task_input import GateInput, SourceInput, Waiter
from opchain.runtime.task.stream_task import StreamTask
from opchain.runtime.testing.operator_harness import ManualClock
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

IDLE = "idle"


class Scripted(SourceFunction[Any]):
    """Follows a script: records, (record, timestamp), "w5" for a watermark, IDLE, or a call."""

    def __init__(self, *script: Any) -> None:
        self.script = script
        self.log: list[str] = []

    def open(self, runtime_context: Any) -> None:
        self.log.append("open")

    def run(self, ctx: SourceFunction.SourceContext[Any]) -> None:
        for step in self.script:
            if callable(step):
                step(ctx)
            elif isinstance(step, tuple):
                ctx.collect_with_timestamp(*step)
            elif step == IDLE:
                ctx.mark_as_temporarily_idle()
            elif isinstance(step, str):
                ctx.emit_watermark(int(step[1:]))
            else:
                ctx.collect(step)
        self.log.append("ran")

    def cancel(self) -> None:
        self.log.append("cancel")

    def close(self) -> None:
        self.log.append("close")


class Sees(ProcessFunction[Any, Any]):
    """The record, its timestamp, and the watermark at its arrival."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def same(stream: Any) -> Any:
    return stream


def sent(*script: Any, **settings: Any) -> list[Any]:
    """The elements that a scripted source sends over an exchange."""

    def draw(env: Any) -> None:
        env.add_source(Scripted(*script)).rebalance().process(Sees()).print()

    buffers = StreamTask(job_of(draw, **settings), 0, iter(())).run()
    return [
        element for buffer in buffers if buffer.target >= 0 for element in decode(buffer.payload)
    ]


# Source functions


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("between", [same, lambda stream: stream.rebalance()])
def test_records_are_emitted_with_timestamps_between_their_watermarks(
    between: Callable[[Any], Any], form: str
) -> None:
    def draw(env: Any) -> None:
        source = env.add_source(Scripted(1, (2, 20), "w15", (3, 30), IDLE, (4, 40), "w50", 5))
        seen(between(source).process(Sees()), "all")

    assert run_form(draw, form).records("all") == [
        (1, MIN_LONG_VALUE, MIN_LONG_VALUE),
        (2, 20, MIN_LONG_VALUE),
        (3, 30, 15),
        (4, 40, 15),
        (5, MIN_LONG_VALUE, 50),
    ]


def test_the_last_watermark_is_sent_at_the_end() -> None:
    assert sent(1, (2, 20), "w15", IDLE, 3) == [
        RecordBatch([1, 2], [None, 20]),
        *(Watermark(15), WatermarkStatus.IDLE, WatermarkStatus.ACTIVE),
        RecordBatch([3]),
        *(Watermark(MAX_LONG_VALUE), EndOfInput()),
    ]


def test_an_idle_source_becomes_active_for_its_last_watermark() -> None:
    """The watermark of an idle channel would be ignored, and no timer downstream would fire."""
    assert sent(1, IDLE)[1:] == [
        *(WatermarkStatus.IDLE, WatermarkStatus.ACTIVE),
        *(Watermark(MAX_LONG_VALUE), EndOfInput()),
    ]


@pytest.mark.parametrize("script", [("w5",), ("w5", "w5", "w3", "w4")])
def test_a_decreasing_watermark_is_dropped(script: tuple[str, ...]) -> None:
    assert sent(*script) == [Watermark(5), Watermark(MAX_LONG_VALUE), EndOfInput()]


def test_idleness_is_emitted_once_and_ended_by_any_watermark() -> None:
    idle, active = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE
    assert sent(IDLE, IDLE, "w3", IDLE, "w2", 4) == [
        *(idle, active, Watermark(3)),
        *(idle, active, RecordBatch([4])),
        *(Watermark(MAX_LONG_VALUE), EndOfInput()),
    ]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_the_batch_size_does_not_affect_the_records(batch_size: int) -> None:
    elements = sent(*range(7), batch_size=batch_size)
    records = [value for item in elements if isinstance(item, RecordBatch) for value in item.values]
    assert records == list(range(7))


def test_a_source_function_is_opened_run_cancelled_and_closed() -> None:
    source = Scripted(1)
    job = job_of(lambda env: env.add_source(source).print())
    list(StreamTask(job, 0, iter(())).run())
    assert source.log == ["open", "ran", "cancel", "close"]


def test_an_endless_source_function_ends_when_its_reader_is_closed() -> None:
    def for_ever(ctx: Any) -> None:
        while True:
            ctx.collect(1)

    source = Scripted(for_ever)
    job = job_of(lambda env: env.add_source(source, "it").rebalance().print(), batch_size=1)
    running = StreamTask(job, 0, iter(())).run()
    next(running)
    its_thread = "legacy source 'Source: it'"
    assert its_thread in {thread.name for thread in threading.enumerate()}
    running.close()
    assert source.log == ["open", "cancel", "close"]
    assert its_thread not in {thread.name for thread in threading.enumerate()}


def raising(_: Any) -> None:
    raise OSError("connection lost")


@pytest.mark.parametrize("form", FORMS)
def test_an_error_in_run_fails_the_job_after_the_collected_records(form: str) -> None:
    error = failure_of(lambda env: env.add_source(Scripted(1, raising), "it").print(), form)
    assert type(error) is OSError
    assert "in 'Source: it' (test_task_input.py:" in notes_of(error)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_source_function_cannot_swallow_errors_of_operators_downstream(
    batch_size: int, form: str
) -> None:
    def swallow(ctx: Any) -> None:
        for number in (1, 0, 2, 0):
            try:
                ctx.collect(number)
            except ZeroDivisionError:  # noqa: PERF203 - users write this
                continue

    def draw(env: Any) -> None:
        env.add_source(Scripted(swallow)).map(lambda x: 1 // x).name("divide").print()

    error = failure_of(draw, form, batch_size=batch_size)
    assert type(error) is ZeroDivisionError
    assert "in 'divide' (test_task_input.py:" in notes_of(error)
    assert ", at record 0" in notes_of(error)


def test_the_checkpoint_lock_blocks_the_task() -> None:
    def locked(ctx: Any) -> None:
        with ctx.get_checkpoint_lock():
            ctx.collect(1)
            ctx.collect(2)

    assert sent(locked)[0] == RecordBatch([1, 2])


def test_a_batch_flushed_by_a_watermark_is_processed_before_the_watermark() -> None:
    def draw(env: Any) -> None:
        seen(env.add_source(Scripted((1, 1), "w1", (2, 2))).process(Sees()), "all")

    records = run_form(draw, batch_size=100).records("all")
    assert [watermark for *_, watermark in records] == [MIN_LONG_VALUE, 1]


# Sources with splits


class Batches(Source[Any]):
    """Returns the batches of a script, and records whether it was closed."""

    def __init__(self, *batches: Any, has_timestamps: bool = False) -> None:
        self.batches = batches
        self.has_timestamps = has_timestamps
        self.is_closed = False

    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        return [[self.batches[:1], self.batches[1:]], *[[] for _ in range(parallelism - 1)]]

    def read(self, split: Any, batch_size: int) -> Iterator[Any]:
        try:
            yield from split
        finally:
            self.is_closed = True


def read(source: Batches, **settings: Any) -> Any:
    def draw(env: Any) -> None:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "batches")
        seen(stream.process(Sees()), "all")

    return run_form(draw, **settings)


def test_the_splits_of_a_subtask_are_read_one_after_the_other() -> None:
    ran = read(Batches([1, 2], [3], [], [4]), parallelism=2)
    assert ran.subtasks("all").keys() == {0, 1}
    assert [value for (value, _, _), _ in ran.subtasks("all")[0]] == [1, 2, 3, 4]
    assert ran.subtasks("all")[1] == []


def test_a_connector_may_bring_timestamps() -> None:
    source = Batches(RecordBatch([1, 2], [10, None]), RecordBatch([3]), has_timestamps=True)
    assert [(value, time) for value, time, _ in read(source).records("all")] == [
        *((1, 10), (2, MIN_LONG_VALUE), (3, MIN_LONG_VALUE)),
    ]


def test_a_reader_is_closed_when_the_task_is_closed_early() -> None:
    source = Batches([1], [2], [3])

    def draw(env: Any) -> None:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "batches")
        stream.rebalance().print()

    running = StreamTask(job_of(lambda env: draw(env.set_buffer_timeout(0))), 0, iter(())).run()
    next(running)
    assert not source.is_closed
    running.close()
    assert source.is_closed


class Controller:
    """Records that the loop is to end."""

    def __init__(self) -> None:
        self.is_completed = False

    def all_actions_completed(self) -> None:
        self.is_completed = True


class Chain:
    """Records the elements that it processes."""

    def __init__(self) -> None:
        self.fed: list[Any] = []
        self.head = self

    def process_batch(self, number: int, values: Any, timestamps: Any) -> None:
        self.fed.append((number, values, timestamps))

    def process_watermark(self, number: int, watermark: int) -> None:
        self.fed.append((number, watermark))

    def process_status(self, number: int, *, is_idle: bool) -> None:
        self.fed.append((number, "idle" if is_idle else "active"))

    def end_input(self, number: int) -> None:
        self.fed.append((number, "end"))

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self.fed.append(marker)


class Operator:
    def __init__(self, *batches: Any) -> None:
        self._batches = batches

    def batches(self) -> Any:
        return iter(self._batches)


def fed_by(task_input: Any, chain: Chain) -> list[Any]:
    controller = Controller()
    while not controller.is_completed:
        task_input.process_next(controller)
    task_input.close()
    return chain.fed


def test_one_batch_is_read_per_turn_and_then_event_time_ends() -> None:
    chain: Any = Chain()
    operator: Any = Operator([1], RecordBatch([2], [5]))
    waiter: Any = None
    assert fed_by(SourceInput(operator.batches(), chain, waiter), chain) == [
        *((0, [1], None), (0, [2], [5])),
        (0, MAX_LONG_VALUE),
    ]


class Cut(Chain):
    """A chain that records the parts of a batch; a record takes a millisecond of the clock."""

    def __init__(self, clock: ManualSeconds) -> None:
        super().__init__()
        self.clock = clock
        self.calls: list[Any] = []

    def process_part(self, number: int, values: Any, timestamps: Any) -> None:
        assert timestamps == list(values)
        self.calls.append(len(values))
        self.clock.now_s += len(values) / 1000

    def process_batch(self, number: int, values: Any, timestamps: Any) -> None:
        self.process_part(number, values, timestamps)
        self.on_batch_end()

    def end_part(self) -> None:
        self.calls.append("part")

    def on_batch_end(self) -> None:
        self.calls.append("batch")

    def flush(self) -> None:
        self.calls.append("flush")


class ManualSeconds:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_slow_batches_are_processed_in_parts_between_which_mail_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualSeconds()
    monkeypatch.setattr(task_input, "perf_counter", clock)
    chain: Any = Cut(clock)
    waiter: Any = None
    numbers = list(range(100))
    batches = iter([RecordBatch(numbers, numbers), RecordBatch(numbers[:15], numbers[:15])])
    given = SourceInput(batches, chain, waiter)
    processor = MailboxProcessor(given.process_next, before_mail=given.before_mail)
    processor.turn()
    processor.mailbox_executor().execute(lambda: chain.calls.append("mail"), "mail")
    while processor.turn():
        pass
    assert chain.calls == [
        *(64, "part", "flush", "mail", 20, "part", 16, "batch"),
        *(15, "batch"),
    ]


def test_fast_batches_are_processed_whole_after_the_first_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_input, "perf_counter", lambda: 0.0)
    chain: Any = Cut(ManualSeconds())
    waiter: Any = None
    numbers = list(range(1000))
    batches = iter([RecordBatch(numbers, numbers)] * 3)
    assert fed_by(SourceInput(batches, chain, waiter), chain) == [(0, MAX_LONG_VALUE)]
    parts = [call for call in chain.calls if call != "part"]
    assert parts == [64, 128, 256, 512, 40, "batch", 1000, "batch", 1000, "batch"]


def test_an_empty_batch_suspends_the_default_action_until_its_time() -> None:
    chain: Any = Cut(ManualSeconds())
    clock = ManualClock()
    batches = iter([NothingYet(0.5), RecordBatch([1], [1])])
    processor = MailboxProcessor(lambda controller: given[0].process_next(controller))  # noqa: PLW0108 - created below
    given = [SourceInput(batches, chain, Waiter(processor, clock))]
    processor.turn()
    assert processor._suspension is not None
    clock.advance_to(499)
    assert not processor.run_mailbox_step()
    clock.advance_to(501)
    while processor.turn():
        pass
    assert chain.calls == ["batch", 1, "batch"]


class Valves:
    """Forwards all watermarks."""

    def combine(self, number: int, channel: int, element: Any) -> tuple[Any, ...]:
        return (element,)


def test_each_kind_of_element_of_a_gate_is_processed() -> None:
    marker = LatencyMarker(0, "source", 0)
    elements = [
        InputElement(1, 0, RecordBatch([1], [2])),
        InputElement(0, 1, Watermark(3)),
        InputElement(0, 1, WatermarkStatus.IDLE),
        InputElement(0, 1, WatermarkStatus.ACTIVE),
        InputElement(0, 1, marker),
        InputElement(0, 1, EndOfInput()),
    ]
    chain: Any = Chain()
    valves: Any = Valves()
    assert fed_by(GateInput(elements, valves, chain), chain) == [
        *((1, [1], [2]), (0, 3), (0, "idle"), (0, "active")),
        *(marker, (0, "end")),
    ]


def test_a_barrier_in_a_bounded_task_is_an_internal_error() -> None:
    valves: Any = Valves()
    chain: Any = Chain()
    gate = GateInput([InputElement(0, 0, CheckpointBarrier(1, 0))], valves, chain)
    with pytest.raises(InternalError, match="CheckpointBarrier"):
        gate.process_next(Controller())  # type: ignore[arg-type]
