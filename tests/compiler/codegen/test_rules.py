"""After every rewrite rule a job gives the same records, in the same order, with the same counters."""

from __future__ import annotations

import json
import pickle
import re
import sys
from collections import Counter, deque, namedtuple
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, wraps
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from forms import Ran, failure_of, job_of, notes_of, run_form, seen

from opchain.common import Duration, Row, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.compiler.codegen import vertex
from opchain.compiler.codegen.function_source import Refused, definition_of
from opchain.compiler.codegen.rules import RULES, Rule
from opchain.datastream import OutputTag, ProcessFunction
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
)
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.errors import GraphError
from opchain.runtime.local.job import run_in_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opchain.compiler.codegen.form import Form
    from opchain.runtime.program.vertex_program import JobProgram

ODD = OutputTag("odd")
STEP = 3


def stepped(value: int) -> int:
    return value + STEP


class Scaled(MapFunction[int, Any]):
    """A method that calls another method, a function of the module, and reads an attribute."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def scaled(self, value: int) -> int:
        return value * self.factor

    def map(self, value: int) -> Any:
        more = stepped(value)
        if more % 5 == 0:
            return more, -1
        return more, self.scaled(more)


class Large(FilterFunction[Any]):
    def filter(self, value: Any) -> bool:
        if value[1] < 0:
            return True
        return bool(value[0] % 3)


class Spread(FlatMapFunction[Any, Any]):
    """A generator with a loop, a branch and a statement behind its `yield`."""

    def __init__(self) -> None:
        self.emitted = 0

    def flat_map(self, value: Any) -> Any:
        for number in range(value[0] % 4):
            if number == 2:
                continue
            yield number, value[1]
            self.emitted += 1


class Sorted(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        if value[0] % 2:
            yield ODD, value
        else:
            yield value[0], value[1] + 1


class Counting(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


class Mean(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        total, count = accumulator
        return total + value[1], count + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def classes(env: Any) -> None:
    stream = env.from_sequence(0, 60).map(Scaled(7)).filter(Large()).flat_map(Spread())
    split = stream.process(Sorted())
    seen(split.get_side_output(ODD), "odd")
    seen(split.key_by(lambda row: row[0]).process(Counting()), "counted")


def sums(env: Any) -> None:
    pairs = env.from_sequence(0, 60).map(lambda x: (x % 4, x, "unit"))
    seen(pairs.map(lambda row: (row[0], row[1])).key_by(lambda it: it[0]).sum(1), "sums")
    seen(pairs.key_by(lambda row: row[0]).max(1), "greatest")
    ones = pairs.map(lambda row: (row[0], 1))
    seen(ones.key_by(lambda it: it[0]).reduce(lambda a, b: (a[0], a[1] + b[1])), "ones")


def words_of(text: str) -> Any:
    return re.findall(r"[1-9]+", text)


def patterns(env: Any) -> None:
    texts = env.from_sequence(0, 60).map(lambda x: str(x * x * 7919))
    ones = texts.flat_map(words_of).map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    seen(ones.sum(1), "ones")
    seen(texts.flat_map(lambda text: re.findall("(.)([13])", text)).map(lambda two: two), "pairs")
    seen(texts.map(lambda text: re.sub("[0-4]", "-", text)).key_by(lambda text: text[0]), "names")


def windows(env: Any) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda row, _: row[2]
    )
    rows = env.from_sequence(0, 60).map(lambda x: (x % 3, x, x * 10))
    timed = rows.assign_timestamps_and_watermarks(strategy).key_by(lambda row: row[0])
    seen(timed.window(TumblingEventTimeWindows.of(100)).aggregate(Mean()), "means")


def parsed(env: Any) -> None:
    lines = env.from_sequence(0, 60).map(lambda x: f'{{"user": {x % 3}, "price": {x}.5}}')
    rows = lines.map(lambda line: json.loads(line))  # noqa: PLW0108 - as users write it
    seen(rows.map(lambda row: (row["user"], row.get("price"), row.get("none", 1))), "rows")


def written_json(env: Any) -> None:
    pairs = env.from_sequence(1, 40).map(lambda x: (x, "é" * (x % 3), x / 7, {"x": [x, None]}))
    wide = pairs.map(
        lambda p: json.dumps({"number": p[0], '"100 %s"\\': p[1], "rest": p[2], "more": p[3]})
    )
    seen(wide.map(lambda text: text.upper()), "objects")
    seen(pairs.map(lambda p: (json.dumps({"x": p[0]}), json.dumps({"y": p[1]}))), "two")
    seen(pairs.map(json.dumps), "rows")  # a whole record
    seen(pairs.map(lambda p: json.dumps({**p[3], "x": 1}, sort_keys=True)), "as they are")
    rows = pairs.map(lambda p: json.dumps({"key": p[0] % 5, "is": p[0] > 9}), Types.STRING())
    seen(rows.key_by(lambda text: text[8], Types.STRING()), "keyed")


def declared(env: Any) -> None:
    pair = Types.TUPLE([Types.LONG(), Types.DOUBLE()])
    rows = env.from_sequence(0, 60).map(lambda x: (x, x / 2 if x % 2 else x // 2), output_type=pair)
    seen(rows.key_by(lambda row: row[0] % 3, key_type=Types.LONG()).map(lambda row: row), "rows")
    fields = [Types.INT(), Types.FLOAT(), Types.LIST(Types.FLOAT()), Types.SHORT()]
    made = env.from_sequence(0, 20).map(lambda x: (x, x / 7, [x / 3, x], 5), Types.TUPLE(fields))
    seen(made.key_by(lambda row: row[0] % 3).map(lambda row: row), "converted fields")
    named = Types.ROW_NAMED(["a", "b", "c", "d"], fields)
    kept = env.from_sequence(0, 20).map(
        lambda x: Row(x, x / 7 if x % 2 else None, None if x % 3 else [x], x * 7), named
    )
    seen(kept.key_by(lambda row: row.a % 3).map(lambda row: row), "converted rows")
    plain = env.from_sequence(0, 9).map(lambda x: (x, None, [x], 5), named)
    seen(plain.key_by(lambda row: row.a % 3).map(lambda row: row), "rows of tuples")


def arithmetic(env: Any) -> None:
    numbers = env.from_sequence(-30, 60).map(lambda x: 3 * x - 1).filter(lambda x: x % 4 != 1)
    seen(numbers.flat_map(lambda x: (x, -x)).filter(lambda x: x & 7 > 2 and not x < 9), "some")
    seen(env.from_sequence(5, 9).filter(lambda x: x > 6).map(lambda x: (x // 2, 1)), "pairs")


def declared_rows(env: Any) -> None:
    kind = Types.ROW_NAMED(["key", "n"], [Types.LONG(), Types.DOUBLE()])
    numbers = env.from_sequence(0, 60)
    rows = numbers.map(lambda x: Row(x % 3, x if x % 2 else None), output_type=kind)
    seen(rows.key_by(lambda row: row[0], key_type=Types.LONG()).map(lambda row: row), "row sums")
    tuples = numbers.map(lambda x: (x % 3, x / 2), output_type=kind)
    keyed = tuples.key_by(lambda row: row[0], key_type=Types.LONG())
    seen(keyed.reduce(lambda a, b: Row(a[0], a[1] + b[1])).map(lambda row: row), "whole rows")
    named = numbers.map(lambda x: Row(n=x / 2, key=x), output_type=kind)
    seen(named.key_by(lambda row: row["key"] % 3).map(lambda row: row.n), "names")
    dicts = numbers.map(lambda x: {"n": x / 2, "key": x}, output_type=kind)
    seen(dicts.key_by(lambda row: row.key % 3).map(lambda row: row), "rows of dictionaries")


class Tally(FlatMapFunction[Any, Any]):
    """Adds to attributes, and has them in its results."""

    def __init__(self, step: Any) -> None:
        self.step, self.count, self.last = step, 0, None

    def flat_map(self, value: Any) -> Any:
        if self.last is not None and value[0] < 2:
            return
        self.count += self.step
        self.last = value
        yield self.count, self.last


class Slotted(MapFunction[Any, Any]):
    """Has no dictionary for its attributes, which a batch reads as they are."""

    __slots__ = ("sum",)

    def __init__(self) -> None:
        self.sum = 0

    def map(self, value: Any) -> Any:
        self.sum += value[0]
        return self.sum


class Field(KeySelector[Any, Any]):
    """Reads a field that an attribute names."""

    def __init__(self, field: Any) -> None:
        self.field = field

    def get_key(self, value: Any) -> Any:
        return value if self.field is None else value[self.field]


class Above(FilterFunction[Any]):
    """One attribute stays, one is set where the function is opened."""

    def __init__(self, field: Any, least: float) -> None:
        self.field, self.least, self.most = field, least, 0

    def open(self, runtime_context: Any) -> None:
        self.most = 50

    def filter(self, value: Any) -> bool:
        if self.field is not None:
            return bool(self.least < value[self.field] < self.most)
        return bool(self.least < value < self.most)


def attributes(env: Any) -> None:
    some = env.from_sequence(0, 60).filter(Above(None, 4.5)).map(lambda x: {"k": x % 3, "n": x})
    seen(some.filter(Above("n", 9)).key_by(Field("k")).map(lambda d: d["n"]), "some")
    rows = env.from_sequence(0, 60).map(lambda x: (x % 5, x))
    tally = Tally(3)
    seen(rows.flat_map(tally).flat_map(tally), "counted")  # the same object twice
    seen(rows.flat_map(Tally(0.5)).flat_map(Tally(2)).map(lambda row: row[0]), "odd")
    seen(rows.map(Slotted()), "sums")


class Labels:
    """Static methods."""

    @staticmethod
    def of(value: int) -> str:
        return f"n{value % 4}"


class Constants(MapFunction[int, Any]):
    """A constant of the class, one that the object replaces, one that `open` sets, and a static method."""

    STEP, SCALE, OFFSET = 3, 5, 7

    def __init__(self, scale: int | None) -> None:
        if scale is not None:
            self.SCALE = scale

    def open(self, runtime_context: Any) -> None:
        self.OFFSET = 8

    @staticmethod
    def doubled(value: int) -> int:
        return value * 2

    def map(self, value: int) -> Any:
        number = self.doubled(value) + self.STEP
        return Labels.of(value), number * self.SCALE + self.OFFSET


def constants(env: Any) -> None:
    numbers = env.from_sequence(0, 60)
    seen(numbers.map(Constants(None)), "odd")
    seen(numbers.map(Constants(2)), "pairs")


def comprehensions(env: Any) -> None:
    """Flat maps that return comprehensions of records."""
    numbers = env.from_sequence(0, 40)
    texts = numbers.map(lambda x: f"w{x % 5} w{x % 3} w{x % 2}")
    pairs = texts.flat_map(lambda text: [(word, 1) for word in text.split()])
    seen(pairs.key_by(lambda pair: pair[0]).sum(1), "pairs")
    rows = texts.flat_map(lambda text: (Row(word=w, n=len(w)) for w in text.split() if w != "w1"))
    seen(rows.map(lambda row: (row.word, row)), "rows")
    seen(rows.key_by(lambda row: row.word).map(lambda row: row.n), "named")
    ranges = numbers.map(lambda x: [[x], [x, x + 1]])
    seen(ranges.flat_map(lambda two: [(len(part), part) for part in two]), "some")
    orders = numbers.flat_map(lambda x: [Order(x % 3, x + more) for more in range(x % 4)])
    seen(orders.filter(lambda order: order.price % 5 != 0).map(lambda o: o.user), "ones")
    seen(orders.map(raised).key_by(lambda o: o.user).map(lambda o: o), "changed")


def raised(order: Any) -> Any:
    order.price += 1
    return order


def dataclasses(env: Any) -> None:
    numbers = env.from_sequence(0, 60)
    orders = numbers.map(lambda x: Reading(x % 4, [x], at=x))
    seen(orders.map(lambda o: (o.sensor, o.value, o.at, str(o))), "odd")
    seen(orders.map(lambda o: (o.sensor, o)).filter(lambda pair: pair[1].at % 3 != 0), "pairs")
    sums = orders.key_by(lambda o: o.sensor).reduce(
        lambda a, b: Reading(a.sensor, a.value + b.value, at=max(a.at, b.at))
    )
    seen(sums, "sums")
    short = numbers.map(lambda x: Reading(x % 3, x / 2)).filter(lambda r: r.value > 4)
    seen(short.key_by(lambda r: r.sensor).map(lambda r: (r.at, r.value)), "rows")
    seen(short.map(lambda r: r.double), "some")
    frozen = numbers.map(lambda x: Point(x % 3, y=x)).key_by(lambda p: p.x)
    seen(frozen.reduce(lambda a, b: Point(a.x, a.y + b.y)).map(lambda p: (p.y, p)), "two")
    shifted = numbers.map(lambda x: Shifted(x % 3)).map(lambda s: s.place)
    seen(shifted, "means")


def states(env: Any) -> None:
    rows = env.from_sequence(0, 60).map(lambda x: (x % 5, x))
    seen(rows.key_by(lambda row: row[0]).process(Counting()), "counted")


def both_signs(value: int) -> Any:
    yield value
    yield -value


def in_turn(env: Any) -> None:
    """Emits at two places."""
    numbers = env.from_sequence(0, 60).flat_map(both_signs)
    seen(numbers, "signs")
    seen(numbers.map(lambda x: (x, 1)).flat_map(lambda row: (row, (row[0] + 1, 2))), "more")
    rows = numbers.map(lambda x: Row(x % 3, x, "unit")).filter(lambda row: row[1] % 4 != 0)
    two = rows.flat_map(lambda row: [row, Row(row[0], row[1] + 1, -row[1])])
    seen(two.map(lambda row: row[1]), "some")
    seen(two.filter(lambda row: row[1] > 2).key_by(lambda row: row[0]).map(str), "names")
    seen(two.map(lambda row: (row[2], row[0])), "pairs")
    named = numbers.flat_map(lambda x: (Named(x, x % 2), Named(key=-x, total=1)))
    seen(named.filter(lambda n: n.total > 0).map(lambda n: n), "named")
    unlike = numbers.flat_map(lambda x: (Row(x, x), Row(k=x, n=x)))
    seen(unlike.map(lambda row: row[1]), "unlike")
    changed = rows.map(more_of_row).flat_map(lambda row: (row, row))
    seen(changed.map(lambda row: (row[0], len(row))), "changed")


class Click(NamedTuple):
    user: int
    price: Any
    at: int = 0

    @property
    def double(self) -> Any:
        return self.price * 2


Named = namedtuple("Named", "key total")  # noqa: PYI024 - as users write it


def more_of_row(row: Any) -> Any:
    row[0] += 1
    return row


def more_expensive(row: Any) -> Any:
    row["price"] += 1
    return row


class Joined(CoFlatMapFunction[Any, Any, Any]):
    """Emits at three places, in both inputs."""

    def flat_map1(self, value: Any) -> Any:
        yield {"key": value["key"], "total": 1, "of": "first"}
        yield {"key": value["key"], "total": 2, "of": "first"}

    def flat_map2(self, value: Any) -> Any:
        yield {"key": value, "total": value, "of": "second"}


def shapes(env: Any) -> None:
    """Rows, named tuples and dictionaries, read by field, as a whole, and changed."""
    numbers = env.from_sequence(0, 60)
    rows = numbers.map(lambda x: Row(x % 5, x)).filter(lambda row: row[1] % 3 != 0)
    seen(rows.key_by(lambda row: row[0]).reduce(lambda a, b: Row(a[0], a[1] + b[1])), "row sums")
    named = numbers.map(lambda x: Row(key=x % 4, price=x, at="now"))
    seen(named.map(lambda row: (row.key, row["price"], row[2], str(row), len(row))), "names")
    seen(named.key_by(lambda row: row["key"]).map(lambda row: row), "whole rows")
    clicks = numbers.map(lambda x: Click(x % 4, x / 2, at=x))
    seen(clicks.map(lambda c: (c.user, c[1], c.double, c._replace(at=0))), "clicks")
    later = clicks.key_by(lambda c: c.user).reduce(
        lambda a, b: Click(a.user, a.price + b.price, b.at)
    )
    seen(later, "click sums")
    texts = numbers.map(lambda x: Named(str(x % 3), x)).key_by(lambda n: n.key)
    seen(texts.reduce(lambda a, b: Named(a.key, a.total + b.total)).map(lambda n: n), "named")
    dicts = numbers.map(lambda x: {"key": x % 3, "price": x, "_": None})
    seen(dicts.map(lambda d: (d["key"], d.get("price"), d.get("none"), d.get("_", 1))), "dicts")
    changed = dicts.map(more_expensive)
    seen(changed.key_by(lambda d: d["key"]).map(lambda d: sorted(d.items())), "changed")
    kept = dicts.key_by(lambda d: d["key"])
    seen(kept.reduce(lambda a, b: {"key": a["key"], "price": b["price"], "_": None}), "last")
    three = numbers.map(lambda x: Row(x % 3, x, str(x)))
    totals = three.key_by(lambda row: row[0]).reduce(
        lambda a, b: Row(a[0], a[1] + b[1], max(a[2], b[2]))
    )
    seen(totals.map(lambda row: (row, row[2])), "sums")
    least = clicks.key_by(lambda c: c.user).reduce(
        lambda a, b: Click(user=a.user, price=min(a.price, b.price), at=a.at)
    )
    seen(least.map(lambda c: (c.price, c.at)), "ones")
    first = numbers.map(lambda x: Row(k=x % 3, n=x)).key_by(lambda row: row.k)
    seen(first.reduce(lambda a, b: Row(a[0], a[1] + b[1])).map(str), "means")
    seen(first.reduce(lambda a, b: Row(a[0], (a[1], b[1])[1])).map(lambda r: r[1]), "greatest")
    joined = dicts.connect(numbers).flat_map(Joined())
    seen(joined.key_by(lambda d: d["key"] % 7).map(lambda d: (d["of"], d)), "joined")
    both = rows.union(numbers.map(lambda x: Row(x % 5, "more", x)))
    seen(both.key_by(lambda row: row[0]).map(lambda row: row), "unlike")


@dataclass
class Order:
    user: int
    price: int


@dataclass
class Reading:
    sensor: int
    value: Any
    at: int = 0

    @property
    def double(self) -> Any:
        return self.value * 2


@dataclass(frozen=True)
class Point:
    x: int
    y: int


@dataclass
class Shifted:
    """Sets a field itself."""

    place: int

    def __post_init__(self) -> None:
        self.place += 1


def merged(a: Any, b: Any) -> Any:
    total = a[1] + b[1]
    highest = a[2]
    if b[2] > highest:
        highest, total = b[2], total + 1
    return a[0], total, highest


def appended(a: Any, b: Any) -> Any:
    a[1].extend(b[1])
    return a


class Dearest(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        if value1[2] >= value2[2]:
            return value1
        return value2


class Either(CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> Any:
        return value % 3, value

    def map2(self, value: Any) -> Any:
        return None if value % 2 else (value % 3, 0)


class Doubled(CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> Any:
        return value % 3, value

    def map2(self, value: Any) -> Any:
        return value % 3, 0


def longer(pair: Any) -> Any:
    pair[1].append(-1)
    return pair


class Tagging(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value % 5 == 0:
            yield ODD, value
        elif value % 2 == 0:
            yield value % 3, value
        else:
            yield (ODD if value % 7 == 0 else value % 7), 0


def reduces(env: Any) -> None:
    """Reduce functions with statements, copies at forks, and records that are made at several places."""
    numbers = env.from_sequence(0, 60)
    three = numbers.map(lambda x: (x % 5, x, x * 7 % 11)).key_by(lambda row: row[0])
    seen(three.reduce(merged).map(lambda row: row[1:]), "sums")
    seen(three.reduce(Dearest()), "greatest")
    seen(three.max_by(2), "ones")
    seen(three.min_by(2).map(lambda row: (row[1], row)), "means")
    lists = numbers.map(lambda x: (x % 5, [x]))
    seen(lists.key_by(lambda row: row[0]).reduce(appended).map(longer), "changed")
    seen(lists.map(longer), "rows")
    seen(lists.map(lambda row: (row[1], row[0])).map(lambda row: (row[0], len(row[0]))), "pairs")
    orders = numbers.map(lambda x: Order(x % 5, x)).key_by(lambda order: order.user)
    totals = orders.reduce(lambda a, b: Order(a.user, price=a.price + b.price))
    seen(totals.map(lambda order: (order.user, order.price)), "clicks")
    seen(numbers.connect(numbers).map(Either()).key_by(lambda pair: pair[0]).sum(1), "joined")
    seen(numbers.connect(numbers).map(Doubled()).key_by(lambda pair: pair[0]).max(1), "unlike")
    tagged = numbers.process(Tagging())
    seen(tagged.key_by(lambda pair: pair[0]).sum(1), "some")
    seen(tagged.get_side_output(ODD), "odd")


def halved(value: int) -> int:
    if value >= 0:
        pair = (value, value // 2)
    else:
        raise ValueError(value)
    return pair[0] - pair[1]


def parsed_or_none(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return None


def parsed_or_less(text: str) -> Any:
    try:
        number = int(text) * 10
    except (ValueError, TypeError) as error:
        return -len(str(error))
    if number > 100:
        return 100
    return number


def parsed_behind(text: str) -> Any:
    try:
        if not text:
            return "", 0
        return text, 7 // int(text)
    except ValueError:
        pass
    except ZeroDivisionError:
        return text, -1
    return None


def first_digit(text: str) -> Any:
    for letter in text:
        try:
            return int(letter), text
        except ValueError:  # noqa: PERF203 - as users write it
            continue
    return -1, text


def parsed_list(text: str) -> Any:
    try:
        return [int(part) for part in text.split("-")]
    except ValueError:
        return []


class Numbers(ProcessFunction[Any, Any]):
    """Generators that yield in a `try`, in an `except` and behind both."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        try:
            pair = {"text": value, "number": int(value)}
        except ValueError as error:
            yield ODD, str(error)
            return
        yield pair["text"], pair["number"] + 1


class Quotients(ProcessFunction[Any, Any]):
    def __init__(self) -> None:
        self.failed = 0

    def process_element(self, value: Any, ctx: Any) -> Any:
        try:
            yield value, 10 // int(value)
        except ZeroDivisionError:
            self.failed += 1
        except ValueError as error:
            self.failed += 1
            yield ODD, (value, self.failed, type(error).__name__)


def digits(text: str) -> Any:
    for part in text.split("-"):
        if part == "9":
            return  # a loop that ends
        try:
            yield int(part), text
        except ValueError:
            yield -1, part
        length = len(part)
        if length > 1:
            yield length, ""


def with_finally(text: str) -> Any:
    tries = []
    try:
        tries.append(int(text))
    except ValueError:
        tries.append(-1)
    else:
        tries.append(0)
    finally:
        tries.append(len(tries))
    return tries


def parsed_key(text: str) -> int:
    try:
        return int(text) % 3
    except ValueError:
        return -1


def merged_texts(one: Any, other: Any) -> Any:
    try:
        return other[0], one[1] + int(other[0])
    except ValueError:
        return one


def is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def caught(env: Any) -> None:
    """Functions that raise and catch errors."""
    numbers = env.from_sequence(0, 60)
    seen(numbers.map(halved), "more")
    texts = numbers.map(lambda x: ("", "a", f"{x}", f"b{x}", f"{x}-9-1", f"x-{x}", "0")[x % 7])
    seen(texts.map(parsed_or_none), "signs")
    seen(texts.map(parsed_or_less).map(lambda x: (x, x + 1)), "rows")
    seen(texts.map(parsed_behind), "whole rows")
    seen(texts.map(first_digit).map(lambda row: row[0]), "clicks")
    seen(texts.flat_map(parsed_list), "named")
    processed = texts.process(Numbers())
    seen(processed.map(lambda row: row[1]), "some")
    seen(processed.get_side_output(ODD), "odd")
    quotients = texts.process(Quotients())
    seen(quotients, "pairs")
    seen(quotients.get_side_output(ODD).map(lambda row: row[0]), "ones")
    seen(texts.flat_map(digits).map(lambda row: row[0]), "two")
    seen(texts.map(with_finally), "changed")
    keyed = texts.map(lambda text: (text, 0)).key_by(lambda pair: parsed_key(pair[0]))
    seen(keyed.reduce(merged_texts), "sums")
    seen(texts.filter(is_number).map(int), "counted")
    seen(texts.key_by(parsed_key).map(parsed_or_none), "last")


BAD = OutputTag("bad", Types.STRING())
MADE = Types.ROW_NAMED(["name", "size"], [Types.STRING(), Types.LONG()])


class ParseRow(ProcessFunction[str, Any]):
    """A record is made in the last line of a `try`, and emitted after it."""

    def process_element(self, value: str, ctx: Any) -> Any:
        try:
            name, size = value.split("-")
            row = Row(name, int(size))
        except ValueError as error:
            yield BAD, f"{value}: {error}"
            return
        yield row


def sizes_of(text: str) -> Any:
    for part in text.split("3"):
        yield part[:1], len(part)


def made_in_a_try(env: Any) -> None:
    texts = env.from_sequence(0, 60).map(lambda x: f"{x % 7}-{'x' if x % 5 == 0 else x}")
    rows = texts.process(ParseRow(), output_type=MADE)
    seen(rows.filter(lambda row: row.size > 9).map(lambda row: (row.name, row.size)), "rows")
    seen(rows.get_side_output(BAD), "bad")


def twice(value: int) -> Any:
    yield value % 3, value
    yield value % 2, value + 1


def times_of_two_places(env: Any) -> None:
    """A function emits at two places, and the greatest timestamp is that of both."""
    rows = env.from_collection(list(range(60))).flat_map(twice)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed = rows.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda row, _: row[1])
    )
    windows = timed.key_by(lambda row: row[0]).window(TumblingEventTimeWindows.of(10))
    seen(windows.reduce(lambda a, b: (a[0], a[1] + b[1])), "sums")


def declared_sums(env: Any) -> None:
    kind = Types.TUPLE([Types.STRING(), Types.LONG()])
    sizes = env.from_sequence(0, 60).map(lambda x: f"{x * 7919}-").flat_map(sizes_of, kind)
    seen(sizes.key_by(lambda pair: pair[0]).sum(1), "sums")


class MadeAt(TimestampAssigner):
    """The time of a record is its size."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value.size


class Name(str):
    """A str that becomes a plain one where a record is converted."""

    __slots__ = ()


class MadeAndChanged(MadeAt):
    """It also changes the record, to a value that has not the form of the declared type."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        value[0] = Name(value.name)
        return value.size


def timed_rows(env: Any, assigner: TimestampAssigner) -> None:
    rows = env.from_sequence(0, 60).map(lambda x: Row(name=f"n{x % 7}", size=x), output_type=MADE)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    timed = rows.assign_timestamps_and_watermarks(strategy).key_by(lambda row: row.name)
    window = timed.window(TumblingEventTimeWindows.of(Duration.of_millis(10)))
    sums = window.reduce(lambda a, b: Row(name=a.name, size=a.size + b.size))
    seen(sums.map(lambda row: (row.name, type(row.name).__name__, row.size)), "sizes")


def rows_with_times(env: Any) -> None:
    timed_rows(env, MadeAt())


def rows_changed_by_their_assigner(env: Any) -> None:
    timed_rows(env, MadeAndChanged())


def fields_by_name(env: Any) -> None:
    """Aggregations of fields by name, and by index where records have places."""
    numbers = env.from_sequence(0, 60).map(lambda x: x * 7 % 31)
    rows = numbers.map(lambda x: Row(key=x % 3, size=x)).key_by(lambda row: row.key)
    seen(rows.sum("size"), "sums")
    seen(rows.max_by(1), "rows")
    dicts = numbers.map(lambda x: {"key": x % 3, "size": x}).key_by(lambda d: d["key"])
    seen(dicts.min("size"), "dicts")
    clicks = numbers.map(lambda x: Click(x % 3, x)).key_by(lambda click: click.user)
    seen(clicks.max("price"), "clicks")
    seen(clicks.sum(1), "two")
    orders = numbers.map(lambda x: Order(x % 3, x)).key_by(lambda order: order.user)
    seen(orders.sum("price").map(lambda order: (order.user, order.price)), "sizes")


def collected_rows(env: Any) -> None:
    some = [(f"n{x % 7}", x) for x in range(40)]
    rows = env.from_collection(some, type_info=MADE).key_by(lambda row: row.name)
    seen(rows.reduce(lambda a, b: Row(name=a.name, size=a.size + b.size)), "sizes")
    seen(rows.sum("size"), "sums")
    changed = env.from_collection([Row("a", 1), Row("b", 2)]).map(with_more)
    seen(changed, "changed")


def with_more(row: Any) -> Any:
    row[1] = row[1] + 1
    return row


def joined_windows(env: Any) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda row, _: row["at"]
    )
    dicts = env.from_sequence(0, 60).map(lambda x: {"key": x % 5, "at": x})
    timed = dicts.assign_timestamps_and_watermarks(strategy)
    others = timed.filter(lambda row: row["at"] % 3 == 0)
    keyed = timed.join(others).where(lambda row: row["key"]).equal_to(lambda row: row["at"] % 7)
    window = keyed.window(TumblingEventTimeWindows.of(Duration.of_millis(20)))
    seen(window.apply(lambda one, other: (one["at"], other["at"])), "joined")


def row_or_none(text: str) -> Any:
    try:
        size = int(text)
    except ValueError:
        return None
    return Row(name=text[:1], size=size)


def pair_or_none(text: str) -> Any:
    if "7" in text:
        return None
    if "x" in text:
        return None
    return text[:1], int(text)


def size_of_failure(text: str) -> Any:
    """Returns a record while an exception is handled, which is over when it is emitted."""
    try:
        size = int(text)
    except ValueError as error:
        return text, len(str(error))
    return None if size else (text, 0)


def filters_of_none(env: Any) -> None:
    texts = env.from_sequence(0, 60).map(lambda x: "x" if x % 5 == 0 else str(x * 37))
    rows = texts.map(row_or_none, output_type=MADE).filter(lambda row: row is not None)
    seen(rows.key_by(lambda row: row.name).sum("size"), "sums")
    pairs = texts.map(pair_or_none).filter(lambda p: p is not None and p[1] > 100)
    seen(pairs.map(lambda pair: (pair[1], pair[0])), "pairs")
    parsed = texts.map(row_or_none)
    seen(parsed.filter(lambda row: row is not None).map(lambda row: row.size), "sizes")
    seen(parsed.map(lambda row: "none" if row is None else row.name), "names")
    either = texts.map(lambda text: (text, 1) if text > "5" else None)
    seen(either.filter(lambda pair: pair is not None), "one")
    failed = texts.map(size_of_failure).filter(lambda pair: pair is not None)
    seen(failed.map(lambda pair: (*pair, sys.exc_info()[0])), "changed")


def both_kinds(env: Any) -> None:
    dicts = env.from_sequence(0, 60).map(lambda x: f'{{"k": {x % 3}, "n": [{x}]}}').map(json.loads)
    seen(dicts.filter(lambda d: d["k"] == 1).key_by(lambda d: d["k"]), "keyed")
    seen(dicts.filter(lambda d: d["k"] != 1).rebalance(), "dicts")


@dataclass
class Sale:
    shop: int
    price: int
    FEE = 2

    @classmethod
    def of(cls, number: int) -> Sale:
        return cls(number % 4, number * 3 + cls.FEE)

    @classmethod
    def parse(cls, text: str) -> Sale:
        return cls.of(int(text))

    @staticmethod
    def twice(number: int) -> Sale:
        return Sale(number % 3, 2 * number)

    def handed_on(self) -> Any:
        return repr(self)


class Dearer(Sale):
    FEE = 100

    @classmethod
    def of(cls, number: int) -> Sale:
        return super().of(number + 1)


@dataclass(frozen=True)
class Mark:
    place: int
    value: int

    @classmethod
    def of(cls, number: int) -> Mark:
        return cls(number % 3, number)


class Spot(NamedTuple):
    x: int
    y: int

    @classmethod
    def of(cls, number: int) -> Spot:
        return cls(number % 3, number)


class Scale:
    """Its methods are passed as functions."""

    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.calls = 0

    def times(self, number: int) -> int:
        self.calls += 1
        return number * self.factor + self.calls


class ByRest(KeySelector[Any, Any]):
    def __init__(self, rests: dict[int, str], divisor: int) -> None:
        self.rests = rests
        self.divisor = divisor

    def get_key(self, value: Any) -> str:
        return self.rests[value[0] % self.divisor]


def sale_or_none(text: str) -> Sale | None:
    try:
        number = int(text)
        return Sale(number % 4, 1000 // (number % 7))
    except (ValueError, ZeroDivisionError) as error:
        sys.stderr.write(type(error).__name__)
        return None


def bound_methods(env: Any) -> None:
    numbers = env.from_sequence(0, 60)
    sales = numbers.map(Sale.of)
    seen(sales.map(lambda sale: (sale.shop, sale.price)), "pairs")
    seen(sales.key_by(lambda sale: sale.shop).reduce(max_price), "greatest")
    seen(numbers.map(lambda x: Sale.of(x + 1)).filter(lambda sale: sale.price % 2 == 0), "ones")
    seen(numbers.map(lambda x: Sale.parse(str(x)).price), "some")
    seen(numbers.map(lambda x: Sale.twice(x + 1)).map(lambda sale: sale.price), "two")
    seen(numbers.map(Dearer.of).map(lambda sale: (sale, type(sale).__name__)), "objects")
    seen(numbers.map(lambda x: Dearer.of(x + 1)).map(str), "means")
    seen(numbers.map(Mark.of).map(lambda mark: (mark.value, mark.place)), "rows")
    seen(numbers.map(Spot.of).key_by(lambda spot: spot.x).reduce(lambda a, b: b), "named")
    seen(numbers.map(Scale(3).times), "odd")
    keyed = numbers.map(lambda x: (x, 1)).key_by(ByRest({0: "a", 1: "b", 2: "c"}, 3))
    seen(keyed.reduce(lambda a, b: (b[0], a[1] + b[1])), "sums")
    texts = numbers.map(lambda x: "x" if x % 5 == 0 else str(x))
    made = texts.map(sale_or_none).filter(lambda sale: sale is not None)
    seen(made.map(lambda sale: (sale.price, sale.shop)), "changed")


@dataclass
class Visit:
    user: int
    page: str = "/"
    tags: Any = None

    @classmethod
    def of_dict(cls, fields: dict[str, Any]) -> Visit:
        return cls(**fields)


class Place(NamedTuple):
    x: int
    y: int = 7


LINES = [
    *(f'{{"user": {x % 5}, "page": "p{x}"}}' for x in range(20)),
    *(f'{{"tags": [{x}], "user": {x % 3}}}' for x in range(10)),
    *('{"user": 1, "user": 2}', '{"page": null, "user": 1.5}'),
]


def lines_of(env: Any, folder: Path, lines: Sequence[str]) -> Any:
    """The lines of a file, whose type is known at compile time."""
    path = folder / "lines"
    path.write_text("\n".join(lines), "utf-8")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
    return env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines")


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    ("draw", "line"),
    [
        (lambda lines: lines.map(lambda line: Visit(**json.loads(line))), "object_1.field_0"),
        (lambda lines: lines.map(json.loads).map(Visit.of_dict), "value_1.field_2"),
        (lambda lines: lines.map(lambda line: json.loads(line)["user"]), "object_1.field_0"),
        (lambda lines: lines.map(lambda line: json.loads(line).get("page")), "object_1.field_0"),
        (
            lambda lines: lines.map(lambda _: '{"x": 1}').map(lambda s: Place(**json.loads(s))),
            "place_2(**object_2)",
        ),
    ],
)
def test_fields_of_an_unnamed_json_object_are_read(
    draw: Any, line: str, mode: str, tmp_path: Path
) -> None:
    def drawn(env: Any) -> None:
        seen(draw(lines_of(env, tmp_path, LINES)).map(lambda found: found), "rows")

    keys: Any = {"mode": mode, "batch_size": 7}
    ran = run_form(drawn, **keys)
    assert line in ran.job.vertices[0].source
    give_the_same(ran, run_form(drawn, "interpreted", **keys), "all")


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"user": 1, "place": 2}', "unexpected keyword argument 'place'"),
        ('{"page": "a"}', "missing 1 required positional argument: 'user'"),
        ("[1]", "must be a mapping, not list"),
    ],
)
def test_a_record_with_wrong_fields_fails_like_its_class(
    form: str, line: str, message: str, tmp_path: Path
) -> None:
    def draw(env: Any) -> None:
        lines = lines_of(env, tmp_path, ['{"user": 1}', line, '{"user": 3}'])
        seen(lines.map(lambda text: Visit(**json.loads(text))).map(lambda v: v.user), "users")

    error = failure_of(draw, form)
    assert type(error) is TypeError
    assert message in str(error)
    assert f"at record {line!r}" in notes_of(error)


def max_price(one: Sale, other: Sale) -> Sale:
    return one if one.price > other.price else other


@pytest.mark.parametrize(
    ("draw", "line"),
    [
        (lambda numbers: numbers.map(Sale.of), "self_of_of_1.FEE"),
        (lambda numbers: numbers.map(lambda x: Sale.of(x + 1)), "% 4"),
        (lambda numbers: numbers.map(Mark.of), "value % 3"),
        (lambda numbers: numbers.map(Scale(3).times), "value * 3"),
        (
            lambda numbers: numbers.map(lambda x: (x, 1)).key_by(ByRest({0: "a"}, 1)).map(str),
            "self_of_get_key_to_0.rests[value % 1]",
        ),
        (
            lambda numbers: numbers.map(str).map(sale_or_none).filter(lambda s: s is not None),
            "part_2_1 = 1000 // (number_2 % 7)",
        ),
    ],
)
def test_a_bound_method_is_inlined(draw: Any, line: str) -> None:
    source = job_of(lambda env: draw(env.from_sequence(0, 9))).vertices[0].source
    assert line in source


def test_a_class_method_that_the_program_replaced_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def draw(env: Any) -> None:
        seen(
            env.from_sequence(1, 4).map(lambda x: Mark.of(x + 0)).map(lambda mark: mark.value),
            "odd",
        )

    job = job_of(draw)
    assert "inlined: 'of'" in str(job.vertices[0].remarks)
    monkeypatch.setattr(Mark, "of", classmethod(lambda cls, number: cls(0, -number)))
    assert Ran(job, run_in_process(job)).records("odd") == [-1, -2, -3, -4]


def with_unread(number: int) -> int:
    try:
        quotient = 10 // number
    finally:
        last = number  # noqa: F841 - nobody reads it
    return quotient


def test_a_finally_block_that_sets_an_unread_variable_is_removed() -> None:
    def draw(env: Any) -> None:
        seen(env.from_collection([1, 2, 5]).map(with_unread), "quotients")

    assert run_form(draw).records("quotients") == [10, 5, 2]
    assert "try:" not in source_of(draw)


def test_a_record_that_a_try_creates_is_split_into_fields() -> None:
    source = job_of(made_in_a_try).vertices[0].source.partition("def fallback_0")[0]
    assert "row_of" not in source
    assert "as_declared" not in source
    assert "is_tagged" not in source


class LargeOnes(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value["price"] > 3:
            yield value


def test_only_the_fields_that_are_read_of_a_record_that_a_process_function_sends_on_are_exchanged() -> (
    None
):
    def draw(env: Any) -> None:
        orders = env.from_sequence(1, 6).map(lambda n: {"id": n, "price": n % 5, "note": str(n)})
        large = orders.key_by(lambda order: order["id"]).process(LargeOnes())
        seen(large.map(lambda order: order["id"] * 10), "large")

    source = source_of(draw).partition("def fallback_0")[0]
    assert "is_tagged" not in source
    assert "note" not in source
    assert run_form(draw).records("large") == [40]


def test_a_declared_row_is_converted_once() -> None:
    source = job_of(rows_with_times).vertices[0].source.partition("def fallback_0")[0]
    assert "as_declared_2" not in source
    assert "column_0_1.append" in source
    source = job_of(rows_changed_by_their_assigner).vertices[0].source
    assert "as_declared_2" in source.partition("def fallback_0")[0]


def test_aggregations_by_field_name_are_inlined() -> None:
    (sender, *_) = job_of(fields_by_name, mode="BATCH").vertices
    for compiled in (sender, *job_of(fields_by_name).vertices):
        code = compiled.source.partition("def fallback_0")[0]
        assert "sum_aggregator" not in code
        assert "comparable_aggregator" not in code


def test_joins_call_the_key_selector_of_each_input() -> None:
    *senders, _ = job_of(joined_windows).vertices
    code = "".join(v.source.partition("def fallback_0")[0] for v in senders)
    assert "% 7)" in code
    assert "get_key" not in code


def test_rows_after_a_filter_of_none_are_sent_by_field() -> None:
    source = job_of(filters_of_none).vertices[0].source.partition("def fallback_0")[0]
    assert "column_0_1.append" in source
    assert "is None" not in source.partition("for_")[0]


def test_rows_of_a_collection_are_sent_by_field() -> None:
    vertices = job_of(collected_rows).vertices
    source = next(v.source for v in vertices if "Collection Source" in v.name)
    assert "column_0_1.append(field_1)" in source
    assert "values_0" not in source


def test_a_sum_of_declared_tuples_is_inlined() -> None:
    for mode in ("STREAMING", "BATCH"):
        vertices = job_of(declared_sums, mode=mode).vertices
        assert not any(
            "sum_aggregator" in v.source.partition("def fallback_0")[0] for v in vertices
        )


def counted_words(line: str) -> Any:
    return Counter(line.split()).items()  # a view, not a generator or list


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_declared_tuples_of_a_function_that_is_called_are_sent_by_field(form: str) -> None:
    def draw(env: Any) -> None:
        kind = Types.TUPLE([Types.STRING(), Types.INT()])
        pairs = env.from_collection(["a b a", "b"]).flat_map(cache(counted_words), kind)
        total = pairs.key_by(lambda pair: pair[0]).reduce(lambda x, y: (x[0], x[1] + y[1]))
        seen(total, "totals")

    ran = run_form(draw, form)
    assert sorted(ran.records("totals")) == [("a", 2), ("b", 1), ("b", 2)]
    assert (", by fields" in str(ran.job.vertices[0].source)) is (form == "inlined")


def test_filters_at_a_fork_read_the_same_record() -> None:
    assert "own_copy" not in job_of(both_kinds).vertices[0].source.partition("def fallback_0")[0]


@dataclass
class Bill:
    shop: int
    price: int

    def shop_and_tax(self, rate: int) -> Any:
        return self.shop, self.price * rate

    def raised(self, by: int) -> Bill:
        if self.price % 3:
            return replace(self, price=self.price + by)
        return self

    @property
    def is_high(self) -> bool:
        return self.price > 60


def cut(price: int, by: int = 7, *, least: int = 0) -> int:
    return max(least, price - by)


def rounded(price: int, digits: int = -1, more: int = 0) -> int:
    return round(price, digits) + more


def keywords(env: Any) -> None:
    numbers = env.from_sequence(0, 40).map(lambda x, step=3: x * step)
    seen(
        numbers.map(lambda x: (x, rounded(x), rounded(more=x + 1, price=x), rounded(x, 0))), "rows"
    )
    seen(numbers.map(rounded).map(lambda x: (cut(x), cut(x, least=9))), "pairs")
    bills = numbers.map(lambda x: Bill(shop=x % 4, price=x))
    seen(bills.map(lambda bill: bill.raised(by=2)).map(lambda bill: bill.price), "some")


class Billed(NamedTuple):
    shop: int
    price: int

    def halved(self) -> Billed:
        return self._replace(price=self.price // 2)


def record_methods(env: Any) -> None:
    bills = env.from_sequence(0, 60).map(lambda x: Bill(x % 4, x * 3)).map(lambda x: x.raised(5))
    high = bills.filter(lambda bill: bill.is_high)
    seen(high.map(lambda bill: json.dumps(asdict(bill))), "objects")
    taxed = high.key_by(lambda bill: bill.shop).map(lambda bill: bill.shop_and_tax(2))
    seen(taxed.key_by(lambda row: row[0]).sum(1), "sums")
    billed = bills.map(lambda bill: Billed(bill.shop, bill.price)).map(lambda bill: bill.halved())
    seen(billed.key_by(lambda bill: bill.shop).map(lambda bill: bill._asdict()), "dicts")


PROGRAMS = (
    *(
        times_of_two_places,
        made_in_a_try,
        record_methods,
        keywords,
        declared_sums,
        both_kinds,
        bound_methods,
    ),
    *(rows_with_times, rows_changed_by_their_assigner),
    *(fields_by_name, collected_rows, joined_windows, filters_of_none),
    *(classes, sums, windows, parsed, written_json, declared, arithmetic, attributes, states),
    *(in_turn, patterns, declared_rows, reduces, caught, constants, comprehensions),
    *(dataclasses, shapes),
)


MOSTLY_SLOW = [
    pytest.param(draw, marks=[pytest.mark.slow] if number % 3 or draw is shapes else [])
    for number, draw in enumerate(PROGRAMS)
]
"""The programs, two thirds of them as slow tests."""


NAMES = (
    *("signs", "more", "row sums", "names", "whole rows", "clicks", "click sums", "named", "dicts"),
    *("changed", "last", "joined", "unlike"),
    *("odd", "counted", "sums", "greatest", "ones", "means", "rows", "some", "pairs"),
    *("objects", "two", "as they are", "keyed", "bad"),
)


def give_the_same(ran: Ran, expected: Ran, last: str) -> None:
    assert ran.outcome.committables.values(), last
    for name in NAMES:
        assert ran.subtasks(name) == expected.subtasks(name), (last, name)
    assert ran.counters() == expected.counters(), last


def state_of(form: Form) -> Any:
    """All that rules change, for comparison with the form at another time."""
    found = (form.callees, form.constants, form.aggregations, form.window_folds)
    code = pickle.dumps((form.functions, form.names, form.sent, form.remarks))
    return code, [dict(objects) for objects in found]


def noting_effects(rules: Sequence[Rule], effective: set[int]) -> list[Rule]:
    """The same rules. A rule that changes the form of a vertex adds its position to the set."""

    def noting(position: int, rule: Rule) -> Rule:
        @wraps(rule.apply)
        def apply(form: Form) -> None:
            before = state_of(form)
            rule.apply(form)
            if state_of(form) != before:
                effective.add(position)

        return replace(rule, apply=apply)

    return list(starmap(noting, enumerate(rules)))


@pytest.mark.parametrize("draw", MOSTLY_SLOW)
@pytest.mark.parametrize("mode", ["STREAMING", pytest.param("BATCH", marks=pytest.mark.slow)])
def test_every_prefix_of_the_rules_gives_the_same_results(
    draw: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its last rules, a prefix gives the same code if these changed nothing: it is compiled and run once.

    BATCH takes every fourth prefix: it goes through the same rules.
    """
    interpreted = run_form(draw, "interpreted", mode=mode, parallelism=2, batch_size=7)
    effective = {len(RULES)}
    step = 4 if mode == "BATCH" else 1
    while effective:
        rules = RULES[: sorted(effective)[-step:][0]]
        effective.clear()
        monkeypatch.setattr(vertex, "RULES", noting_effects(rules, effective))
        ran = run_form(draw, mode=mode, parallelism=2, batch_size=7)
        give_the_same(ran, interpreted, rules[-1].name if rules else "nothing")


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("batch_size", [7, 1000])
def test_records_of_any_class_are_the_same_in_each_form(mode: str, batch_size: int) -> None:
    interpreted = run_form(shapes, "interpreted", mode=mode, parallelism=2, batch_size=batch_size)
    ran = run_form(shapes, mode=mode, parallelism=2, batch_size=batch_size)
    give_the_same(ran, interpreted, "all")


@pytest.mark.parametrize("kind", ["Row", "named Row", "named tuple", "dataclass", "dict"])
def test_a_reduce_of_records_keeps_the_field_that_changes(kind: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(0, 20)
        if kind == "Row":
            keyed = numbers.map(lambda x: Row(x % 5, x)).key_by(lambda row: row[0])
            sums = keyed.reduce(lambda a, b: Row(a[0], a[1] + b[1]))
        elif kind == "named Row":
            keyed = numbers.map(lambda x: Row(k=x % 5, n=x)).key_by(lambda row: row.k)
            sums = keyed.reduce(lambda a, b: Row(k=a["k"], n=a.n + b[1]))
        elif kind == "named tuple":
            keyed = numbers.map(lambda x: Named(x % 5, x)).key_by(lambda row: row.key)
            sums = keyed.reduce(lambda a, b: Named(a.key, a.total + b[1]))
        elif kind == "dataclass":
            keyed = numbers.map(lambda x: Order(x % 5, x)).key_by(lambda order: order.user)
            sums = keyed.reduce(lambda a, b: Order(user=a.user, price=a.price + b.price))
        else:
            keyed = numbers.map(lambda x: {"k": x % 5, "n": x}).key_by(lambda row: row["k"])
            sums = keyed.reduce(lambda a, b: {"k": a["k"], "n": a["n"] + b.get("n")})
        seen(sums, "sums")

    ran = run_form(draw)
    assert ran.records("sums") == run_form(draw, "interpreted").records("sums")
    first, second = (vertex.source or "" for vertex in ran.job.vertices)
    assert "column_0_1.append" in first
    assert "sums_0.get(" in second


@pytest.mark.parametrize("kind", [Row, Named, dict])
def test_a_reduce_of_records_keeps_a_tuple_of_the_changing_fields(kind: Any) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(0, 20).map(lambda x: (x % 5, str(x)))
        if kind is dict:
            keyed = numbers.map(lambda p: {"a": p[0], "n": 1, "b": p[1]}).key_by(lambda d: d["a"])
            sums = keyed.reduce(lambda a, b: {"a": a["a"], "n": a["n"] + 1, "b": b["b"] + a["b"]})
        elif kind is Row:
            keyed = numbers.map(lambda p: Row(p[0], 1, p[1])).key_by(lambda row: row[0])
            sums = keyed.reduce(lambda a, b: Row(a[0], a[1] + 1, b[2] + a[2]))
        else:
            keyed = numbers.map(lambda p: Click(p[0], 1, p[1])).key_by(lambda c: c.user)
            sums = keyed.reduce(lambda a, b: Click(a.user, a.price + 1, b.at + a.at))
        seen(sums, "sums")

    ran = run_form(draw, batch_size=7)
    assert ran.records("sums") == run_form(draw, "interpreted").records("sums")
    assert "entry_0 = (1, field_2) if previous_0 is None else " in (
        ran.job.vertices[1].source or ""
    )


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_a_declared_tuple_type_drops_the_fields_beyond_its_length(form: str) -> None:
    def draw(env: Any) -> None:
        kind = Types.TUPLE([Types.LONG(), Types.LONG()])
        pairs = env.from_sequence(0, 3).map(lambda x: (x, x + 1))
        made = pairs.map(lambda value: (value[0], value[1], "more"), kind)
        seen(made.key_by(lambda row: row[0] % 2).map(lambda row: row), "rows")

    assert sorted(run_form(draw, form).records("rows")) == [(x, x + 1) for x in range(4)]


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_the_first_field_that_does_not_fit_its_type_fails(wrong: int, form: str) -> None:
    def draw(env: Any) -> None:
        kind = Types.TUPLE([Types.FLOAT(), Types.INT(), Types.FLOAT()])
        fields = env.from_collection([[1.5, 2, 3.5]]).map(
            lambda row: [*row[:wrong], *["text"] * (3 - wrong)]
        )
        seen(fields.map(lambda row: (row[0], row[1], row[2]), kind).rebalance().map(str), "rows")

    declared = ["FLOAT", "INT", "FLOAT"][wrong]
    assert f"'text' is declared as {declared}" in str(failure_of(draw, form))


@pytest.mark.parametrize("names", [("key", "n"), ("n", "key")])
@pytest.mark.parametrize("made", [lambda x: Row(key=x % 3, n=x), lambda x: {"key": x % 3, "n": x}])
def test_rows_with_declared_names_are_sent_by_field(made: Any, names: Any) -> None:
    def draw(env: Any) -> None:
        kind = Types.ROW_NAMED([*names], [Types.LONG(), Types.LONG()])
        rows = env.from_sequence(0, 9).map(made, kind)
        seen(rows.key_by(lambda row: row.key).map(lambda row: row), "rows")

    source = str(job_of(draw).vertices[0].source)
    assert ", by fields" in source
    assert "row_of" not in source


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_a_reduce_that_fails_shows_the_record_and_the_key(form: str) -> None:
    def draw(env: Any) -> None:
        rows = env.from_sequence(0, 20).map(lambda x: Row(x % 5, x, 8 - x))
        sums = rows.key_by(lambda row: row[0]).reduce(
            lambda a, b: Row(a[0], a[1] // b[2], b[2])  # fails at 8
        )
        seen(sums, "sums")

    error = failure_of(draw, form, batch_size=7)
    assert type(error) is ZeroDivisionError
    assert "at record <Row(3, 8, 0)>, key 3" in notes_of(error)


@pytest.mark.parametrize(
    "listed",
    [
        lambda text: [(word, 1) for word in text.split()],
        lambda text: ((word, 1) for word in text.split()),
        lambda text: [Row(word=word, n=1) for word in text.split()],
        lambda text: [{"word": word, "n": 1} for word in text.split()],
    ],
)
def test_records_in_a_comprehension_are_not_built(listed: Any) -> None:
    def draw(env: Any) -> None:
        texts = env.from_sequence(0, 9).map(lambda x: f"{x} {x + 1}")
        words = texts.flat_map(listed)
        seen(words.rebalance().map(str), "words")

    job = job_of(draw)
    assert "column_0_0.extend(" in str(job.vertices[0].source)
    assert run_form(draw).records("words") == run_form(draw, "interpreted").records("words")


def test_a_comprehension_may_ignore_its_variable() -> None:
    def draw(env: Any) -> None:
        words = env.from_sequence(0, 9).map(lambda x: {"n": x, "tags": "ab"[: x % 3]})
        pairs = words.flat_map(lambda d: [(tag, d["n"]) for tag in d["tags"]])
        seen(pairs.flat_map(lambda pair: ()), "none")

    assert run_form(draw).counters() == run_form(draw, "interpreted").counters()


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_a_list_is_complete_before_its_records_are_processed(form: str) -> None:
    def draw(env: Any) -> None:
        pairs = env.from_sequence(3, 3).flat_map(lambda x: [(x, 1 // n) for n in (1, 0)])
        seen(pairs.map(lambda pair: [].index(pair[0])), "rows")

    assert type(failure_of(draw, form)) is ZeroDivisionError


def test_constants_of_a_class_and_static_methods_are_inlined() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(0, 9).map(Constants(None)), "rows")

    source = str(job_of(draw).vertices[0].source)
    assert "f'n{value % 4}'" in source
    assert "(value * 2 + 3) * 5 + self_1.OFFSET" in source.replace("number_1", "(value * 2 + 3)")


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_an_unread_field_whose_expression_fails_still_fails(form: str) -> None:
    def draw(env: Any) -> None:
        rows = env.from_sequence(0, 9).flat_map(lambda x: (Row(x, 1 // (5 - x)), Row(x, 0)))
        seen(rows.map(lambda row: row[0]), "rows")

    assert type(failure_of(draw, form)) is ZeroDivisionError


def added_json(first: tuple[int, str], second: tuple[int, str]) -> tuple[int, str]:
    total = json.loads(first[1])["n"] + json.loads(second[1])["n"]
    return first[0], json.dumps({"n": total})


def added_texts(first: tuple[int, str], second: tuple[int, str]) -> tuple[int, str]:
    try:
        result = (first[0], str(int(first[1]) + int(second[1])))
    except ValueError:
        result = None
    if result is None:
        return first
    return result


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_the_rules_apply_to_functions_that_combine_at_an_output(mode: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_collection([*range(20)])
        objects = numbers.map(lambda x: (x % 3, json.dumps({"n": x}))).key_by(lambda row: row[0])
        seen(objects.reduce(added_json), "objects")
        texts = numbers.map(lambda x: (x % 3, str(x) if x else "?")).key_by(lambda row: row[0])
        seen(texts.reduce(added_texts), "texts")

    ran, interpreted = (run_form(draw, form, mode=mode) for form in ("inlined", "interpreted"))
    for name in ("objects", "texts"):
        assert ran.subtasks(name) == interpreted.subtasks(name)


def test_parts_of_a_batch_are_counted_once() -> None:
    def draw(env: Any) -> None:
        texts = env.from_sequence(0, 999).map(str).filter(lambda text: text[-1] != "3")
        seen(texts.key_by(lambda text: text[0]).map(lambda text: text), "texts")

    interpreted = run_form(draw, "interpreted").counters()
    assert run_form(draw).counters() == interpreted


@pytest.mark.slow
@pytest.mark.parametrize("draw", PROGRAMS)
def test_leaving_out_any_rule_changes_no_result(draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that changes nothing is not left out: the code would be the same."""
    effective: set[int] = set()
    with monkeypatch.context() as patch:
        patch.setattr(vertex, "RULES", noting_effects(RULES, effective))
        with_all = run_form(draw, parallelism=2, batch_size=7)
    sources = {text_of(with_all.job)}
    for name in sorted({RULES[position].name for position in effective}):
        ran = run_form(draw, without=name, parallelism=2, batch_size=7)
        give_the_same(ran, with_all, name)
        sources.add(text_of(ran.job))
    assert len(sources) > 1
    only_one = job_of(draw, without="inline_functions")
    assert "inlined: " not in str([vertex.remarks for vertex in only_one.vertices])


def returns_early(value: int) -> int:
    for number in range(9):
        for other in range(9):
            if number * other == value:
                return number
    return -1


def doubled(value: int, factors: Any = (2,)) -> int:
    return value * int(factors[0])


def tries(value: int) -> int:
    try:
        if not value:
            return 0
        number = 1 // value
    except ZeroDivisionError:
        return 0
    return number


def goes_on(value: int) -> int:
    try:
        return 1 // value
    except ZeroDivisionError:
        value += 1
    return 1 // value


def locked(value: int) -> int:
    with suppress(ZeroDivisionError):
        return 1 // value
    return value


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (returns_early, "returns from within a loop (line {}); break, and return after the loop"),
        (doubled, "has a default that is not a constant; pass the argument"),
        (
            tries,
            "returns from the middle of a try (line {}); set a variable, and return after the try",
        ),
        (
            goes_on,
            "returns in a try, but not in its except (line {}); return from each except",
        ),
        (locked, "has a statement 'with' (line {}); move it to another function"),
    ],
)
def test_a_remark_says_why_a_function_is_not_inlined_and_what_to_change(
    function: Any, reason: str
) -> None:
    job = job_of(lambda env: env.from_sequence(0, 9).map(function).print())
    remarks = " | ".join(text for _, texts in job.vertices[0].remarks for text in texts)
    assert remarks.count(f"not inlined: '{function.__name__}' ") == 1
    before, _, behind = reason.partition("{}")
    assert before in remarks
    assert behind in remarks


def test_an_unknown_rule_in_the_settings_is_named() -> None:
    with pytest.raises(
        GraphError, match=r"no rule is called 'fly'; the rules are inline_functions, "
    ):
        job_of(states, without="unpack_records, fly")


def leveled(price: int) -> Any:
    step, mark = int(price >= STEP), int(price > 2 * STEP)
    levels = (step, mark)
    return (price, *levels)


def test_a_local_and_a_global_that_differ_only_in_case_are_not_mixed_up() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(0, 9).map(leveled), "levels")

    assert run_form(draw).records("levels") == [leveled(price) for price in range(10)]


def test_names_in_local_annotations_are_not_looked_up() -> None:
    class Annotated(MapFunction[Any, Any]):  # pickled by value, without the names
        def map(self, value: Any) -> Any:
            error: GraphError
            window: TumblingEventTimeWindows = value + 1
            error = value
            return window, error

    class Decided(MapFunction[Any, Any]):
        def map(self, value: Any) -> Any:
            if False:
                raise GraphError(value)
            return value + 1

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 3).map(Annotated()), "rows")
        seen(env.from_sequence(1, 3).map(Decided()), "numbers")

    ran = run_form(draw)
    assert ran.records("rows") == [(2, 1), (3, 2), (4, 3)]
    assert ran.records("numbers") == [2, 3, 4]
    remarks = str([vertex.remarks for vertex in ran.job.vertices])
    assert "inlined: 'map'" in remarks
    assert "has a part that never runs" in remarks


class Inverse(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        try:
            yield 1 // (value - 3)
        except ValueError:
            yield ODD, value


class Caught(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        try:
            value = 1 // (value - 3)
        except ZeroDivisionError:
            yield -1
        else:
            yield value


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_an_uncaught_error_in_a_try_names_the_operator_and_the_record(
    form: str,
) -> None:
    error = failure_of(lambda env: env.from_sequence(0, 9).process(Inverse()).print(), form)
    assert type(error) is ZeroDivisionError
    assert "in 'Process' (test_rules.py:" in notes_of(error)
    assert "at record 3" in notes_of(error)


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_an_error_after_an_except_has_no_context(form: str) -> None:
    def draw(env: Any) -> None:
        caught = env.from_sequence(0, 9).process(Caught())
        seen(caught.map(lambda x: {0: 0, -1: [][x]}[x]), "rows")

    error = failure_of(draw, form)
    assert type(error) is IndexError
    assert error.__context__ is None


def test_functions_that_catch_errors_are_inlined() -> None:
    remarks = [
        text for vertex in job_of(caught).vertices for _, texts in vertex.remarks for text in texts
    ]
    refused = [text for text in remarks if text.startswith("not inlined: '")]
    assert refused == ["not inlined: 'int' has no Python source: it is a class"]


def source_of(draw: Any) -> str:
    return text_of(job_of(draw))


def text_of(job: JobProgram) -> str:
    return "\n".join(vertex.source or "" for vertex in job.vertices)


def test_function_classes_and_the_functions_that_they_call_are_inlined() -> None:
    first, *_ = job_of(classes).vertices
    assert first.source is not None
    fast = first.source.split("def fallback_0")[0]
    assert "if not unchanged_0():" in fast
    assert "scaled_1(" not in fast
    assert "value_1 = (more_1, more_1 * 7)" in fast
    assert "stepped" not in fast
    assert "scaled_1(value)" in first.source


class Given(MapFunction[Any, Any]):
    """Has attributes that a program is given, and one that it sets later."""

    def __init__(self, number: int, key: str, secret: str) -> None:
        self.number, self.key, self.secret, self.later = number, key, secret, 1

    def open(self, runtime_context: Any) -> None:
        self.later = 2

    def map(self, value: Any) -> Any:
        if self.secret is None:
            return None
        return {"k": value}[self.key] * self.number, self.secret[:1], self.later


def test_attributes_that_only_the_constructor_sets_are_inlined() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 3).map(Given(7, "k", "password")), "rows")
        pairs = env.from_sequence(1, 3).map(lambda x: (x, x))
        seen(pairs.key_by(Field(1)).map(lambda pair: pair), "pairs")

    text = source_of(draw)
    assert "({'k': value}['k'] * 7, attribute_1_secret[:1], attribute_1_later)" in text
    assert "password" not in text
    assert "column_0_1.append(value)" in text
    assert run_form(draw).records("rows") == [(7, "p", 2), (14, "p", 2), (21, "p", 2)]


def test_a_changed_global_takes_effect_at_the_next_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The function of a batch looks at it once, when the batch begins."""
    here = sys.modules[__name__]

    class Changing(MapFunction[int, int]):
        def map(self, value: int, *_more: int) -> int:  # more arguments keep it from being inlined
            if value == 8:
                monkeypatch.setattr(here, "STEP", 100)
            return value

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 12).map(Changing()).map(stepped), "stepped")

    found = run_form(draw, batch_size=4).records("stepped")
    assert found == [4, 5, 6, 7, 8, 9, 10, 11, 109, 110, 111, 112]


MARK = 10**6


def marked(value: int) -> tuple[bool, int]:
    return value is MARK, value % MARK


def test_global_numbers_are_inlined_unless_their_identity_is_compared() -> None:
    def draw(env: Any) -> None:
        stepped_twice = env.from_sequence(1, 3).map(lambda x: x * STEP).map(lambda x: x - STEP)
        seen(stepped_twice, "stepped")
        seen(env.from_collection([MARK, 7], Types.LONG()).map(marked), "marked")

    text = source_of(draw)
    assert f"value * {STEP}" in text
    assert f"- {STEP}" in text
    assert f"% {MARK}" not in text
    ran = run_form(draw)
    assert ran.records("stepped") == [x * STEP - STEP for x in (1, 2, 3)]
    assert [row[1] for row in ran.records("marked")] == [0, 7]


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_a_missing_json_field_fails_as_after_json_loads(form: str) -> None:
    def draw(env: Any) -> None:
        lines = env.from_sequence(1, 9).map(lambda x: '{"user": 1}' if x < 5 else "{}")
        seen(lines.map(lambda line: json.loads(line)["user"]), "users")

    error = failure_of(draw, form)
    assert type(error) is KeyError
    assert "at record '{}'" in notes_of(error)


def test_json_dumps_of_known_fields_fills_a_template() -> None:
    text = source_of(written_json)
    assert "json_object_2(value, item_1_for_2_1, item_1_2, item_1_for_2_3)" in text
    assert "(json_object_6(value), json_object_6_too(item_1_for_6_1))" in text
    assert "value_9 = fast_dumps(value_1_for_9)" in text
    assert "sort_keys=True)" in text


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
def test_an_unsupported_json_value_fails_as_in_json_dumps(form: str) -> None:
    def draw(env: Any) -> None:
        values = env.from_sequence(1, 9).map(lambda x: x if x < 5 else {x})
        seen(values.map(lambda value: json.dumps({"value": value})), "texts")

    error = failure_of(draw, form)
    assert type(error) is TypeError
    assert str(error) == "Object of type set is not JSON serializable"
    assert "at record {5}" in notes_of(error)


class Noted(MapFunction[Any, Any]):
    """Writes its attributes to a file at the end."""

    factor = 10  # an attribute of the class until it is set

    def __init__(self, path: str, *, of_class: bool) -> None:
        self.path, self.count, self.names = path, 0, ""
        if not of_class:
            self.factor = 10

    def map(self, value: Any) -> Any:
        self.count += 1
        self.names = f"{self.names}{value}"
        return self.factor // (5 - value)

    def close(self) -> None:
        with open(self.path, "w") as file:  # noqa: PTH123 - as users write it
            file.write(f"{self.count} {self.names}")


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
@pytest.mark.parametrize("of_class", [True, False])
def test_attributes_have_their_current_values_when_a_loop_fails(
    form: str, of_class: bool, tmp_path: Path
) -> None:
    path = tmp_path / "noted"

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 9).map(Noted(str(path), of_class=of_class)), "results")

    error = failure_of(draw, form)
    assert type(error) is ZeroDivisionError
    assert "at record 5" in notes_of(error)
    assert path.read_text() == "5 12345"
    assert "finally:" in source_of(draw)


class CountingFirings(KeyedCoProcessFunction[Any, Any, Any, Any]):
    """The second input registers timers, the first one adds up what they count."""

    def __init__(self) -> None:
        self.fired = self.sum = 0

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        self.last.update(value)
        self.sum += self.fired
        yield from ()

    def process_element2(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self.fired += 1
        yield timestamp, self.sum


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_an_attribute_that_timers_set_is_read_after_they_fire(mode: str) -> None:
    def draw(env: Any) -> None:
        strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda number, _: number
        )
        numbers = env.from_sequence(0, 20).assign_timestamps_and_watermarks(strategy)
        keyed = numbers.key_by(lambda number: number % 4)
        seen(keyed.connect(keyed).process(CountingFirings()), "fired")

    ran = run_form(draw, mode=mode, batch_size=4)
    assert ran.records("fired") == run_form(draw, "interpreted", mode=mode, batch_size=4).records(
        "fired"
    )
    assert mode == "STREAMING" or ran.records("fired")[-1][1] > 0


class Seeing(MapFunction[Any, Any]):
    """Something reads its attribute while its method runs."""

    def __init__(self) -> None:
        self.count = 0

    def open(self, runtime_context: Any) -> None:
        self.more = self.added
        self.counts = self.counted()

    def added(self, _: Any = None) -> int:
        return self.count

    def counted(self) -> Any:
        while True:
            yield self.count


class Calling(Seeing):
    def map(self, value: Any) -> Any:
        self.count += value
        return self.more()


class Sorting(Seeing):
    def map(self, value: Any) -> Any:
        self.count += value
        return max([-value, value], key=self.more), min(zip(self.counts, range(2), strict=False))


class Looping(Seeing):
    def map(self, value: Any) -> Any:
        self.count += value
        found = None
        for count in self.counts:
            found = count
            break
        return found


@pytest.mark.parametrize("function", [Calling, Sorting, Looping])
def test_attributes_that_other_code_reads_are_written_at_once(function: Any) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 5).map(function()), "sums")

    assert run_form(draw).records("sums") == run_form(draw, "interpreted").records("sums")
    if function is Looping:
        # The loop could be over a list, so each batch first checks the class of the attribute.
        assert "has_plain(self_1, (), ('count', 'counts'), ('counts',))" in source_of(draw)
    else:
        assert "finally:" not in source_of(draw)


class WithOwner(list[int]):
    """A list that reads an attribute of the function that has it."""

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner = owner

    def append(self, item: int) -> None:
        super().append(item + self.owner.count)


class Gathering(FlatMapFunction[Any, Any]):
    """Keeps values in attributes, and sets one of them repeatedly."""

    def __init__(self, kind: Any) -> None:
        self.count = 0
        self.waiting: Any = kind(self) if kind is WithOwner else kind()
        self.seen: set[int] = set()
        self.counts: dict[int, int] = {}

    def flat_map(self, value: Any) -> Any:
        self.count += 1
        self.waiting.append(value)
        self.counts[value % 3] = self.counts.get(value % 3, 0) + 1
        if value % 4 in self.seen:
            yield len(self.waiting), value
        self.seen.add(value % 4)
        if len(self.waiting) == 5:
            for number in self.waiting:
                yield number, sum(self.waiting), len(self.counts), 60 // (value - 20)
            self.waiting = []


@pytest.mark.parametrize("batch_size", [1, 7, 100])
@pytest.mark.parametrize("count", [14, 30])
@pytest.mark.parametrize("kind", [list, deque, WithOwner])
def test_lists_and_dicts_in_attributes_are_the_same_in_each_form(
    kind: Any, count: int, batch_size: int
) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_collection(list(range(1, count)))
        seen(numbers.flat_map(Gathering(kind)), "gathered")

    assert "attribute_1_waiting.append(value)" in source_of(draw)
    if count == 14:
        fast, plain = (
            run_form(draw, form, batch_size=batch_size) for form in ("inlined", "interpreted")
        )
        assert fast.subtasks("gathered") == plain.subtasks("gathered")
        assert fast.counters() == plain.counters()
    else:
        errors = [failure_of(draw, form) for form in ("inlined", "interpreted")]
        assert notes_of(errors[0]) == notes_of(errors[1])


def test_a_product_that_may_overflow_is_not_computed_with_arrays() -> None:
    def draw(env: Any, factor: int) -> None:
        seen(env.from_sequence(1, 2**40).map(lambda x: x * factor), "products")

    assert "numbers_of(values)" in source_of(lambda env: draw(env, 1000))
    assert "numbers_of(values)" not in source_of(lambda env: draw(env, 2**23))


def sevens(_: int) -> Any:
    yield 7


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_constant_result_is_not_computed_with_arrays(mode: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(1, 30)
        seen(numbers.flat_map(sevens), "sevens")
        ones = numbers.filter(lambda x: x % 3 > 0).flat_map(sevens).map(lambda x: (x, 1))
        seen(ones.key_by(lambda pair: pair[0]).sum(1), "sums")

    fast, plain = (
        run_form(draw, form, mode=mode, batch_size=7) for form in ("inlined", "interpreted")
    )
    assert fast.records("sevens") == [7] * 30
    assert fast.subtasks("sums") == plain.subtasks("sums")
    assert fast.counters() == plain.counters()


class Total(FlatMapFunction[int, int]):
    def __init__(self, start: Any) -> None:
        self.total = start

    def flat_map(self, value: int) -> Any:
        self.total += value
        return ()

    def close(self) -> None:
        TOTALS.append(self.total)


TOTALS: list[Any] = []


@pytest.mark.parametrize("start", [0, 0.5, True])
def test_an_attribute_is_updated_once_per_batch_with_a_sum(start: Any) -> None:
    TOTALS.clear()
    for form in ("interpreted", "inlined"):
        run_form(lambda env: env.from_sequence(1, 9).flat_map(Total(start)).print(), form)
    assert [45 + start] * 2 == TOTALS
    assert type(TOTALS[0]) is type(TOTALS[1])


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (str, "'str' has no Python source: it is a class"),
        (len, "'len' has no Python source: it is written in C"),
    ],
)
def test_a_builtin_that_is_not_inlined_is_named(function: Any, said: str) -> None:
    with pytest.raises(Refused, match=said):
        definition_of(function)
