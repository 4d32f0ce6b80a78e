"""Which reduce functions are associative, as their source shows."""

from __future__ import annotations

import logging
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Row
from opchain.compiler.codegen.associative import is_associative
from opchain.datastream.functions import ReduceFunction
from opchain.runtime.functions.key_selectors import FieldAggregation

LOG = logging.getLogger(__name__)


class Count(NamedTuple):
    word: str
    n: int


@dataclass
class Price:
    item: str
    low: float


class Sum(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Adds."""
        total = value1[1] + value2[1]
        return value1[0], total


class Cheapest(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        if value2.low < value1.low:
            return value2
        return value1


def in_place(a: Any, b: Any) -> Any:
    a["n"] += b["n"]
    a["last"] = b["last"]
    return a


def appends(a: Any, b: Any) -> Any:
    a += b
    return a


def longest(a: Any, b: Any) -> Any:
    return a if len(a) > len(b) else b


def counts_in_place(a: Any, b: Any) -> Any:
    a["n"] += 1
    return a


def changes_twice(a: Any, b: Any) -> Any:
    a["n"] += b["n"]
    a["n"] = b["n"]
    return a


def keeps_the_last_high(a: Any, b: Any) -> Any:
    a["name"] = a["name"] if a["n"] > b["n"] else b["name"]
    return a


def prints(a: Any, b: Any) -> Any:
    LOG.info(a)
    return a + b


ASSOCIATIVE = [
    max,
    min,
    operator.add,
    FieldAggregation("max_by", 1),
    Sum(),
    Sum().reduce,
    Cheapest(),
    in_place,
    appends,
    lambda a, b: a + b,
    lambda a, b: b + a,
    lambda a, b: a,
    lambda a, b: b,
    lambda a, b: a or b,
    lambda a, b: max(a, b, key=lambda x: x[1]),
    lambda a, b: a if a[1] >= b[1] else b,
    lambda a, b: a if (a[1], a[0]) > (b[1], b[0]) else b,
    lambda a, b: (a[0], a[1] + b[1]),
    lambda a, b: [a[0], min(a[1], b[1]), max(b[2], a[2]), b[3], "constant"],
    lambda a, b: (a[0], a[1] if a[1] > b[1] else b[1]),  # noqa: FURB136 - another spelling
    lambda a, b: (a[0], a[1] if a[1].price < b[1].price else b[1]),
    lambda a, b: {"k": a["k"], "n": a["n"] + b["n"], "all": a.get("all") | b.get("all")},
    lambda a, b: Row(a[0], a[1] * b[1]),
    lambda a, b: Row(word=a.word, n=a["n"] + b.n),
    lambda a, b: Count(a.word, a[1] + b.n),
    lambda a, b: Price(item=a.item, low=min(a.low, b.low)),
]

OTHERS = [
    longest,
    counts_in_place,
    changes_twice,
    prints,
    operator.sub,
    lambda a, b: (a[0], a[1] + 1),
    lambda a, b: a - b,
    lambda a, b: (b[1], a[1] + b[1]),
    lambda a, b: (a[0], a[2], b[1]),
    lambda a, b: (a[0], (a[1] + b[1]) / 2),
    lambda a, b: (a, b),
    lambda a, b: a if a[1] > b[0] else b,
    lambda a, b: a if a[1] > 3 else b,
    lambda a, b: (a[0], a[1] if a[2] > b[2] else b[1], a[2]),
    lambda a, b: (a[0], a[1] if a > b else b[1], b[2]),
    lambda a, b: Row(word=a.word if a.n >= b.n else b.word, n=min(a.n, b.n)),
    keeps_the_last_high,
    lambda a, b: a if a[1] != b[1] else b,
    lambda a, b: max(a, b, 3),
    lambda a, b: max(a, b, default=3),
    lambda a, b: max(a, b, key=lambda x: x.pop()),
    lambda a, b: (a[0], max(a[1], b[1] + 1)),
    lambda a, b: {**a, "n": a["n"] + 1},
    lambda a, b: f"{a}{b}",
]


@pytest.mark.parametrize("function", ASSOCIATIVE)
def test_functions_that_treat_each_field_alone_are_associative(function: Any) -> None:
    assert is_associative(function)


@pytest.mark.parametrize("function", OTHERS)
def test_other_functions_are_not_treated_as_associative(function: Any) -> None:
    assert not is_associative(function)


def test_a_function_without_source_is_not_treated_as_associative() -> None:
    assert not is_associative(eval("lambda a, b: a + b"))  # noqa: S307 - text of its own


def test_a_function_of_the_program_that_hides_max_is_not_the_builtin() -> None:
    def max(a: int, b: int) -> int:  # noqa: A001 - it hides the builtin
        return a - b

    assert not is_associative(lambda a, b: max(a, b))  # noqa: PLW0108 - not the builtin


def chosen(env: Any) -> None:
    env.set_parallelism(3)
    words = env.from_collection(
        [("k", number, rank) for number, rank in enumerate((5, 1, 1, 1, 6, 1))]
    )
    keyed = words.rebalance().map(lambda word: word).key_by(lambda word: word[0])
    choose = lambda a, b: (a[0], a[1] if a[2] > b[2] else b[1], a[2])  # noqa: E731 - it is called, too
    seen(keyed.reduce(choose), "shown")
    seen(keyed.reduce(lambda a, b: choose(a, b)), "called")  # noqa: PLW0108 - not shown to be associative


@pytest.mark.parametrize("form", FORMS)
def test_a_reduce_that_chooses_a_field_by_another_one_gets_every_record(form: str) -> None:
    ran = run_form(chosen, form, mode="BATCH")
    assert ran.records("shown") == ran.records("called")


def counted(env: Any) -> None:
    env.set_parallelism(3)
    pairs = env.from_sequence(0, 11).rebalance().map(lambda number: (number % 2, 1))
    seen(pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + 1)), "counts")


@pytest.mark.parametrize("form", FORMS)
def test_a_reduce_that_counts_gets_every_record_in_batch_mode(form: str) -> None:
    ran = run_form(counted, form, mode="BATCH")
    assert sorted(ran.records("counts")) == [(0, 6), (1, 6)]
    if form == "inlined":
        assert "not combined before the exchange" in str(ran.job.vertices)
