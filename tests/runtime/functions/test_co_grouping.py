from __future__ import annotations

import pickle
from typing import Any, cast

import pytest

from opchain.runtime.functions.co_grouping import (
    FIRST,
    SECOND,
    CoGroupWindowFunction,
    InputTagger,
    JoinCoGroupFunction,
    UnionKeySelector,
)
from opchain.runtime.functions.key_selectors import KeySelector
from opchain.runtime.functions.record_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
)

NO_CONTEXT = cast("Any", None)


class LifeCycle:
    calls: list[str]

    def open(self, runtime_context: Any) -> None:
        self.calls = ["open"]

    def close(self) -> None:
        self.calls.append("close")


class Length(LifeCycle, KeySelector[str, int]):
    def get_key(self, value: str) -> int:
        return len(value)


class Sorted(LifeCycle, CoGroupFunction[int, str, str]):
    def co_group(self, first: Any, second: Any) -> Any:
        yield f"{sorted(first)} {sorted(second)}"


class Pair(LifeCycle, JoinFunction[int, str, str]):
    def join(self, first: int, second: str) -> str:
        return f"{first}{second}"


class Both(LifeCycle, FlatJoinFunction[int, str, str]):
    def join(self, first: int, second: str) -> Any:
        return None if first == 1 else (str(first), second)


def test_union_key_selector_uses_the_selector_of_each_input() -> None:
    selector: UnionKeySelector = pickle.loads(pickle.dumps(UnionKeySelector(abs, Length())))
    assert selector.get_key(InputTagger(FIRST).map(-3)) == 3
    assert selector.get_key(InputTagger(SECOND).map("ab")) == 2


def test_the_records_of_a_window_are_separated_by_input() -> None:
    function = CoGroupWindowFunction(Sorted())
    records = [(FIRST, 2), (SECOND, "b"), (FIRST, 1), (SECOND, "a")]
    assert list(function.apply(0, None, records)) == ["[1, 2] ['a', 'b']"]
    assert list(function.apply(0, None, [(SECOND, "a")])) == ["[] ['a']"]


def test_a_co_group_function_may_return_none() -> None:
    assert list(CoGroupWindowFunction(lambda first, second: None).apply(0, None, [])) == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Pair(), ["1a", "1b", "2a", "2b"]),
        (lambda first, second: f"{first}{second}", ["1a", "1b", "2a", "2b"]),
        (Both(), ["2", "a", "2", "b"]),
    ],
)
def test_a_join_function_is_called_with_every_pair(function: Any, expected: list[str]) -> None:
    join: JoinCoGroupFunction = JoinCoGroupFunction(function)
    assert list(join.co_group([1, 2], iter(["a", "b"]))) == expected
    assert list(join.co_group([1], [])) == []


@pytest.mark.parametrize(
    ("wrap", "inner"),
    [
        (lambda inner: UnionKeySelector(abs, inner), Length()),
        (CoGroupWindowFunction, Sorted()),
        (JoinCoGroupFunction, Pair()),
        (lambda inner: CoGroupWindowFunction(JoinCoGroupFunction(inner)), Both()),
    ],
)
def test_wrapped_functions_are_opened_and_closed(wrap: Any, inner: Any) -> None:
    function = wrap(inner)
    function.open(NO_CONTEXT)
    function.close()
    assert inner.calls == ["open", "close"]
