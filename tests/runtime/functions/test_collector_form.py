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
def test_a_method_with_a_collector_is_called_without_one(
    function: Any, expected: list[str]
) -> None:
    accept_collectors(function)
    accept_collectors(function)  # calling it a second time changes nothing
    assert list(function.flat_map("a")) == expected


def test_accept_collectors_changes_the_object_and_not_its_class() -> None:
    accept_collectors(Twice())
    collector = Collector()
    Twice().flat_map("a", collector)
    assert collector.records() == ["a", "a"]


def test_a_join_function_with_a_third_parameter_is_left_unchanged() -> None:
    class Joins(JoinFunction[Any, Any, Any]):
        def join(self, first: Any, second: Any, third: Any) -> Any:  # type: ignore[override]
            return first

    function: Any = Joins()
    accept_collectors(function)
    assert "join" not in vars(function)


def test_an_object_that_is_not_a_function_is_left_unchanged() -> None:
    accept_collectors(max)
    accept_collectors(None)
