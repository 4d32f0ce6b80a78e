from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.functions.record_functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
)


class Plain(MapFunction):  # type: ignore[type-arg]
    def map(self, value: Any) -> Any:
        return value + 1


class Typed(MapFunction[int, str]):
    def map(self, value: int) -> str:
        return str(value)


class Words(FlatMapFunction[str, str]):
    def flat_map(self, value: str) -> Any:
        yield from value.split()


class Either(CoMapFunction[int, str, str]):
    def map1(self, value: int) -> str:
        return str(value)

    def map2(self, value: str) -> None:
        return None


def test_functions_work_with_and_without_type_parameters_and_pickle() -> None:
    assert pickle.loads(pickle.dumps(Plain())).map(1) == 2
    assert pickle.loads(pickle.dumps(Typed())).map(1) == "1"
    assert list(Words().flat_map("a b")) == ["a", "b"]
    assert (Either().map1(1), Either().map2("x")) == ("1", None)


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        (MapFunction, {"map"}),
        (FlatMapFunction, {"flat_map"}),
        (FilterFunction, {"filter"}),
        (CoMapFunction, {"map1", "map2"}),
        (CoFlatMapFunction, {"flat_map1", "flat_map2"}),
    ],
)
def test_each_function_class_has_its_abstract_methods_only(kind: Any, methods: set[str]) -> None:
    assert kind.__abstractmethods__ == methods
    with pytest.raises(TypeError, match="abstract"):
        kind()
