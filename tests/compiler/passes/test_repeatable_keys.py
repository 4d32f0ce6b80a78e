"""Key selectors that may be called repeatedly for a record. All others are called once."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
import random
import re
import uuid
from collections import Counter, namedtuple
from dataclasses import dataclass, field
from operator import iadd, itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from epoch_runs import EpochRun, given
from forms import FORMS, run_form, seen

from opchain.common import Row, Time, TimestampAssigner, Types, WatermarkStrategy
from opchain.compiler.passes.repeatable_keys import is_repeatable
from opchain.datastream.functions import (
    CoGroupFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessJoinFunction,
)
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from pathlib import Path

SHARDS = 4


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    user: str

    def owner(self) -> str:
        return self.user.lower()

    def visit(self) -> str:
        self.user += "!"
        return self.user


def shard_of(user: str) -> int:
    total = 0
    for letter in user:
        total += ord(letter) * 31
    return total % SHARDS


def salted(user: str) -> str:
    return f"{shard_of(user)}-{random.randint(0, 3)}"


class OfField(KeySelector[Any, Any]):
    def __init__(self, field: str) -> None:
        self.field = field

    def get_key(self, value: Any) -> Any:
        return self.read(value)

    def read(self, value: Any) -> Any:
        return value[self.field]


class InTurns(KeySelector[Any, int]):
    """Gives 0, 1, 2, 0, 1, 2, ... whatever the record is."""

    def __init__(self) -> None:
        self.calls = -1

    def get_key(self, value: Any) -> int:
        self.calls += 1
        return self.calls % 3


@pytest.mark.parametrize(
    "selector",
    [
        itemgetter(0),
        str.upper,
        OfField("user"),
        shard_of,
        lambda row: (row["a"], row.b, f"{row}"[:2].lower()),
        lambda row: Point(1, 2) if row else Row(1, 2),
        lambda row: int(hashlib.md5(row.encode()).hexdigest(), 16) % 4,  # noqa: S324
        lambda row: re.match("a(.)", row).group(1),  # type: ignore[union-attr]
        lambda row: json.loads(row)["k"],
        lambda row: dt.datetime.fromisoformat(row).hour,
        lambda row: tuple(sorted(field for field in row if field)),
        lambda order: order.owner(),
    ],
)
def test_selectors_that_only_read_the_record_are_repeatable(selector: Any) -> None:
    assert is_repeatable(selector)


@pytest.mark.parametrize(
    "selector",
    [
        salted,
        InTurns(),
        lambda row: random.choice([1, 2]),
        lambda row: dt.datetime.now().minute,  # noqa: DTZ005
        lambda row: str(uuid.uuid4()),
        lambda row: hash(row) % 3,  # texts have another hash in another process
        lambda row: row.pop("key"),
        lambda row: row.setdefault("key", 1),
        lambda rows: next(rows)[0],
        lambda row: sum(row.values) + row.unknown(),
        lambda order: order.visit(),
    ],
)
def test_selectors_with_possible_side_effects_are_not_repeatable(selector: Any) -> None:
    assert not is_repeatable(selector)


class Times(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


class CountPerKey(KeyedProcessFunction[int, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), value, count


class RichMap(MapFunction[Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))

    def map(self, value: Any) -> Any:
        last = self.last.value()
        self.last.update(value)
        return last, value


class Pairs(ProcessJoinFunction[Any, Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


class Sizes(CoGroupFunction[Any, Any, Any]):
    def co_group(self, first: Any, second: Any) -> Any:
        yield sorted(first), sorted(second)


def numbers(env: Any, count: int = 24) -> Any:
    """One subtask, so that the selector gives the keys in turns."""
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())
    return env.from_collection(list(range(count))).assign_timestamps_and_watermarks(timed)


WINDOW = TumblingEventTimeWindows.of(Time.milliseconds(12))


def joined(env: Any, pairs: Any) -> Any:
    between = pairs.between(Time.milliseconds(-3), Time.milliseconds(3))
    return between.process(Pairs())


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    "keyed",
    [
        lambda env, of: numbers(env).key_by(of).reduce(lambda a, b: a + b),
        lambda env, of: numbers(env).map(lambda x: (x, 1)).set_parallelism(1).key_by(of).sum(1),
        lambda env, of: numbers(env).key_by(of).process(CountPerKey()),
        lambda env, of: numbers(env).key_by(of).map(RichMap()),
        lambda env, of: numbers(env).key_by(of).map(lambda x: x + 1),
        lambda env, of: numbers(env).key_by(of).count_window(3).reduce(lambda a, b: a + b),
        lambda env, of: numbers(env).key_by(of).count_window(3, 1).reduce(lambda a, b: a + b),
        lambda env, of: numbers(env).key_by(of).window(WINDOW).reduce(lambda a, b: a + b),
        lambda env, of: joined(env, numbers(env).key_by(of).interval_join(numbers(env).key_by(of))),
        lambda env, of: (
            numbers(env).join(numbers(env)).where(of).equal_to(of).window(WINDOW).apply(Point)
        ),
        lambda env, of: (
            numbers(env).co_group(numbers(env)).where(of).equal_to(of).window(WINDOW).apply(Sizes())
        ),
    ],
    ids=[
        *("reduce", "sum", "process", "rich map", "map", "count window", "sliding count window"),
        *("window", "interval join", "join", "co-group"),
    ],
)
def test_a_selector_that_is_not_repeatable_is_called_once_per_record(keyed: Any, mode: str) -> None:
    """The keys are as if they were fields of the records."""

    def of_number(value: Any) -> int:
        return (value[0] if isinstance(value, tuple) else value) % 3

    expected = run_form(lambda env: seen(keyed(env, of_number), "keyed"), mode=mode, parallelism=2)
    for form in FORMS:
        ran = run_form(
            lambda env: seen(keyed(env, InTurns()), "keyed"), form, mode=mode, parallelism=2
        )
        found, wanted = Counter(map(repr, ran.records("keyed"))), expected.records("keyed")
        assert found == Counter(map(repr, wanted)), form


@pytest.mark.parametrize("form", FORMS)
def test_random_keys_keep_the_records_of_a_key_together(form: str) -> None:
    """Each key has its state in one subtask, so no count of a key comes twice."""

    def draw(env: Any) -> None:
        salts = env.from_collection(list(range(200))).key_by(lambda _: random.randint(0, 3))
        seen(salts.process(CountPerKey()), "counts")

    counts = [
        (key, count) for key, _, count in run_form(draw, form, parallelism=2).records("counts")
    ]
    assert len(counts) == len(set(counts)) == 200
    assert {key for key, _ in counts} <= set(range(4))


@pytest.mark.parametrize("form", FORMS)
def test_state_of_random_keys_is_found_after_a_restart(form: str, tmp_path: Path) -> None:
    def draw(env: Any) -> None:
        salted = given(env, "numbers").key_by(lambda _: random.randint(0, 3))
        seen(salted.process(CountPerKey()).uid("counts"), "counts")

    run, found = EpochRun(draw, tmp_path, parallelism=2, form=form), []
    for parallelism in (2, 3, 1):
        run = run.restarted(parallelism)
        for _ in range(2):
            found += run.run(numbers=range(40)).records("counts")
    run.close()
    counts = [(key, count) for key, _, count in found]
    assert len(counts) == len(set(counts)) == 240


def test_a_selector_that_changes_records_is_called_once_per_record() -> None:
    def mark(record: dict[str, Any]) -> int:
        record["marks"] = record.get("marks", 0) + 1
        return record["number"] % 3  # type: ignore[no-any-return]

    def draw(env: Any) -> None:
        records = env.from_collection([{"number": number} for number in range(9)])
        seen(records.key_by(mark).reduce(lambda a, b: b), "last")

    for form, mode in itertools.product(FORMS, ("STREAMING", "BATCH")):
        marks = {record["marks"] for record in run_form(draw, form, mode=mode).records("last")}
        assert marks == {1}


tickets = itertools.count()
pop = methodcaller("pop")


class Numbered(namedtuple("Numbered", "x")):  # noqa: PYI024, SLOT002 - a NamedTuple has no `__new__` of its own
    def __new__(cls, x: int) -> Any:
        return super().__new__(cls, x + next(tickets))


@dataclass
class Ticket:
    x: int
    number: int = field(default_factory=tickets.__next__)


@dataclass
class Entered:
    x: int

    def __init__(self, x: int) -> None:
        self.x = x + next(tickets)


class Visitor:
    @property
    def visit(self) -> int:
        return next(tickets)


def with_one(row: list[int]) -> int:
    return len(iadd(row, [1]))


@pytest.mark.parametrize(
    "selector",
    [
        pop,
        lambda row: pop(row) + 1,
        with_one,
        lambda x: Numbered(x).x,
        lambda x: Ticket(x).number,
        lambda x: Entered(x).x,
        lambda row: row.visit,
    ],
)
def test_selectors_that_count_or_change_something_are_not_repeatable(selector: Any) -> None:
    assert not is_repeatable(selector)


def test_a_method_that_only_reads_is_repeatable() -> None:
    assert is_repeatable(methodcaller("lower"))


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("form", FORMS)
def test_a_selector_that_removes_the_key_is_called_once_per_record(form: str, mode: str) -> None:
    def draw(env: Any) -> Any:
        rows = env.from_sequence(1, 2).map(lambda x: [x, x + 10, x + 20])
        return seen(rows.key_by(methodcaller("pop")).process(WithKey()), "out")

    found = run_form(draw, form, mode=mode).records("out")
    assert sorted(found) == [(21, [1, 11]), (22, [2, 12])]


class WithKey(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.get_current_key(), value
