"""Metrics of tasks, in each form of their code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest
from forms import FORMS, run_form
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Time, TimestampAssigner, WatermarkStrategy
from opchain.common.watermark_strategy import (
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
)
from opchain.datastream import OutputTag, ProcessFunction
from opchain.datastream.functions import CoMapFunction, MapFunction, SourceFunction
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.metrics.accumulators import Accumulator, LongCounter
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from forms import Ran

    from opchain.datastream import DataStream, StreamExecutionEnvironment
    from opchain.runtime.functions.function import RuntimeContext

cloudpickle.register_pickle_by_value(sys.modules[__name__])

ODD = OutputTag("odd")


class SplitOdd(ProcessFunction[int, int]):
    """Sends odd numbers to a side output, and multiples of 10 twice."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        if value % 2:
            yield ODD, value
        elif value % 10 == 0:
            yield value
            yield value
        else:
            yield value


def counts(ran: Ran) -> dict[str, tuple[int, int]]:
    return {
        operator.name: (operator.records_in, operator.records_out)
        for operator in ran.outcome.metrics.operators
    }


def fork(env: StreamExecutionEnvironment) -> None:
    """A filter and a flat map downstream of one map, each with a sink."""
    numbers = env.from_collection(list(range(100))).name("numbers").map(int).name("to int")
    few = numbers.filter(lambda n: n % 4 == 0).name("fourth")
    few.print().name("print few")
    many = numbers.flat_map(lambda n: [n] * (n % 3)).name("repeat")
    many.filter(lambda n: n > 50).name("big").print().name("print big")
    many.map(lambda n: -n).name("negate").print().name("print many")


def sides(env: StreamExecutionEnvironment) -> None:
    """A side output with a reader, one behind it without, and the main output."""
    split = env.from_collection(list(range(100))).name("numbers").process(SplitOdd()).name("split")
    split.map(str).name("even").print().name("print even")
    split.get_side_output(ODD).map(str).name("odd").print().name("print odd")
    split.process(SplitOdd()).name("unread").print().name("print unread")


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_branches_of_a_fork_are_counted_separately(
    form: str, parallelism: int, capsys: Any
) -> None:
    found = counts(run_form(fork, form, parallelism=parallelism))
    many = sum(n % 3 for n in range(100))
    big = sum(n % 3 for n in range(51, 100))
    assert found == {
        "Source: numbers": (100, 100),
        "to int": (100, 100),
        "fourth": (100, 25),
        "Sink: print few": (25, 0),
        "repeat": (100, many),
        "big": (many, big),
        "Sink: print big": (big, 0),
        "negate": (many, many),
        "Sink: print many": (many, 0),
    }
    assert len(capsys.readouterr().out.splitlines()) == 25 + big + many


@pytest.mark.parametrize("form", FORMS)
def test_side_outputs_are_counted_if_they_have_readers(form: str, capsys: Any) -> None:
    found = counts(run_form(sides, form))
    assert found == {
        "Source: numbers": (100, 100),
        "split": (100, 60 + 50),
        "even": (60, 60),
        "Sink: print even": (60, 0),
        "odd": (50, 50),
        "Sink: print odd": (50, 0),
        "unread": (60, 80),
        "Sink: print unread": (80, 0),
    }
    assert len(capsys.readouterr().out.splitlines()) == 60 + 50 + 80


STEPS: dict[str, Any] = {
    "map": lambda stream: stream.map(lambda n: n * 3 + 1),
    "opaque": lambda stream: stream.map(abs),
    "filter": lambda stream: stream.filter(lambda n: n % 3 != 1),
    "flat map": lambda stream: stream.flat_map(lambda n: range(n % 4)),
    "process": lambda stream: stream.process(SplitOdd()),
    "side": lambda stream: stream.process(SplitOdd()).get_side_output(ODD),
    "rebalance": lambda stream: stream.rebalance(),
    "broadcast": lambda stream: stream.broadcast(),
    "keyed": lambda stream: stream.key_by(lambda n: n % 5).reduce(lambda a, b: a + b),
}


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9)), min_size=1, max_size=7
    ),
    parallelism=st.integers(1, 3),
)
def test_all_forms_have_the_same_counts(steps: list[tuple[str, int]], parallelism: int) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        streams: list[DataStream[Any]] = [env.from_collection(list(range(30)))]
        for name, which in steps:
            streams.append(STEPS[name](streams[which % len(streams)]))
        for stream in streams:
            stream.map(lambda n: (n,)).print()

    interpreted, *others = (
        run_form(draw, form, parallelism=parallelism).outcome.metrics for form in FORMS
    )
    for other in others:
        assert [operator.subtasks for operator in other.operators] == [
            operator.subtasks for operator in interpreted.operators
        ]
        for one, another in zip(interpreted.vertices, other.vertices, strict=True):
            for name in ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBuffersOut"):
                assert one.values()[name] == another.values()[name]


def exchanges(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection(list(range(90))).name("numbers")
    numbers.broadcast().map(int).name("copies").set_parallelism(3).print().set_parallelism(3)
    (
        numbers.key_by(lambda n: 0)
        .reduce(lambda a, b: a + b)
        .name("sum")
        .set_parallelism(3)
        .print()
        .set_parallelism(3)
    )


def test_records_and_bytes_out_of_a_vertex_are_those_into_the_next(capsys: Any) -> None:
    metrics = run_form(exchanges).outcome.metrics
    source, copies, total = metrics.vertices
    assert (source.records_in, source.bytes_in) == (90, 0)
    assert source.records_out == 90 + 90  # a broadcast record counts once
    assert copies.records_in == 3 * 90
    assert total.records_in == 90
    assert source.bytes_out == copies.bytes_in + total.bytes_in > 0
    assert copies.bytes_out == total.bytes_out == 0
    buffers_in = sum(vertex.values()["numBuffersIn"] for vertex in (copies, total))
    assert source.values()["numBuffersOut"] == buffers_in > 0
    assert (copies.skew, total.skew) == (1.0, 3.0)
    assert [task.subtask for task in total.subtasks] == [0, 1, 2]
    assert len(capsys.readouterr().out.splitlines()) == 4 * 90


def test_all_operators_end_at_the_last_watermark(capsys: Any) -> None:
    metrics = run_form(exchanges).outcome.metrics
    for operator in metrics.operators:
        values = operator.values()
        assert values["currentOutputWatermark"] == MAX_LONG_VALUE
        is_source = operator.name.startswith("Source")
        assert values.get("currentInputWatermark") == (None if is_source else MAX_LONG_VALUE)
    assert capsys.readouterr().err == ""


class Both(CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize("form", FORMS)
def test_an_operator_with_two_inputs_has_a_watermark_for_each(form: str, capsys: Any) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        first, second = env.from_collection([1, 2]), env.from_collection([3])
        first.connect(second).map(Both()).name("both").print()

    both = run_form(draw, form).outcome.metrics.operator("both")
    assert (both.records_in, both.records_out) == (3, 3)
    marks = [value for name, value in both.values().items() if name.startswith("currentInput")]
    assert marks == [MAX_LONG_VALUE] * 3
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_busy_idle_and_back_pressured_time_add_up_to_the_elapsed_time(capsys: Any) -> None:
    for vertex in run_form(exchanges).outcome.metrics.vertices:
        for task in vertex.subtasks:
            assert task.elapsed_ns == task.busy_ns + task.idle_ns + task.back_pressured_ns > 0
            assert min(task.busy_ns, task.idle_ns, task.back_pressured_ns) >= 0
            assert task.knows_busy_time
            assert (task.idle_ns > 0) is (vertex.name != "Source: numbers")
            assert (task.back_pressured_ns > 0) is (vertex.name == "Source: numbers")
    assert capsys.readouterr().err == ""


class Numbers(SourceFunction[int]):
    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        for number in range(10):
            ctx.collect(number)

    def cancel(self) -> None:
        pass


def test_busy_time_is_unknown_with_a_source_on_its_own_thread(capsys: Any) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        env.add_source(Numbers(), "numbers").map(str).name("text").print()

    (vertex,) = run_form(draw).outcome.metrics.vertices
    assert vertex.records_in == vertex.operators[1].records_in == 10
    assert not vertex.subtasks[0].knows_busy_time
    assert vertex.subtasks[0].mails > 0
    assert capsys.readouterr().out.split() == [str(number) for number in range(10)]


class Registers(MapFunction[int, int]):
    """Registers one metric of each kind, and uses them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metric_group()
        self.seen = group.counter("seen")
        self.by_parity = [group.add_group("parity", name).meter("n") for name in ("even", "odd")]
        self.values = group.distribution("values")
        self.sizes = group.histogram("sizes")
        group.gauge("last", lambda: self.last)
        self.last = -1
        self.sum = LongCounter()
        runtime_context.add_accumulator("sum", self.sum)
        runtime_context.get_histogram("parities")

        self.context = runtime_context

    def map(self, value: int) -> int:
        self.seen.inc()
        self.by_parity[value % 2].mark_event()
        self.values.update(value)
        self.sizes.update(value)
        self.last = value
        self.sum.add(value)
        self.context.get_histogram("parities").add(value % 2)
        return value


@pytest.mark.parametrize("form", FORMS)
def test_registered_metrics_are_sent_to_the_driver(form: str, capsys: Any) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        env.from_collection(list(range(10))).rebalance().map(Registers()).name("count").print()

    ran = run_form(draw, form, parallelism=2)
    registered = ran.outcome.metrics.operator("count").registered
    assert registered["seen"] == 10
    assert registered["parity.even.n"].count == registered["parity.odd.n"].count == 5
    assert registered["values"].as_plain() == {
        "count": 10,
        "sum": 45,
        "min": 0,
        "max": 9,
        "mean": 4.5,
    }
    assert registered["sizes"].quantile(0.5) == 4
    assert sorted(registered["last"].values) == [8, 9]
    assert ran.outcome.accumulators == {"sum": 45, "parities": {0: 5, 1: 5}}
    assert len(capsys.readouterr().out.splitlines()) == 10


class Marks(WatermarkGenerator[Any]):
    """Counts its records, in the metric group of its operator."""

    def __init__(self, context: WatermarkGeneratorContext) -> None:
        self.seen = context.metric_group.counter("seen by the generator")

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.seen.inc()

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


@pytest.mark.parametrize("form", FORMS)
def test_watermark_generators_have_the_metric_group_of_their_operator(
    form: str, capsys: Any
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        marked = env.from_collection([1, 2, 3]).assign_timestamps_and_watermarks(
            WatermarkStrategy.for_generator(Marks)
        )
        marked.name("mark").print()

    operator = run_form(draw, form).outcome.metrics.operator("mark")
    assert operator.registered == {"seen by the generator": 3}
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("form", FORMS)
def test_late_records_that_a_window_drops_are_counted(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        times = [1_000, 5_000, 1_001, 9_000, 2, 8_999]
        timed = env.from_collection(times).assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OwnTime())
        )
        windows = timed.key_by(lambda time: 0).window(TumblingEventTimeWindows.of(Time.seconds(2)))
        windows.reduce(max).name("greatest").print()

    values = run_form(draw, form, batch_size=1).outcome.metrics.operator("greatest").values()
    assert values["numLateRecordsDropped"] == 2
    assert values["numRecordsIn"] == 6


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value


class Secretive(Accumulator[int, int]):
    def add(self, value: int) -> None:
        pass

    def get_local_value(self) -> int:
        return 0

    def reset_local(self) -> None:
        pass

    def merge(self, other: Any) -> None:
        pass

    def __reduce__(self) -> Any:
        raise ArithmeticError("not me")


class Adds(MapFunction[int, int]):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.add_accumulator("secret", Secretive())

    def map(self, value: int) -> int:
        return value


def test_the_error_names_an_accumulator_that_cannot_be_pickled() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        env.from_collection([1]).map(Adds()).name("add").print()

    with pytest.raises(
        TypeError,
        match=r"'add' \(test_measure_task.py:\d+\): the accumulator 'secret', a Secretive, cannot be "
        r"pickled \(ArithmeticError: not me\), so it cannot be sent to the driver",
    ):
        run_form(draw)
