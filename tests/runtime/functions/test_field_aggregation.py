from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.key_selectors import FieldAggregation
from opchain.runtime.types.row import Row


class Count(NamedTuple):
    word: str
    count: int


@dataclass(frozen=True, slots=True)
class FrozenCount:
    word: str
    count: int


class CountModel(pydantic.BaseModel, frozen=True):
    word: str
    count: int


class CountObject:
    def __init__(self, word: str, count: int) -> None:
        self.word = word
        self.count = count

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


A, B = ("a", 5), ("b", 3)
EXPECTED: dict[str, tuple[str, int]] = {
    "sum": ("a", 8),
    "min": ("a", 3),
    "max": ("a", 5),
    "min_by": ("b", 3),
    "max_by": ("a", 5),
}


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("of", [tuple, list, lambda record: Row(*record)])
def test_one_field_is_aggregated(kind: str, of: Any) -> None:
    first, second = of(A), of(B)
    function: FieldAggregation = pickle.loads(pickle.dumps(FieldAggregation(kind, 1)))
    assert function.reduce(first, second) == of(EXPECTED[kind])
    assert (first, second) == (of(A), of(B))


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize(
    "of",
    [
        Count,
        lambda w, n: Row(word=w, count=n),
        lambda w, n: {"word": w, "count": n},
        FrozenCount,
        lambda w, n: CountModel(word=w, count=n),
        CountObject,
    ],
    ids=["namedtuple", "Row", "dict", "dataclass", "pydantic", "object"],
)
def test_a_field_may_be_given_by_name(kind: str, of: Any) -> None:
    first, second = of(*A), of(*B)
    result = FieldAggregation(kind, "count").reduce(first, second)
    assert result == of(*EXPECTED[kind])
    assert (first, second) == (of(*A), of(*B))
    assert type(result) is type(of(*A))


@pytest.mark.parametrize(
    ("kind", "expected"), [("sum", 8), ("min", 3), ("max", 5), ("min_by", 3), ("max_by", 5)]
)
def test_a_plain_value_is_its_own_field_0(kind: str, expected: int) -> None:
    assert FieldAggregation(kind, 0).reduce(5, 3) == expected


@pytest.mark.parametrize("kind", ["min_by", "max_by"])
def test_min_by_and_max_by_keep_the_first_of_equal_records(kind: str) -> None:
    assert FieldAggregation(kind, 1).reduce(("a", 1), ("b", 1)) == ("a", 1)


@given(st.lists(st.tuples(st.integers(), st.integers()), min_size=1))
def test_repeated_aggregation_equals_that_of_the_whole_list(records: list[tuple[int, int]]) -> None:
    def folded(kind: str) -> Any:
        return reduce(FieldAggregation(kind, 1).reduce, records)

    values = [value for _, value in records]
    assert folded("sum") == (records[0][0], sum(values))
    assert folded("min") == (records[0][0], min(values))
    assert folded("max") == (records[0][0], max(values))
    assert folded("min_by") == min(records, key=lambda record: record[1])
    assert folded("max_by") == max(records, key=lambda record: record[1])


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_plain_value_has_no_named_field(kind: str) -> None:
    with pytest.raises(TypeError, match=rf"{kind}\('size'\) got 5 of type int, which has no such"):
        FieldAggregation(kind, "size").reduce(5, 3)


@pytest.mark.parametrize("kind", ["sum", "min_by"])
def test_a_plain_tuple_has_no_field_names(kind: str) -> None:
    with pytest.raises(TypeError, match="has no field named 'size'; use its index"):
        FieldAggregation(kind, "size").reduce(A, B)
