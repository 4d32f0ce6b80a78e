from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, seen
from shared_lists import SharedList

from opchain.common import WatermarkStrategy
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    CoProcessFunction,
    FlatMapFunction,
    MapFunction,
    ProcessFunction,
    SinkFunction,
)
from opchain.runtime.functions.sink import Sink, SinkWriter
from opchain.runtime.records.elements import (
    EndOfInput,
    LatencyMarker,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.records.wire import decode
from opchain.runtime.task.stream_task import StreamTask
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.task.operator_chain import OperatorChain

SIDE = OutputTag("side")
Draw = Callable[["StreamExecutionEnvironment"], Any]


class Opened:
    """The chain of a task, called by the test; its input is not pickled."""

    def __init__(self, draw: Draw, form: str = "inlined", vertex: int = 0, **settings: Any) -> None:
        self.job = job_of(draw, form, **settings)
        self.task = StreamTask(self.job, self.job.vertices[vertex].first_task, iter(()))
        self.chain: OperatorChain = self.task.chain
        self.chain.open()

    def operator(self, name: str) -> Any:
        return next(item for item in self.chain.operators if name in item.program.name)

    def finish(self) -> None:
        self.chain.finish(self.task.processor.drain)
        for writer in self.task.writers:
            writer.end_of_input()

    def sent(self) -> list[Any]:
        """The elements that were sent, target after target."""
        for writer in self.task.writers:
            writer.flush()
        buffers = sorted(self.task._ready, key=lambda buffer: (buffer.target, buffer.sequence))
        self.task._ready.clear()
        return [element for buffer in buffers for element in decode(buffer.payload)]


class Logs(MapFunction[int, int]):
    """Records the calls of its methods."""

    def __init__(self, name: str, log: list[str], fails: str = "") -> None:
        self.name = name
        self.log = log
        self.fails = fails

    def _happens(self, what: str) -> None:
        self.log.append(f"{what} {self.name}")
        if what in self.fails.split():
            raise ValueError(f"{what} {self.name}")

    def open(self, runtime_context: Any) -> None:
        self._happens("open")

    def map(self, value: int) -> int:
        self._happens("map")
        return value

    def close(self) -> None:
        self._happens("close")


class LogsSink(SinkFunction[int]):
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def open(self, runtime_context: Any) -> None:
        self.log.append("open sink")

    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        self.log.append(f"sink {value}")

    def finish(self) -> None:
        self.log.append("finish sink")

    def close(self) -> None:
        self.log.append("close sink")


class EmitsAtTheEnd(Sink[int]):
    """A sink with a writer that logs and a committer, so that its operator emits at the end."""

    has_committer = True

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def create_writer(self, context: Any) -> SinkWriter[int]:
        return LogsWriter(self.log)


class LogsWriter(SinkWriter[int]):
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def write(self, value: int, timestamp: int | None) -> None:
        self.log.append(f"write {value}")

    def flush(self, *, end_of_input: bool) -> None:
        assert end_of_input
        self.log.append("flush")

    def prepare_commit(self) -> list[str]:
        self.log.append("prepare")
        return ["committable"]

    def close(self) -> None:
        self.log.append("close writer")


# Life cycle


def three(log: list[str], *fails: str) -> Draw:
    first, second = (*fails, "", "")[:2]

    def draw(env: Any) -> None:
        stream = env.from_collection([1]).map(Logs("a", log, first)).map(Logs("b", log, second))
        stream.add_sink(LogsSink(log))

    return draw


def run_here(draw: Draw, form: str = "inlined") -> list[Buffer]:
    """Runs a job of one task without pickling, so that its functions are those of the test."""
    return list(StreamTask(job_of(draw, form), 0, iter(())).run())


@pytest.mark.parametrize("form", FORMS)
def test_operators_are_opened_from_tail_to_head_and_closed_after_they_finished(form: str) -> None:
    log = SharedList()
    run_here(three(log), form)
    assert log == [
        *("open sink", "open b", "open a"),
        *("map a", "map b", "sink 1"),
        "finish sink",
        *("close a", "close b", "close sink"),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_records_emitted_in_finish_reach_operators_that_have_not_finished(form: str) -> None:
    log = SharedList()
    opened = Opened(lambda env: env.from_sequence(1, 1).sink_to(EmitsAtTheEnd(log)), form)
    opened.chain.process_batch(0, [7], None)
    opened.finish()
    opened.chain.close()
    assert log == ["write 7", "flush", "prepare", "close writer"]
    assert opened.task._driver._items == [("commit", 2, "committable")]
    assert opened.operator("Writer").records_out == 1


@pytest.mark.parametrize(
    ("fails", "kind", "closed"),
    [
        (("", "open"), "open b", "close a close b close sink"),
        (("open",), "open a", "close a close b close sink"),
        (("map",), "map a", "close a close b close sink"),
        (("close",), "close a", "close a close b close sink"),
        (("map close", "close"), "map a", "close a close b close sink"),
        (("close", "open close"), "open b", "close a close b close sink"),
        (("close", "close"), "close a", "close a close b close sink"),
    ],
)
def test_all_operators_are_closed_once_and_the_first_error_is_raised(
    fails: tuple[str, ...], kind: str, closed: str
) -> None:
    log = SharedList()
    with pytest.raises(ValueError, match=f"^{kind}") as caught:
        run_here(three(log, *fails))
    assert str(caught.value) == kind
    assert " ".join(entry for entry in log if entry.startswith("close")) == closed
    notes = " ".join(caught.value.__notes__)  # type: ignore[attr-defined]
    later = [name for name, what in zip("ab", fails, strict=False) if "close" in what]
    for name in later:
        assert kind == f"close {name}" or f"ValueError: close {name}" in notes
    assert "in 'Map' (test_operator_chain.py:" in notes


def test_a_task_that_is_not_read_to_its_end_is_closed() -> None:
    log = SharedList()

    def draw(env: Any) -> None:
        env.set_buffer_timeout(0)
        env.from_sequence(1, 2).set_parallelism(1).map(Logs("a", log)).set_parallelism(1).print()

    running = StreamTask(job_of(draw, batch_size=1, parallelism=2), 0, iter(())).run()
    next(running)
    running.close()
    assert log == ["open a", "map a", "close a"]


# Copies


class KeepsItsRecord:
    """Emits the same list repeatedly, and changes it in between."""

    def __init__(self) -> None:
        self.row = [0]

    def __call__(self, value: int) -> list[int]:
        self.row[0] = value
        return self.row


def add_to(row: list[int]) -> list[int]:
    row[0] += 100
    return row


def values_of(row: list[int]) -> int:
    return row[0]


def fork(env: Any) -> None:
    lists = env.from_sequence(1, 3).map(KeepsItsRecord())
    seen(lists.map(add_to).map(values_of), "changed")
    seen(lists.map(values_of), "read")
    seen(lists.rebalance().map(values_of), "sent")


@pytest.mark.parametrize("form", FORMS)
def test_operators_of_a_fork_do_not_see_each_others_changes(form: str) -> None:
    ran = run_form(fork, form)
    assert ran.records("changed") == [101, 102, 103]
    assert ran.records("read") == [1, 2, 3]
    assert ran.records("sent") == [1, 2, 3]


@pytest.mark.parametrize("form", FORMS)
def test_with_object_reuse_operators_of_a_fork_share_records(form: str) -> None:
    ran = run_form(fork, form, object_reuse=True)
    assert ran.records("changed") == [101, 102, 103]
    assert ran.records("read") == [101, 102, 103]


@pytest.mark.parametrize("object_reuse", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_chain_without_a_fork_passes_the_object_itself(form: str, object_reuse: bool) -> None:
    row = SharedList([1])
    met = SharedList()

    def draw(env: Any) -> None:
        env.from_collection([1]).map(lambda _: row).map(met.append).print()

    opened = Opened(draw, form, object_reuse=object_reuse)
    opened.chain.process_batch(0, [1], None)
    assert met == [row]
    assert met[0] is row


class YieldsOneList(ProcessFunction[int, Any]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        row = [value]
        yield row
        yield SIDE, row
        row[0] = -1
        yield row


@pytest.mark.parametrize("form", FORMS)
def test_a_yielded_record_is_emitted_before_the_function_changes_it(form: str) -> None:
    def draw(env: Any) -> None:
        stream = env.from_sequence(1, 2).process(YieldsOneList())
        seen(stream, "main")
        seen(stream.get_side_output(SIDE), "side")

    ran = run_form(draw, form)
    assert ran.records("main") == [[1], [-1], [2], [-1]]
    assert ran.records("side") == [[1], [2]]


class YieldsOneListTwice(FlatMapFunction[int, Any]):
    def flat_map(self, value: int) -> Any:
        row = [value]
        yield row
        row[0] = -1
        yield row


@pytest.mark.parametrize("form", FORMS)
def test_a_record_yielded_by_flat_map_is_emitted_before_it_is_changed(form: str) -> None:
    ran = run_form(
        lambda env: seen(env.from_sequence(1, 2).flat_map(YieldsOneListTwice()), "main"), form
    )
    assert ran.records("main") == [[1], [-1], [2], [-1]]


# Outputs


class Splits(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield SIDE, -value
        yield OutputTag("nobody"), value
        yield value


@pytest.mark.parametrize("form", FORMS)
def test_chained_and_sent_side_outputs_are_separated_by_tag(form: str) -> None:
    def draw(env: Any) -> None:
        stream = env.from_sequence(1, 2).process(Splits())
        seen(stream, "main")
        side = stream.get_side_output(OutputTag("side"))
        seen(side, "chained")
        seen(side.rebalance().map(lambda x: x), "sent")
        seen(side.map(lambda x: x * 10), "twice")

    ran = run_form(draw, form)
    assert ran.records("main") == [1, 2]
    assert ran.records("chained") == [-1, -2]
    assert ran.records("sent") == [-1, -2]
    assert ran.records("twice") == [-10, -20]
    (splits,) = (numbers for (name, _), numbers in ran.counters().items() if "Process.1" in name)
    assert splits == (2, 4)


@pytest.mark.parametrize("form", FORMS)
def test_records_of_a_stream_without_readers_are_dropped(form: str) -> None:
    ran = run_form(lambda env: env.from_sequence(1, 9).map(str), form)
    assert [numbers[0] for numbers in ran.counters().values()] == [9, 9]


@pytest.mark.parametrize("form", FORMS)
def test_exchanges_receive_records_before_chained_operators(form: str) -> None:
    """In Flink's order; if records are copied, it decides who gets the original."""
    row = SharedList([1])
    met = SharedList()

    def draw(env: Any) -> None:
        stream = env.from_collection([1]).map(lambda _: row)
        stream.map(met.append).print()
        stream.rebalance().map(len).print()

    opened = Opened(draw, form)
    opened.chain.process_batch(0, [1], None)
    assert met[0] is row
    assert RecordBatch([[1]]) in opened.sent()


# Event time


@pytest.mark.parametrize("form", FORMS)
def test_records_are_sent_before_a_later_watermark(form: str) -> None:
    opened = Opened(lambda env: env.from_sequence(1, 1).map(int).rebalance().map(int).print(), form)
    chain = opened.chain
    chain.process_batch(0, [1], None)
    chain.process_watermark(0, 5)
    chain.process_batch(0, [2], None)
    chain.process_status(0, is_idle=True)
    chain.head.process_latency_marker(marker := LatencyMarker(0, "source", 0))
    assert opened.sent() == [
        *(RecordBatch([1]), Watermark(5)),
        *(RecordBatch([2]), WatermarkStatus.IDLE, marker),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_watermarks_reach_every_branch(form: str) -> None:
    def draw(env: Any) -> None:
        stream = env.from_sequence(1, 1).map(int).name("a")
        stream.map(int).name("b").map(int).name("c").rebalance().map(int).print()
        side = stream.process(Splits()).name("d").get_side_output(SIDE)
        side.map(int).name("e").rebalance().map(int).print()

    opened = Opened(draw, form)
    opened.chain.process_watermark(0, 9)
    reached = {item.program.name: item.current_watermark for item in opened.chain.operators}
    assert reached == dict.fromkeys(["Source: Sequence Source", "a", "b", "c", "d", "e"], 9)
    opened.chain.process_status(0, is_idle=True)
    assert opened.sent() == [Watermark(9), WatermarkStatus.IDLE] * 2


class Both(CoProcessFunction[int, int, Any]):
    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Any:
        yield value, ctx.timer_service().current_watermark()

    process_element2 = process_element1


def connected(env: Any) -> None:
    left, right = env.from_sequence(1, 1).name("l"), env.from_sequence(1, 1).name("r")
    both = left.connect(right).process(Both()).name("both")
    both.map(lambda x: x).name("behind").rebalance().map(str).print()


@pytest.mark.parametrize("form", FORMS)
def test_the_smaller_watermark_of_two_inputs_counts(form: str) -> None:
    opened = Opened(connected, form, vertex=2)
    chain = opened.chain
    chain.process_watermark(0, 7)
    chain.process_batch(0, [1], None)
    chain.process_watermark(1, 4)
    chain.process_batch(1, [2], None)
    chain.process_watermark(1, 8)
    assert opened.operator("behind").current_watermark == 7
    assert opened.sent() == [
        RecordBatch([(1, -(2**63))]),
        Watermark(4),
        RecordBatch([(2, 4)]),
        Watermark(7),
    ]


def test_an_idle_input_is_ignored_and_two_idle_inputs_make_the_output_idle() -> None:
    opened = Opened(connected, vertex=2)
    chain = opened.chain
    chain.process_watermark(0, 7)
    chain.process_status(1, is_idle=True)
    assert opened.sent() == [Watermark(7)]
    chain.process_status(0, is_idle=True)
    assert opened.sent() == [WatermarkStatus.IDLE]
    chain.process_status(0, is_idle=True)
    assert opened.sent() == []
    chain.process_status(1, is_idle=False)
    assert opened.sent() == [WatermarkStatus.ACTIVE]
    chain.process_watermark(1, 6)
    assert opened.sent() == []
    chain.process_watermark(1, 20)
    assert opened.sent() == [Watermark(20)]


# End


def whole_run(job: JobProgram) -> list[tuple[int, Any]]:
    """Every element that a job sends, with its target."""
    waiting: dict[int, list[Buffer]] = {}
    for task in job.tasks:
        buffers = sorted(waiting.get(task, []), key=lambda buffer: buffer[1:4])
        for buffer in StreamTask(job, task, iter(buffers)).run():
            waiting.setdefault(buffer.target, []).append(buffer)
    return [
        (target, element)
        for target, buffers in sorted(waiting.items())
        if target >= 0
        for buffer in sorted(buffers, key=lambda buffer: buffer[1:4])
        for element in decode(buffer.payload)
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_every_channel_ends_with_the_last_watermark_and_end_of_input(mode: str, form: str) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )

    def draw(env: Any) -> None:
        stream = env.from_sequence(1, 5).assign_timestamps_and_watermarks(strategy)
        counts = stream.key_by(lambda x: x % 2).reduce(max)
        counts.rebalance().map(int).print()

    elements = whole_run(job_of(draw, form, mode=mode, watermark_interval=0))
    for target in {target for target, _ in elements}:
        channel = [element for at, element in elements if at == target]
        assert channel[-2:] == [Watermark(MAX_LONG_VALUE), EndOfInput()]
        watermarks = [item.timestamp for item in channel if isinstance(item, Watermark)]
        assert watermarks == sorted(set(watermarks))
        assert sum(isinstance(item, RecordBatch) for item in channel) >= 1
