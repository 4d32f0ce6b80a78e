"""The operators of random jobs: how the DSL draws each, and what a plain model makes of its records.

A record of the model is a value with its timestamp. What depends on order or on the subtask is left out,
so that any routing gives the same multiset: in streaming mode a running reduce counts, in batch mode it
may sum. Functions and their module are sent by value, so that executors need not find them.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import cloudpickle

from opchain.common import WatermarkStrategy
from opchain.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    MapFunction,
    ProcessFunction,
    SourceFunction,
)
from opchain.runtime.connectors.collection import NumberSequenceSource
from opchain.runtime.time import MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.datastream import DataStream

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SIDE = OutputTag("side")
BOUND = 997
LAST = 2**63 - 1

Record = tuple[int, "int | None"]


@dataclass(frozen=True)
class RandomOperator:
    """One kind of operator.

    `draw(inputs, constant, sized)` draws it, `sized` giving an operator its parallelism;
    `model(inputs, constant, is_batch)` gives the records of the streams that it makes. `times` says what
    becomes of timestamps: "kept", "made", or "by order" where in streaming mode they depend on it.
    """

    draw: Any
    model: Any
    inputs: int = 1
    times: str = "kept"
    reads_times: bool = False
    only_batch: bool = False


class Route(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        if value % 2:
            yield SIDE, value + 1
        if value % 3:
            yield value


class AddTimestamp(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        time = ctx.timestamp()
        yield (value + (0 if time == MIN_LONG_VALUE else time)) % BOUND


class EitherMap(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int | None:
        return BOUND - value if value else None


class EitherFlatMap(CoFlatMapFunction[int, int, int]):
    def flat_map1(self, value: int) -> Any:
        yield value
        yield value // 2

    def flat_map2(self, value: int) -> Any:
        return None if value % 2 else [value]


class EitherProcess(CoProcessFunction[int, int, int]):
    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Any:
        yield SIDE, value

    def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Any:
        yield value


class Times(MapFunction[int, int]):
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def open(self, runtime_context: Any) -> None:
        self.is_open = True

    def map(self, value: int) -> int:
        assert self.is_open
        return value * self.factor % BOUND

    def close(self) -> None:
        self.is_open = False


class OneList:
    """Gives the same list every time."""

    def __init__(self) -> None:
        self.row = [0]

    def __call__(self, value: int) -> list[int]:
        self.row[0] = value
        return self.row


def spread(value: int) -> Any:
    for _ in range(value % 3):
        yield value


def all_times(factor: int, batch: list[int]) -> Any:
    for first in range(0, len(batch), 3):
        yield [value * factor % BOUND for value in batch[first : first + 3]]


def raised(row: list[int]) -> int:
    row[0] += 1
    return row[0]


def added(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0], a[1] + b[1]


def _one_to_many(*functions: Callable[[int, int | None, int], list[int]]) -> Any:
    """The model of an operator by what a record becomes in each stream that it makes."""

    def model(inputs: list[list[Record]], constant: int, is_batch: bool) -> Any:
        (records,) = inputs
        return tuple(
            [(result, time) for value, time in records for result in emitted(value, time, constant)]
            for emitted in functions
        )

    return model


def _two_inputs(*functions: tuple[Callable[[int], list[int]], Callable[[int], list[int]]]) -> Any:
    """The same for two inputs: for each stream, what records of the first and the second become."""

    def model(inputs: list[list[Record]], constant: int, is_batch: bool) -> Any:
        return tuple(
            [
                (result, time)
                for records, emitted in zip(inputs, either, strict=True)
                for value, time in records
                for result in emitted(value)
            ]
            for either in functions
        )

    return model


def _draw_with_side(drawn: DataStream[Any]) -> list[DataStream[Any]]:
    return [drawn, drawn.get_side_output(SIDE)]


def _draw_stamp(inputs: list[DataStream[Any]], constant: int, sized: Any) -> list[Any]:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value * constant
    )
    return [sized(sized(inputs[0].map(int)).assign_timestamps_and_watermarks(strategy))]


class Punctuated(WatermarkGenerator[int]):
    """Emits a watermark after every record."""

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.mark_idle()


def _draw_restamp(inputs: list[DataStream[Any]], constant: int, sized: Any) -> list[Any]:
    strategy: Any = WatermarkStrategy.for_generator(lambda _: Punctuated())
    if constant % 2:
        strategy = strategy.with_timestamp_assigner(
            lambda value, so_far: max(so_far, 0) % BOUND + constant
        )
    return [sized(sized(inputs[0].map(int)).assign_timestamps_and_watermarks(strategy))]


def _restamped(records: list[Record], constant: int) -> list[Record]:
    if constant % 2:
        return [(value, max(time or 0, 0) % BOUND + constant) for value, time in records]
    return records


def _draw_one_list(inputs: list[DataStream[Any]], constant: int, sized: Any) -> list[Any]:
    lists = sized(inputs[0].map(OneList()))
    return [sized(lists.map(raised)), sized(lists.map(lambda row: row[0]))]


def _draw_reduce(of: str) -> Any:
    def draw(inputs: list[DataStream[Any]], constant: int, sized: Any) -> list[Any]:
        pairs = sized(inputs[0].map(lambda x: (x % constant, x if of == "sum" else 1)))
        totals = sized(pairs.key_by(lambda pair: pair[0]).reduce(added))
        return [sized(totals.map(lambda pair: (pair[0] * 100_003 + pair[1]) % BOUND))]

    return draw


def _draw_plain_sum(inputs: list[DataStream[Any]], constant: int, sized: Any) -> list[Any]:
    """The sum of a key's records belongs to another key."""
    values = sized(inputs[0].map(lambda x: x))
    sums = sized(values.key_by(lambda x: x % constant).reduce(lambda a, b: a + b))
    return [sized(sums.map(lambda x: x % BOUND))]


def _model_plain_sum(inputs: list[list[Record]], constant: int, is_batch: bool) -> Any:
    totals: Counter[int] = Counter()
    for value, _ in inputs[0]:
        totals[value % constant] += value
    return ([(total % BOUND, LAST) for total in totals.values()],)


def _model_reduce(of: str) -> Any:
    def model(inputs: list[list[Record]], constant: int, is_batch: bool) -> Any:
        totals: Counter[int] = Counter()
        for value, _ in inputs[0]:
            totals[value % constant] += value if of == "sum" else 1
        if is_batch:
            return ([((key * 100_003 + n) % BOUND, LAST) for key, n in totals.items()],)
        return (
            [
                ((key * 100_003 + k) % BOUND, None)
                for key, n in totals.items()
                for k in range(1, n + 1)
            ],
        )

    return model


OPERATORS: dict[str, RandomOperator] = {
    "map": RandomOperator(
        lambda ins, c, sized: [sized(ins[0].map(lambda x: (x * c + 1) % BOUND))],
        _one_to_many(lambda x, _, c: [(x * c + 1) % BOUND]),
    ),
    "rich map": RandomOperator(
        lambda ins, c, sized: [sized(ins[0].map(Times(c)))],
        _one_to_many(lambda x, _, c: [x * c % BOUND]),
    ),
    "filter": RandomOperator(
        lambda ins, c, sized: [sized(ins[0].filter(lambda x: x % 4 != c % 4))],
        _one_to_many(lambda x, _, c: [x] if x % 4 != c % 4 else []),
    ),
    "flat map": RandomOperator(
        lambda ins, c, sized: [sized(ins[0].flat_map(lambda x: [x, (x + c) % BOUND]))],
        _one_to_many(lambda x, _, c: [x, (x + c) % BOUND]),
    ),
    "generator": RandomOperator(
        lambda ins, _, sized: [sized(ins[0].flat_map(spread))],
        _one_to_many(lambda x, _, c: [x] * (x % 3)),
    ),
    "batches": RandomOperator(
        lambda ins, c, sized: [
            sized(ins[0].map_batches(lambda batch: [x for x in batch if x % 4 != c % 4]))
        ],
        lambda ins, c, _: ([(value, None) for value, _ in ins[0] if value % 4 != c % 4],),
        times="made",
    ),
    "one to one": RandomOperator(
        lambda ins, c, sized: [sized(ins[0].map_batches(partial(all_times, c), one_to_one=True))],
        _one_to_many(lambda x, _, c: [x * c % BOUND]),
    ),
    "process": RandomOperator(
        lambda ins, _, sized: _draw_with_side(sized(ins[0].process(Route()))),
        _one_to_many(
            lambda x, _, c: [x] if x % 3 else [], lambda x, _, c: [x + 1] if x % 2 else []
        ),
    ),
    "add timestamp": RandomOperator(
        lambda ins, _, sized: [sized(ins[0].process(AddTimestamp()))],
        _one_to_many(lambda x, time, _: [(x + (time or 0)) % BOUND]),
        reads_times=True,
    ),
    "stamp": RandomOperator(
        _draw_stamp,
        lambda ins, c, _: ([(value, value * c) for value, _ in ins[0]],),
        times="made",
    ),
    "restamp": RandomOperator(
        _draw_restamp, lambda ins, c, _: (_restamped(ins[0], c),), reads_times=True
    ),
    "one list": RandomOperator(
        _draw_one_list, _one_to_many(lambda x, _, c: [x + 1], lambda x, _, c: [x])
    ),
    "union": RandomOperator(
        lambda ins, _, sized: [sized(ins[0].union(*ins[1:]).map(lambda x: x))],
        lambda ins, *_: ([record for records in ins for record in records],),
        inputs=4,
    ),
    "co map": RandomOperator(
        lambda ins, _, sized: [sized(ins[0].connect(ins[1]).map(EitherMap()))],
        _two_inputs((lambda x: [x], lambda x: [BOUND - x] if x else [])),
        inputs=2,
    ),
    "co flat map": RandomOperator(
        lambda ins, _, sized: [sized(ins[0].connect(ins[1]).flat_map(EitherFlatMap()))],
        _two_inputs((lambda x: [x, x // 2], lambda x: [] if x % 2 else [x])),
        inputs=2,
    ),
    "co process": RandomOperator(
        lambda ins, _, sized: _draw_with_side(
            sized(ins[0].connect(ins[1]).process(EitherProcess()))
        ),
        _two_inputs((lambda _: [], lambda x: [x]), (lambda x: [x], lambda _: [])),
        inputs=2,
    ),
    "count": RandomOperator(_draw_reduce("count"), _model_reduce("count"), times="by order"),
    "sum": RandomOperator(
        _draw_reduce("sum"), _model_reduce("sum"), times="by order", only_batch=True
    ),
    "plain sum": RandomOperator(
        _draw_plain_sum, _model_plain_sum, times="by order", only_batch=True
    ),
}


def divide(constant: int, value: int) -> int:
    return constant // (value - constant)


def divide_and_yield(constant: int, value: int) -> Any:
    yield value
    yield divide(constant, value)


class DivideAndYield(ProcessFunction[int, int]):
    def __init__(self, constant: int) -> None:
        self.constant = constant

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield SIDE, value
        yield divide(self.constant, value)


class CountTo(SourceFunction[int]):
    """A source that runs by itself, with a timestamp for every other number."""

    def __init__(self, last: int) -> None:
        self.last = last

    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        for number in range(self.last + 1):
            if number % 2:
                ctx.collect_with_timestamp(number, number * 3)
                ctx.emit_watermark(number * 3)
            else:
                ctx.collect(number)
        ctx.mark_as_temporarily_idle()

    def cancel(self) -> None:
        pass


def _draw_timed_sequence(env: Any, last: int) -> Any:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value * 7
    )
    return env.from_source(NumberSequenceSource(0, last), strategy, "timed sequence")


SOURCES: dict[str, tuple[Any, Any]] = {
    "collection": (lambda env, last: env.from_collection(list(range(last + 1))), lambda _: None),
    "sequence": (lambda env, last: env.from_sequence(0, last), lambda _: None),
    "timed sequence": (_draw_timed_sequence, lambda value: value * 7),
    "function": (
        lambda env, last: env.add_source(CountTo(last)),
        lambda value: value * 3 if value % 2 else None,
    ),
}
"""Sources of the numbers up to a constant: how each is drawn, and the timestamp of a number."""

ONE_SUBTASK = frozenset({"collection", "function"})

FAILING: dict[str, Callable[[DataStream[Any], int], DataStream[Any]]] = {
    "map": lambda stream, c: stream.map(lambda x: c // (x - c)),
    "opaque map": lambda stream, c: stream.map(partial(divide, c)),
    "filter": lambda stream, c: stream.filter(lambda x: c % (x - c) >= 0),
    "flat map": lambda stream, c: stream.flat_map(lambda x: [x] * (c // (x - c) + 1)),
    "generator": lambda stream, c: stream.flat_map(partial(divide_and_yield, c)),
    "process": lambda stream, c: stream.process(DivideAndYield(c)),
}
"""Operators that divide by zero at the record that is the constant."""
