"""Which methods take a collector; every kind of function runs in tests/pyflink_behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from opchain.runtime.functions.callables import Collector, accept_collectors
from opchain.runtime.functions.record_functions import FlatMapFunction, JoinFunction


class Twice(FlatMapFunction[Any, Any]):
    def flat_map(self, value: Any, out: Any) -> Any:  # type: ignore[override]
        out.collect(value)
        out.collect(value)
        out.close()


class Yields(FlatMapFunction[Any, Any]):
    def flat_map(self, value: Any) -> Any:
        yield value


class WithDefault(FlatMapFunction[Any, Any]):
    def flat_map(self, value: Any, times: int = 2) -> Any:
        return [value] * times


class OfAny(FlatMapFunction[Any, Any]):
    def flat_map(self, *values: Any) -> Any:
        return values


@dataclass(frozen=True)
class Frozen(FlatMapFunction[Any, Any]):
    times: int

    def flat_map(self, value: Any, out: Any) -> Any:  # type: ignore[override]
        for _ in range(self.times):
            out.collect(value)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Twice(), ["a", "a"]),
        (Frozen(2), ["a", "a"]),
        (Yields(), ["a"]),
        (WithDefault(), ["a", "a"]),
        (OfAny(), ["a"]),
    ],
)
def test_a_method_is_called_without_a_collector(function: Any, expected: list[str]) -> None:
    accept_collectors(function)
    accept_collectors(function)  # a second time changes nothing
    assert list(function.flat_map("a")) == expected


def test_only_the_object_changes() -> None:
    accept_collectors(Twice())
    collector = Collector()
    Twice().flat_map("a", collector)
    assert collector.records() == ["a", "a"]


def test_a_join_returns_its_result() -> None:
    class Joins(JoinFunction[Any, Any, Any]):
        def join(self, first: Any, second: Any, third: Any) -> Any:  # type: ignore[override]
            return first

    function: Any = Joins()
    accept_collectors(function)
    assert "join" not in vars(function)


def test_what_is_no_function_stays_as_it_is() -> None:
    accept_collectors(max)
    accept_collectors(None)
