from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.state import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    ListState,
    MapState,
    MergingState,
    ReadOnlyBroadcastState,
    ReducingState,
    ValueState,
)


class InDict:
    """The abstract methods of a map state, implemented with a dict."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        return self.entries.get(key)

    def contains(self, key: Any) -> bool:
        return key in self.entries

    def items(self) -> Any:
        return self.entries.items()

    def keys(self) -> Any:
        return self.entries.keys()

    def values(self) -> Any:
        return self.entries.values()

    def is_empty(self) -> bool:
        return not self.entries

    def put(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def put_all(self, dict_value: Any) -> None:
        self.entries.update(dict_value)

    def remove(self, key: Any) -> None:
        self.entries.pop(key, None)

    def clear(self) -> None:
        self.entries.clear()


class Rules(InDict, BroadcastState[str, int]):
    pass


class Counts(InDict, MapState):  # type: ignore[type-arg, misc]
    pass


class Letters(ListState[str]):
    def __init__(self) -> None:
        self.held: list[str] = []

    def get(self) -> list[str]:
        return self.held

    def add(self, value: str) -> None:
        self.held.append(value)

    def add_all(self, values: Any) -> None:
        self.held.extend(values)

    def update(self, values: Any) -> None:
        self.held = list(values)

    def clear(self) -> None:
        self.held = []


@pytest.mark.parametrize("kind", [Rules, Counts])
def test_a_map_state_is_used_like_a_dict(kind: Any) -> None:
    state = kind()
    state["a"] = 1
    state.put_all({"b": 2, "c": 3})
    del state["c"]
    del state["no such key"]
    assert (state["a"], state["missing"]) == (1, None)
    assert "a" in state
    assert "missing" not in state
    assert list(state) == ["a", "b"]


def test_read_only_broadcast_state_has_no_method_that_writes() -> None:
    assert isinstance(Rules(), ReadOnlyBroadcastState)
    assert not hasattr(ReadOnlyBroadcastState, "put")
    assert not hasattr(ReadOnlyBroadcastState, "__setitem__")


def test_a_list_state_can_be_iterated() -> None:
    state = Letters()
    state.add_all("ab")
    assert list(state) == ["a", "b"]


@pytest.mark.parametrize("kind", [ListState, ReducingState, AggregatingState])
def test_list_reducing_and_aggregating_states_are_merging_states(kind: Any) -> None:
    assert issubclass(kind, MergingState)
    assert issubclass(kind, AppendingState)


MAP = {"get", "contains", "items", "keys", "values", "is_empty", "clear"}


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        (ValueState, {"value", "update", "clear"}),
        (ListState, {"get", "add", "add_all", "update", "clear"}),
        (ReducingState, {"get", "add", "clear"}),
        (AggregatingState, {"get", "add", "clear"}),
        (ReadOnlyBroadcastState, MAP),
        (MapState, MAP | {"put", "put_all", "remove"}),
        (BroadcastState, MAP | {"put", "put_all", "remove"}),
    ],
)
def test_each_state_class_has_its_abstract_methods(kind: Any, methods: set[str]) -> None:
    assert kind.__abstractmethods__ == methods
