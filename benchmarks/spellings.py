"""Compares seven programs, each written in several ways that PyFlink users know, with hand-written loops in one process.

    python -m benchmarks.spellings [--records 200000] [--rounds 3] [--mode BATCH] [--json FILE] [W1 W2 ...]

    W1    numbers: map, filter, flat_map
    W2    numbers: a running sum for each of 1,000 keys
    W3    bids in JSON lines: count and highest price by auction and 10 seconds of event time
    W4    text: a running count of each word
    W5    numbers: a chain of ten operators
    W6    purchases joined with broadcast prices, then a running sum by user
    W7    bids in JSON lines: a filter by price, and a running count by auction

Prints CPU microseconds per record, and the ratio of the loop's time to opchain's: above 1 opchain is faster. The loop
calls the functions of the first spelling for each record, and pickles 4,096 records at a time between two partitions.
The results of all spellings must be equal.
"""
# ruff: noqa: ARG002, D101, D102, D103, PLW0108 - written as PyFlink's users write

from __future__ import annotations

import argparse
import json
import pickle
import random
import re
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.environment import PARALLELISM, environment
from benchmarks.in_process import exchanged, job_of, lines, measured, read, run
from benchmarks.tally import tallied
from opchain.common import Duration, Row, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream.functions import (
    AggregateFunction,
    CoFlatMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain import DataStream, StreamExecutionEnvironment

    Draw = Callable[[StreamExecutionEnvironment, "Input"], DataStream[Any]]

KEYS = 1_000
ITEMS, USERS = 500, 2_000
WINDOW_MS, DISORDER_MS = 10_000, 2_000
HIGH_PRICE = 10_000


class Input(NamedTuple):
    """The input of the programs: numbers below `records`, and files of bids and of text."""

    records: int
    bids: list[str]
    text: list[str]


class Spelling(NamedTuple):
    """A program. `field` is the field of its results to add up, or None to add up the results themselves.

    Process functions emit results for each record in both modes. `reduce` and other folds emit one per key in BATCH mode.
    """

    draw: Draw
    field: Any
    emits_for_each_record: bool


SPELLINGS: dict[str, dict[str, Spelling]] = {}


def spelling(
    workload: str, name: str, field: Any = None, *, emits_for_each_record: bool = False
) -> Callable[[Draw], Draw]:
    """Registers a program."""

    def register(draw: Draw) -> Draw:
        SPELLINGS.setdefault(workload, {})[name] = Spelling(draw, field, emits_for_each_record)
        return draw

    return register


LONG, STRING = Types.LONG(), Types.STRING()
PAIR = Types.TUPLE([LONG, LONG])
WORD = Types.TUPLE([STRING, LONG])


def numbers(env: StreamExecutionEnvironment, given: Input) -> DataStream[int]:
    return env.from_sequence(0, given.records - 1)


# W1 ---------------------------------------------------------------------------------------------------------------


@spelling("W1", "lambdas")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    tripled = numbers(env, given).map(lambda x: x * 3)
    return tripled.filter(lambda x: x % 2 == 0).flat_map(lambda x: (x, x + 1))


@spelling("W1", "typed lambdas")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    tripled = numbers(env, given).map(lambda x: x * 3, output_type=LONG)
    return tripled.filter(lambda x: x % 2 == 0).flat_map(lambda x: (x, x + 1), output_type=LONG)


def tripled(x: int) -> int:
    return x * 3


def is_even(x: int) -> bool:
    return x % 2 == 0


def two_of(x: int) -> Iterator[int]:
    yield x
    yield x + 1


@spelling("W1", "defs")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return numbers(env, given).map(tripled).filter(is_even).flat_map(two_of)


class Tripled(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return value * 3


class IsEven(FilterFunction[int]):
    def filter(self, value: int) -> bool:
        return value % 2 == 0


class TwoOf(FlatMapFunction[int, int]):
    def flat_map(self, value: int) -> Iterator[int]:
        yield value
        yield value + 1


@spelling("W1", "classes")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return numbers(env, given).map(Tripled()).filter(IsEven()).flat_map(TwoOf())


@spelling("W1", "another filter")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kept = numbers(env, given).filter(lambda x: x >= 0).map(lambda x: x * 3)
    return kept.filter(lambda x: x % 2 == 0).flat_map(lambda x: [x, x + 1])


@spelling("W1", "tuples", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    pairs = numbers(env, given).map(lambda x: (x, x * 3)).filter(lambda pair: pair[1] % 2 == 0)
    return pairs.flat_map(lambda pair: (pair, (pair[0], pair[1] + 1)))


@spelling("W1", "Rows", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    rows = numbers(env, given).map(lambda x: Row(x, x * 3)).filter(lambda row: row[1] % 2 == 0)
    return rows.flat_map(lambda row: (row, Row(row[0], row[1] + 1)))


@spelling("W1", "dicts", "x")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    found = numbers(env, given).map(lambda x: {"x": x * 3}).filter(lambda d: d["x"] % 2 == 0)
    return found.flat_map(lambda d: ({"x": d["x"]}, {"x": d["x"] + 1}))


# W2 ---------------------------------------------------------------------------------------------------------------


@spelling("W2", "lambdas", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    pairs = numbers(env, given).map(lambda x: (x % KEYS, x))
    return pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@spelling("W2", "typed lambdas", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    pairs = numbers(env, given).map(lambda x: (x % KEYS, x), output_type=PAIR)
    keyed = pairs.key_by(lambda pair: pair[0], key_type=LONG)
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


def pair_of(x: int) -> tuple[int, int]:
    return x % KEYS, x


def first(pair: Any) -> Any:
    return pair[0]


def added(a: Any, b: Any) -> Any:
    return a[0], a[1] + b[1]


@spelling("W2", "defs", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return numbers(env, given).map(pair_of).key_by(first).reduce(added)


class PairOf(MapFunction[int, Any]):
    def map(self, value: int) -> Any:
        return value % KEYS, value


class First(KeySelector[Any, Any]):
    def get_key(self, value: Any) -> Any:
        return value[0]


class Added(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


@spelling("W2", "classes", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return numbers(env, given).map(PairOf()).key_by(First()).reduce(Added())


@spelling("W2", "sum(1)", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return numbers(env, given).map(lambda x: (x % KEYS, x)).key_by(lambda pair: pair[0]).sum(1)


@spelling("W2", "Rows", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    rows = numbers(env, given).map(lambda x: Row(x % KEYS, x))
    return rows.key_by(lambda row: row[0]).reduce(lambda a, b: Row(a[0], a[1] + b[1]))


@spelling("W2", "typed Rows", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kind = Types.ROW_NAMED(["key", "n"], [LONG, LONG])
    rows = numbers(env, given).map(lambda x: Row(x % KEYS, x), output_type=kind)
    keyed = rows.key_by(lambda row: row[0], key_type=LONG)
    return keyed.reduce(lambda a, b: Row(a[0], a[1] + b[1]))


@spelling("W2", "dicts", "n")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    found = numbers(env, given).map(lambda x: {"k": x % KEYS, "n": x})
    return found.key_by(lambda d: d["k"]).reduce(lambda a, b: {"k": a["k"], "n": a["n"] + b["n"]})


class Amount(NamedTuple):
    key: int
    total: int


@spelling("W2", "named tuples", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    amounts = numbers(env, given).map(lambda x: Amount(x % KEYS, x))
    return amounts.key_by(lambda a: a.key).reduce(lambda a, b: Amount(a.key, a.total + b.total))


@dataclass
class Sum:
    key: int
    total: int


@spelling("W2", "dataclasses")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    sums = numbers(env, given).map(lambda x: Sum(x % KEYS, total=x))
    keyed = sums.key_by(lambda s: s.key).reduce(lambda a, b: Sum(a.key, a.total + b.total))
    return keyed.map(lambda s: s.total)


@spelling("W2", "another filter", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    pairs = numbers(env, given).map(lambda x: (x % KEYS, x)).filter(lambda pair: pair[1] >= 0)
    return pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@spelling("W2", "three fields", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    rows = numbers(env, given).map(lambda x: (x % KEYS, x, 1))
    return rows.key_by(lambda r: r[0]).reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))


class RunningSum(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", LONG))

    def process_element(self, value: Any, ctx: Any) -> Any:
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        yield value[0], total


@spelling("W2", "ValueState", 1, emits_for_each_record=True)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    pairs = numbers(env, given).map(lambda x: (x % KEYS, x))
    return pairs.key_by(lambda pair: pair[0]).process(RunningSum())


# W3 ---------------------------------------------------------------------------------------------------------------


class TimeAt(TimestampAssigner):
    def __init__(self, field: Any) -> None:
        self.field = field

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[self.field]


class Third(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[2]


class OfDict(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value["ts"]


def windows(
    bids: DataStream[Any], assigner: TimestampAssigner, key: Any, key_type: Any = None
) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER_MS))
    timed = bids.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(assigner))
    keyed = timed.key_by(key) if key_type is None else timed.key_by(key, key_type=key_type)
    return keyed.window(TumblingEventTimeWindows.of(Duration.of_millis(WINDOW_MS)))


class Highest(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, max(accumulator[1], value[1])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], max(acc_a[1], acc_b[1])


class HighestOfDicts(Highest):
    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, max(accumulator[1], value["price"])


class WithStart(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        for count, price in elements:
            yield key, context.window().start, count, price


def bid_of(line: str) -> tuple[int, int, int]:
    bid = json.loads(line)
    return bid["auction"], bid["price"], bid["ts"]


@spelling("W3", "defs", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    bids = lines(env, given.bids).map(bid_of)
    return windows(bids, Third(), first).aggregate(Highest(), WithStart())


@spelling("W3", "typed defs", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    bids = lines(env, given.bids).map(bid_of, output_type=Types.TUPLE([LONG, LONG, LONG]))
    opened = windows(bids, Third(), lambda bid: bid[0], LONG)
    four = Types.TUPLE([LONG, LONG, LONG, LONG])
    return opened.aggregate(Highest(), WithStart(), accumulator_type=PAIR, output_type=four)


@spelling("W3", "dicts", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    bids = lines(env, given.bids).map(json.loads)
    opened = windows(bids, OfDict(), lambda bid: bid["auction"])
    return opened.aggregate(HighestOfDicts(), WithStart())


@spelling("W3", "a lambda of json.loads", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    bids = lines(env, given.bids).map(lambda line: json.loads(line))
    kept = bids.filter(lambda bid: bid["price"] >= 0)
    triples = kept.map(lambda bid: (bid["auction"], bid["price"], bid["ts"]))
    return windows(triples, Third(), lambda bid: bid[0]).aggregate(Highest(), WithStart())


class Parse(MapFunction[str, Any]):
    def map(self, value: str) -> Any:
        bid = json.loads(value)
        return Row(bid["auction"], bid["price"], bid["ts"])


@spelling("W3", "Rows and classes", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    bids = lines(env, given.bids).map(Parse())
    return windows(bids, Third(), First()).aggregate(Highest(), WithStart())


class Bid(NamedTuple):
    auction: int
    price: int
    ts: int


def named_bid(line: str) -> Bid:
    bid = json.loads(line)
    return Bid(bid["auction"], bid["price"], bid["ts"])


@spelling("W3", "named tuples", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    bids = lines(env, given.bids).map(named_bid)
    return windows(bids, TimeAt(2), lambda bid: bid.auction).aggregate(Highest(), WithStart())


class Counted(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        prices = [bid[1] for bid in elements]
        yield key, context.window().start, len(prices), max(prices)


@spelling("W3", "process", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return windows(lines(env, given.bids).map(bid_of), Third(), first).process(Counted())


@spelling("W3", "reduce", 3)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    bids = lines(env, given.bids).map(bid_of).map(lambda bid: (bid[0], 1, bid[2], bid[1]))
    return windows(bids, Third(), lambda bid: bid[0]).reduce(
        lambda a, b: (a[0], a[1] + b[1], a[2], max(a[3], b[3]))
    )


# W4 ---------------------------------------------------------------------------------------------------------------


@spelling("W4", "lambdas", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    words = lines(env, given.text).flat_map(lambda line: line.split())
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    return ones.reduce(lambda a, b: (a[0], a[1] + b[1]))


@spelling("W4", "typed lambdas", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    words = lines(env, given.text).flat_map(lambda line: line.split(), output_type=STRING)
    ones = words.map(lambda word: (word, 1), output_type=WORD)
    keyed = ones.key_by(lambda pair: pair[0], key_type=STRING)
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


def split(line: str) -> Iterator[str]:
    yield from line.split()


@spelling("W4", "defs", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    ones = lines(env, given.text).flat_map(split).map(lambda word: (word, 1), output_type=WORD)
    return ones.key_by(first).reduce(added)


class Words(FlatMapFunction[str, Any]):
    def flat_map(self, value: str) -> Iterator[Any]:
        for word in value.split():
            yield word, 1


@spelling("W4", "classes", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return lines(env, given.text).flat_map(Words()).key_by(First()).reduce(Added())


@spelling("W4", "list comprehensions", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    ones = lines(env, given.text).flat_map(lambda line: [(word, 1) for word in line.split()])
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


class RowsOfWords(FlatMapFunction[str, Any]):
    def flat_map(self, value: str) -> list[Row]:
        return [Row(word=word, count=1) for word in value.split()]


@spelling("W4", "lists of Rows", "count")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    ones = lines(env, given.text).flat_map(RowsOfWords()).key_by(lambda row: row.word)
    return ones.reduce(lambda a, b: Row(word=a.word, count=a.count + b.count))


@spelling("W4", "sum(1)", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return lines(env, given.text).flat_map(Words()).key_by(lambda pair: pair[0]).sum(1)


@spelling("W4", "a regular expression", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    words = lines(env, given.text).flat_map(lambda line: re.findall(r"\w+", line))
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    return ones.reduce(lambda a, b: (a[0], a[1] + b[1]))


@spelling("W4", "Rows", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    words = lines(env, given.text).flat_map(lambda line: line.split())
    ones = words.map(lambda word: Row(word, 1)).key_by(lambda row: row[0])
    return ones.reduce(lambda a, b: Row(a[0], a[1] + b[1]))


@spelling("W4", "another filter", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    words = (
        lines(env, given.text).flat_map(lambda line: line.split()).filter(lambda word: word != "")
    )
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    return ones.reduce(lambda a, b: (a[0], a[1] + b[1]))


class RunningCount(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", LONG))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = self.count.value()
        count = 1 if count is None else count + 1
        self.count.update(count)
        yield value[0], count


@spelling("W4", "ValueState", 1, emits_for_each_record=True)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return (
        lines(env, given.text)
        .flat_map(Words())
        .key_by(lambda pair: pair[0])
        .process(RunningCount())
    )


# W5 ---------------------------------------------------------------------------------------------------------------


@spelling("W5", "lambdas")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kept = (
        numbers(env, given).map(lambda x: x + 7).map(lambda x: x * 3).filter(lambda x: x % 5 != 0)
    )
    pairs = kept.map(lambda x: (x % 1000, x)).filter(lambda pair: pair[0] != 13)
    sums = pairs.map(lambda pair: pair[0] + pair[1]).flat_map(lambda x: (x, -x))
    return sums.map(lambda x: x // 2).filter(lambda x: x % 3 != 0).map(lambda x: x ^ 255)


@spelling("W5", "typed lambdas")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    more = numbers(env, given).map(lambda x: x + 7, output_type=LONG)
    kept = more.map(lambda x: x * 3, output_type=LONG).filter(lambda x: x % 5 != 0)
    pairs = kept.map(lambda x: (x % 1000, x), output_type=PAIR).filter(lambda pair: pair[0] != 13)
    sums = pairs.map(lambda pair: pair[0] + pair[1], output_type=LONG)
    both = sums.flat_map(lambda x: (x, -x), output_type=LONG)
    halves = both.map(lambda x: x // 2, output_type=LONG).filter(lambda x: x % 3 != 0)
    return halves.map(lambda x: x ^ 255, output_type=LONG)


def plus_seven(x: int) -> int:
    return x + 7


def no_multiple_of_5(x: int) -> bool:
    return x % 5 != 0


def with_rest(x: int) -> tuple[int, int]:
    return x % 1000, x


def is_not_13(pair: Any) -> bool:
    return pair[0] != 13


def total(pair: Any) -> Any:
    return pair[0] + pair[1]


def both_signs(x: int) -> Iterator[int]:
    yield x
    yield -x


def half(x: int) -> int:
    return x // 2


def no_multiple_of_3(x: int) -> bool:
    return x % 3 != 0


def flipped(x: int) -> int:
    return x ^ 255


@spelling("W5", "defs")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kept = numbers(env, given).map(plus_seven).map(tripled).filter(no_multiple_of_5)
    sums = kept.map(with_rest).filter(is_not_13).map(total).flat_map(both_signs)
    return sums.map(half).filter(no_multiple_of_3).map(flipped)


class PlusSeven(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value + 7


class NoMultipleOf(FilterFunction[Any]):
    def __init__(self, number: int) -> None:
        self.number = number

    def filter(self, value: Any) -> bool:
        return value % self.number != 0


class WithRest(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value % 1000, value


class IsNot13(FilterFunction[Any]):
    def filter(self, value: Any) -> bool:
        return value[0] != 13


class Total(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value[0] + value[1]


class BothSigns(FlatMapFunction[Any, Any]):
    def flat_map(self, value: Any) -> Iterator[Any]:
        yield value
        yield -value


class Half(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value // 2


class Flipped(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value ^ 255


@spelling("W5", "classes")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kept = numbers(env, given).map(PlusSeven()).map(Tripled()).filter(NoMultipleOf(5))
    sums = kept.map(WithRest()).filter(IsNot13()).map(Total()).flat_map(BothSigns())
    return sums.map(Half()).filter(NoMultipleOf(3)).map(Flipped())


@spelling("W5", "Rows")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kept = (
        numbers(env, given).map(lambda x: x + 7).map(lambda x: x * 3).filter(lambda x: x % 5 != 0)
    )
    pairs = kept.map(lambda x: Row(x % 1000, x)).filter(lambda row: row[0] != 13)
    sums = pairs.map(lambda row: row[0] + row[1]).flat_map(lambda x: [x, -x])
    return sums.map(lambda x: x // 2).filter(lambda x: x % 3 != 0).map(lambda x: x ^ 255)


@spelling("W5", "dicts")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kept = (
        numbers(env, given).map(lambda x: x + 7).map(lambda x: x * 3).filter(lambda x: x % 5 != 0)
    )
    pairs = kept.map(lambda x: {"rest": x % 1000, "x": x}).filter(lambda d: d["rest"] != 13)
    sums = pairs.map(lambda d: d["rest"] + d["x"]).flat_map(lambda x: [x, -x])
    return sums.map(lambda x: x // 2).filter(lambda x: x % 3 != 0).map(lambda x: x ^ 255)


@spelling("W5", "named tuples")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    kept = (
        numbers(env, given).map(lambda x: x + 7).map(lambda x: x * 3).filter(lambda x: x % 5 != 0)
    )
    pairs = kept.map(lambda x: Amount(x % 1000, x)).filter(lambda a: a.key != 13)
    sums = pairs.map(lambda a: a.key + a.total).flat_map(lambda x: [x, -x])
    return sums.map(lambda x: x // 2).filter(lambda x: x % 3 != 0).map(lambda x: x ^ 255)


# W6 ---------------------------------------------------------------------------------------------------------------


def price_of(item: int) -> tuple[int, int]:
    return item, item * 31 % 97 + 1


class Priced(CoFlatMapFunction[Any, Any, Any]):
    """Returns (user, 1, price) of each purchase. Purchases wait until all prices are known."""

    def __init__(self) -> None:
        self.prices: dict[int, int] = {}
        self.waiting: list[int] = []

    def made(self, user: int, price: int) -> Any:
        return user, 1, price

    def flat_map1(self, value: Any) -> Iterator[Any]:
        self.prices[value[0]] = value[1]
        if len(self.prices) == ITEMS:
            for number in self.waiting:
                yield self.made(number * 7919 % USERS, self.prices[number % ITEMS])
            self.waiting = []

    def flat_map2(self, value: int) -> Iterator[Any]:
        if len(self.prices) == ITEMS:
            yield self.made(value * 7919 % USERS, self.prices[value % ITEMS])
        else:
            self.waiting.append(value)


class PricedRow(Priced):
    def made(self, user: int, price: int) -> Any:
        return Row(user, 1, price)


class PricedDict(Priced):
    def made(self, user: int, price: int) -> Any:
        return {"user": user, "bought": 1, "spent": price}


class Spent(NamedTuple):
    user: int
    bought: int
    spent: int


class PricedTuple(Priced):
    def made(self, user: int, price: int) -> Any:
        return Spent(user, 1, price)


def priced(env: StreamExecutionEnvironment, given: Input, function: Any, output: Any = None) -> Any:
    prices = env.from_sequence(0, ITEMS - 1).map(price_of).broadcast()
    return prices.connect(numbers(env, given).rebalance()).flat_map(function, output_type=output)


@spelling("W6", "lambdas", 2)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    keyed = priced(env, given, Priced()).key_by(lambda row: row[0])
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))


@spelling("W6", "typed lambdas", 2)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    rows = priced(env, given, Priced(), Types.TUPLE([LONG, LONG, LONG]))
    keyed = rows.key_by(lambda row: row[0], key_type=LONG)
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))


def added_both(a: Any, b: Any) -> Any:
    return a[0], a[1] + b[1], a[2] + b[2]


@spelling("W6", "defs", 2)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return priced(env, given, Priced()).key_by(first).reduce(added_both)


class AddedBoth(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1], value1[2] + value2[2]


@spelling("W6", "classes", 2)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return priced(env, given, Priced()).key_by(First()).reduce(AddedBoth())


@spelling("W6", "sum(1)", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    pairs = priced(env, given, Priced()).map(lambda row: (row[0], row[2]))
    return pairs.key_by(lambda pair: pair[0]).sum(1)


@spelling("W6", "Rows", 2)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    keyed = priced(env, given, PricedRow()).key_by(lambda row: row[0])
    return keyed.reduce(lambda a, b: Row(a[0], a[1] + b[1], a[2] + b[2]))


@spelling("W6", "dicts", "spent")
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    keyed = priced(env, given, PricedDict()).key_by(lambda d: d["user"])
    return keyed.reduce(
        lambda a, b: {
            "user": a["user"],
            "bought": a["bought"] + b["bought"],
            "spent": a["spent"] + b["spent"],
        }
    )


@spelling("W6", "named tuples", 2)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    keyed = priced(env, given, PricedTuple()).key_by(lambda row: row.user)
    return keyed.reduce(lambda a, b: Spent(a.user, a.bought + b.bought, a.spent + b.spent))


# W7 ---------------------------------------------------------------------------------------------------------------


def parsed(line: str) -> Any:
    return json.loads(line)


def is_expensive(bid: Any) -> Any:
    return bid["price"] >= HIGH_PRICE


def one_of(bid: Any) -> Any:
    return bid["auction"], 1


@spelling("W7", "defs", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    ones = lines(env, given.bids).map(parsed).filter(is_expensive).map(one_of)
    return ones.key_by(first).reduce(added)


@spelling("W7", "lambdas", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    expensive = (
        lines(env, given.bids)
        .map(lambda s: json.loads(s))
        .filter(lambda b: b["price"] >= HIGH_PRICE)
    )
    ones = expensive.map(lambda bid: (bid["auction"], 1))
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@spelling("W7", "typed lambdas", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    expensive = (
        lines(env, given.bids).map(json.loads).filter(lambda bid: bid["price"] >= HIGH_PRICE)
    )
    ones = expensive.map(lambda bid: (bid["auction"], 1), output_type=PAIR)
    keyed = ones.key_by(lambda pair: pair[0], key_type=LONG)
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


@spelling("W7", "sum(1)", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    expensive = (
        lines(env, given.bids).map(json.loads).filter(lambda bid: bid["price"] >= HIGH_PRICE)
    )
    return expensive.map(lambda bid: (bid["auction"], 1)).key_by(lambda pair: pair[0]).sum(1)


class DearOnes(FlatMapFunction[str, Any]):
    def flat_map(self, value: str) -> Iterator[Any]:
        bid = json.loads(value)
        if bid["price"] >= HIGH_PRICE:
            yield bid["auction"], 1


@spelling("W7", "a flat_map", 1)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    return lines(env, given.bids).flat_map(DearOnes()).key_by(First()).reduce(Added())


class CountOfKey(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", LONG))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


@spelling("W7", "dicts and a ValueState", 1, emits_for_each_record=True)
def _(env: StreamExecutionEnvironment, given: Input) -> DataStream[Any]:
    expensive = (
        lines(env, given.bids).map(json.loads).filter(lambda bid: bid["price"] >= HIGH_PRICE)
    )
    return expensive.key_by(lambda bid: bid["auction"]).process(CountOfKey())


# By hand ----------------------------------------------------------------------------------------------------------


def halves(given: Input) -> list[range]:
    middle = given.records // 2
    return [range(middle), range(middle, given.records)]


def w1_by_hand(given: Input) -> Iterator[int]:
    f, keep, g = (lambda x: x * 3), (lambda x: x % 2 == 0), (lambda x: (x, x + 1))
    for part in halves(given):
        for x in part:
            y = f(x)
            if keep(y):
                yield from g(y)


def running(records: Iterator[Any], add: Callable[[Any, Any], Any]) -> Iterator[Any]:
    totals: dict[Any, Any] = {}
    for record in records:
        key = record[0]
        known = totals.get(key)
        found = totals[key] = record if known is None else add(known, record)
        yield found


def last(records: Iterator[Any], add: Callable[[Any, Any], Any]) -> Iterator[Any]:
    totals: dict[Any, Any] = {}
    for record in records:
        key = record[0]
        known = totals.get(key)
        totals[key] = record if known is None else add(known, record)
    yield from totals.values()


FOLDS = {"STREAMING": running, "BATCH": last}


def w2_by_hand(given: Input, fold: Any) -> Iterator[int]:
    sent = (map(lambda x: (x % KEYS, x), part) for part in halves(given))  # noqa: C417
    for records in exchanged(sent, lambda pair: pair[0]):
        for pair in fold(records, lambda a, b: (a[0], a[1] + b[1])):
            yield pair[1]


def w3_by_hand(given: Input) -> Iterator[int]:
    add = lambda a, bid: (a[0] + 1, max(a[1], bid[1]))  # noqa: E731
    for records in exchanged((map(bid_of, part) for part in read(given.bids)), lambda bid: bid[0]):
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for bid in records:
            place = bid[0], bid[2] - bid[2] % WINDOW_MS
            found[place] = add(found.get(place, (0, 0)), bid)
        for _, price in found.values():
            yield price


def w4_by_hand(given: Input, fold: Any) -> Iterator[int]:
    words = (((word, 1) for line in part for word in line.split()) for part in read(given.text))
    for records in exchanged(words, lambda pair: pair[0]):
        for pair in fold(records, lambda a, b: (a[0], a[1] + b[1])):
            yield pair[1]


def w5_by_hand(given: Input) -> Iterator[int]:
    for part in halves(given):
        for x in part:
            y = tripled(plus_seven(x))
            if no_multiple_of_5(y):
                pair = with_rest(y)
                if is_not_13(pair):
                    z = total(pair)
                    for signed in (z, -z):
                        h = half(signed)
                        if no_multiple_of_3(h):
                            yield flipped(h)


def w6_by_hand(given: Input, fold: Any) -> Iterator[int]:
    prices = dict(map(price_of, range(ITEMS)))
    dealt = [pickle.dumps(list(part), 5) for part in halves(given)]
    made = (
        ((x * 7919 % USERS, 1, prices[x % ITEMS]) for x in pickle.loads(blob)) for blob in dealt
    )
    for records in exchanged(made, lambda row: row[0]):
        for row in fold(records, lambda a, b: (a[0], a[1] + b[1], a[2] + b[2])):
            yield row[2]


def w7_by_hand(given: Input, fold: Any) -> Iterator[int]:
    ones = (map(one_of, filter(is_expensive, map(parsed, part))) for part in read(given.bids))
    for records in exchanged(ones, first):
        for pair in fold(records, added):
            yield pair[1]


BY_HAND: dict[str, Callable[..., Iterator[int]]] = {
    "W1": w1_by_hand,
    "W2": w2_by_hand,
    "W3": w3_by_hand,
    "W4": w4_by_hand,
    "W5": w5_by_hand,
    "W6": w6_by_hand,
    "W7": w7_by_hand,
}
FOLDED = {"W2", "W4", "W6", "W7"}


# Measuring --------------------------------------------------------------------------------------------------------


def write_input(folder: str, records: int) -> Input:
    """Writes the input: files of bids, a millisecond apart, and of text with rare and frequent words."""
    draw = random.Random(7)
    bids, texts = [], []
    for part in range(PARALLELISM):
        bids.append(str(Path(folder) / f"bids-{part}.json"))
        with Path(bids[-1]).open("w", encoding="utf-8") as file:
            for number in range(records // PARALLELISM):
                bid = {
                    "auction": draw.randrange(1_000),
                    "bidder": draw.randrange(10_000),
                    "price": draw.randrange(100_000),
                    "channel": "Google",
                    "url": f"https://auctions.example.com/item/{number}",
                    "ts": 1_000_000 + number * 2 - draw.randrange(DISORDER_MS),
                }
                file.write(json.dumps(bid) + "\n")
        texts.append(str(Path(folder) / f"text-{part}.txt"))
        with Path(texts[-1]).open("w", encoding="utf-8") as file:
            for _ in range(records // PARALLELISM // 10):
                file.write(
                    " ".join(f"w{int(draw.random() ** 3 * 20_000)}" for _ in range(10)) + "\n"
                )
    return Input(records, bids, texts)


def program(chosen: Spelling, given: Input, folder: str, mode: str) -> Any:
    """Compiles a spelling."""
    env = environment(execution__runtime_mode=mode)
    return job_of(chosen.draw(env, given), folder, chosen.field)


def by_hand(workload: str, given: Input, mode: str) -> tuple[int, int]:
    """Runs the hand-written loop; returns the number and the sum of its results."""
    fold = [FOLDS[mode]] if workload in FOLDED else []
    return tallied(BY_HAND[workload](given, *fold))


def mode_of(chosen: Spelling, mode: str) -> str:
    """The mode of the loop with which a program's results are compared."""
    return "STREAMING" if chosen.emits_for_each_record else mode


def main() -> None:
    """Measures the programs in alternating rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(SPELLINGS))
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", choices=list(FOLDS), default="STREAMING")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        given = write_input(folder, arguments.records)
        for workload in arguments.workloads:
            spellings = SPELLINGS[workload]
            jobs = {
                name: program(chosen, given, folder, arguments.mode)
                for name, chosen in spellings.items()
            }
            seconds: dict[str, list[float]] = {name: [] for name in jobs}
            hand: dict[str, float] = {}
            for _ in range(arguments.rounds):
                expected = {}
                for mode in dict.fromkeys(
                    mode_of(item, arguments.mode) for item in spellings.values()
                ):
                    taken, expected[mode] = measured(
                        lambda w=workload, m=mode: by_hand(w, given, m)
                    )  # type: ignore[misc]
                    hand[mode] = min(taken, hand.get(mode, taken))
                for name, job in jobs.items():
                    taken, result = measured(lambda job=job: run(job, folder))  # type: ignore[misc]
                    seconds[name].append(taken)
                    right = expected[mode_of(spellings[name], arguments.mode)]
                    if result != right:
                        raise SystemExit(f"{workload} {name}: {result}, but by hand: {right}")
            least = min(map(min, seconds.values()))
            for name, all_taken in seconds.items():
                taken = min(all_taken)
                ratios = [hand[mode_of(spellings[name], arguments.mode)] / taken, taken / least]
                rows.append(
                    [workload, name, arguments.mode, taken / arguments.records * 1e6, *ratios]
                )
                print(
                    f"{workload} {name:24} {taken / arguments.records * 1e6:6.3f} us, ratio {ratios[0]:5.2f}, "
                    f"{taken / least:5.2f} of the best",
                    flush=True,
                )
            print(
                f"{workload} median ratio {statistics.median(r[4] for r in rows if r[0] == workload):.2f}"
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
