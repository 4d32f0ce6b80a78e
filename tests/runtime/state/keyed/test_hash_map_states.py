"""The five kinds of state, compared with models, and their corner cases."""

from __future__ import annotations

from typing import Any

import pytest
from aggregates import Mean
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend

VALUE: ValueStateDescriptor[Any] = ValueStateDescriptor("value")
LIST: ListStateDescriptor[Any] = ListStateDescriptor("list")
MAP: MapStateDescriptor[Any, Any] = MapStateDescriptor("map")
REDUCING: ReducingStateDescriptor[Any] = ReducingStateDescriptor("sum", lambda a, b: a + b)
AGGREGATING: AggregatingStateDescriptor[Any, Any, Any] = AggregatingStateDescriptor("mean", Mean())
ALL = [VALUE, LIST, MAP, REDUCING, AGGREGATING]


@pytest.fixture
def backend() -> HashMapKeyedStateBackend:
    backend = HashMapKeyedStateBackend()
    backend.set_current_key("k")
    return backend


def test_a_value_state_is_none_before_update_and_after_clear(
    backend: HashMapKeyedStateBackend,
) -> None:
    state = backend.get_state(VALUE)
    assert state.value() is None
    state.update(0)
    assert state.value() == 0
    state.update(None)
    assert state.value() is None
    assert backend.entry_count() == 0


def test_each_key_has_its_own_value(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_state(VALUE)
    for key in ("a", 1, True, 1.0, ("a", 1), [1]):
        backend.set_current_key(key)
        assert state.value() is None
        state.update(repr(key))
    for key in ("a", 1, True, 1.0, ("a", 1), [1]):
        backend.set_current_key(key)
        assert state.value() == repr(key)


def test_an_empty_list_has_no_state_entry(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_list_state(LIST)
    assert list(state.get()) == []
    state.add_all([])
    state.update([])
    assert backend.entry_count() == 0
    state.add(1)
    state.update([])
    assert list(state) == []
    assert backend.entry_count() == 0


def test_a_list_state_copies_lists_in_and_out(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_list_state(LIST)
    given = [1, 2]
    state.update(given)
    given.append(3)
    got = state.get()
    for value in got:
        state.add(value * 10)
    assert list(got) == [1, 2]
    assert list(state.get()) == [1, 2, 10, 20]
    state.add_all(state.get())
    assert len(list(state.get())) == 8


def test_lists_and_maps_may_contain_none(backend: HashMapKeyedStateBackend) -> None:
    backend.get_list_state(LIST).add(None)
    assert list(backend.get_list_state(LIST).get()) == [None]
    state = backend.get_map_state(MAP)
    state.put("a", None)
    assert state.contains("a")
    assert state.get("a") is None
    assert not state.is_empty()


def test_a_map_state_iterates_in_the_order_of_first_puts(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_map_state(MAP)
    state.put_all({"b": 1, "a": 2})
    state["c"] = 3
    state["b"] = 4
    assert list(state.items()) == [("b", 4), ("a", 2), ("c", 3)]
    assert list(state.keys()) == list(state) == ["b", "a", "c"]
    assert list(state.values()) == [4, 2, 3]


def test_a_map_state_may_change_while_it_is_iterated(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_map_state(MAP)
    state.put_all((n, n) for n in range(4))
    for key in state:
        state.remove(key)
        state.put(key + 10, key)
    assert list(state) == [10, 11, 12, 13]


def test_a_map_state_is_removed_with_its_last_entry(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_map_state(MAP)
    state.put_all({})
    state.remove("missing")
    assert state.is_empty()
    state["a"] = 1
    assert "a" in state
    assert state["missing"] is None
    del state["a"]
    assert state.is_empty()
    assert backend.entry_count() == 0
    assert list(state.items()) == list(state.values()) == []


def test_reducing_and_aggregating_state_combine_added_values(
    backend: HashMapKeyedStateBackend,
) -> None:
    total, mean = backend.get_reducing_state(REDUCING), backend.get_aggregating_state(AGGREGATING)
    assert total.get() is None
    assert mean.get() is None
    for value in (1, 2, 6):
        total.add(value)
        mean.add(value)
    assert (total.get(), mean.get()) == (9, 3.0)


def test_adding_none_clears_reducing_and_aggregating_state(
    backend: HashMapKeyedStateBackend,
) -> None:
    for state in (backend.get_reducing_state(REDUCING), backend.get_aggregating_state(AGGREGATING)):
        state.add(1)
        state.add(None)
        assert state.get() is None
    assert backend.entry_count() == 0


def test_values_are_not_copied(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_state(VALUE)
    value = ["shared"]
    state.update(value)
    assert state.value() is value


@pytest.mark.parametrize("descriptor", ALL, ids=lambda descriptor: descriptor.name)
@pytest.mark.parametrize("call", ["read", "write", "clear"])
def test_using_state_without_a_current_key_is_an_error(descriptor: Any, call: str) -> None:
    backend = HashMapKeyedStateBackend(where="'count' (job.py:3)")
    state = backend.state(descriptor)
    read = {"value": "value", "map": "is_empty"}.get(descriptor.name, "get")
    write = {"value": "update", "map": "put"}.get(descriptor.name, "add")
    arguments = {"read": (), "write": (1, 2)[: 1 + (write == "put")], "clear": ()}[call]
    method = {"read": read, "write": write, "clear": "clear"}[call]
    with pytest.raises(
        StateError, match=r"'count' \(job.py:3\) uses keyed state .* without a current key"
    ):
        getattr(state, method)(*arguments)


# Namespaces


def test_each_namespace_has_its_own_state(backend: HashMapKeyedStateBackend) -> None:
    state = backend.namespaced_state(LIST)
    for window in ("w1", "w2", "w1"):
        state.set_current_namespace(window)
        state.add(window)
    assert state.get() == ["w1", "w1"]
    assert backend.get_partitioned_state("w2", LIST).get() == ["w2"]
    assert list(backend.get_list_state(LIST).get()) == []


def test_state_without_a_namespace_is_separate_from_window_state(
    backend: HashMapKeyedStateBackend,
) -> None:
    plain = backend.get_state(VALUE)
    plain.update("plain")
    windowed = backend.get_partitioned_state("w", VALUE)
    windowed.update("windowed")
    assert plain.value() == "plain"
    plain.clear()
    assert windowed.value() == "windowed"


def test_empty_namespaces_are_removed(backend: HashMapKeyedStateBackend) -> None:
    state = backend.namespaced_state(VALUE)
    for window in range(5):
        state.set_current_namespace(window)
        state.value()
    for window in range(5):
        state.set_current_namespace(window)
        state.update(1)
        state.clear()
    table = backend._tables["value"]
    assert len(table.spaces) == 2  # the void namespace and the current one
    state.update("kept")
    state.set_current_namespace("other")
    state.set_current_namespace(4)
    assert state.value() == "kept"


@pytest.mark.parametrize(
    ("descriptor", "contents", "merged"),
    [
        (LIST, {"t": [1], "a": [2, 3], "b": [4]}, [1, 2, 3, 4]),
        (LIST, {"a": [2]}, [2]),
        (
            ReducingStateDescriptor("text", lambda a, b: f"({a}{b})"),
            {"t": "t", "a": "a", "b": "b"},
            "(t(ab))",
        ),
        (AGGREGATING, {"t": [1], "a": [2, 3], "b": [4]}, 2.5),
        (LIST, {}, []),
        (REDUCING, {}, None),
    ],
)
def test_merge_namespaces_appends_the_sources_to_the_target(
    backend: HashMapKeyedStateBackend, descriptor: Any, contents: dict[str, Any], merged: Any
) -> None:
    state = backend.namespaced_state(descriptor)
    for window, values in contents.items():
        state.set_current_namespace(window)
        for value in values:
            state.add(value)
    state.merge_namespaces("t", ["a", "b", "missing"])
    assert state.get() == merged
    for source in ("a", "b"):
        state.set_current_namespace(source)
        assert not state.get()
    assert backend.entry_count() == bool(merged)


def test_merge_namespaces_affects_only_the_current_key(backend: HashMapKeyedStateBackend) -> None:
    state = backend.namespaced_state(LIST)
    for key in ("k", "other"):
        backend.set_current_key(key)
        for window in ("a", "b"):
            state.set_current_namespace(window)
            state.add(key + window)
    backend.set_current_key("k")
    state.merge_namespaces("a", ["b"])
    assert state.get() == ["ka", "kb"]
    backend.set_current_key("other")
    assert state.get() == ["othera"]
    assert backend.get_partitioned_state("b", LIST).get() == ["otherb"]


def test_the_target_of_merge_namespaces_may_be_among_the_sources(
    backend: HashMapKeyedStateBackend,
) -> None:
    state = backend.namespaced_state(LIST)
    for window in ("a", "b"):
        state.set_current_namespace(window)
        state.add(window)
    state.merge_namespaces("b", ["a", "b"])
    assert state.get() == ["a", "b"]


@pytest.mark.parametrize("descriptor", [VALUE, MAP], ids=["value", "map"])
def test_value_and_map_states_cannot_be_merged(
    backend: HashMapKeyedStateBackend, descriptor: Any
) -> None:
    state = backend.namespaced_state(descriptor)
    with pytest.raises(StateError, match=r"can't be merged when windows merge .*'a'.* into 't'"):
        state.merge_namespaces("t", ["a"])


# Compared with models

KEYS = st.sampled_from(["a", 1, True, 1.0, ("a", 1.0), float("nan")])
NAMESPACES = st.sampled_from(["v", "w"])
SMALL = st.integers(0, 5)


class StatesAgainstDicts(RuleBasedStateMachine):
    """Applies each operation to the states, and to a plain dict by (state, namespace, repr of the key)."""

    def __init__(self) -> None:
        super().__init__()
        self.backend = HashMapKeyedStateBackend()
        self.states = {
            descriptor.name: self.backend.namespaced_state(descriptor) for descriptor in ALL
        }
        self.model: dict[tuple[str, str, str], Any] = {}
        self.key, self.namespace = "'a'", "v"
        self.backend.set_current_key("a")
        self.select_namespace("v")

    def slot(self, name: str) -> tuple[str, str, str]:
        return name, self.namespace, self.key

    @rule(key=KEYS)
    def select_key(self, key: Any) -> None:
        self.backend.set_current_key(key)
        self.key = repr(key)

    @rule(namespace=NAMESPACES)
    def select_namespace(self, namespace: str) -> None:
        for state in self.states.values():
            state.set_current_namespace(namespace)
        self.namespace = namespace

    @rule(value=SMALL)
    def update_value(self, value: int) -> None:
        self.states["value"].update(value)
        self.model[self.slot("value")] = value

    @rule(values=st.lists(SMALL, max_size=3))
    def extend_list(self, values: list[int]) -> None:
        self.states["list"].add_all(values)
        if values:
            self.model[self.slot("list")] = self.model.get(self.slot("list"), []) + values

    @rule(values=st.lists(SMALL, max_size=3))
    def replace_list(self, values: list[int]) -> None:
        self.states["list"].update(values)
        self.model.pop(self.slot("list"), None)
        if values:
            self.model[self.slot("list")] = values

    @rule(key=SMALL, value=SMALL)
    def put(self, key: int, value: int) -> None:
        self.states["map"].put(key, value)
        self.model.setdefault(self.slot("map"), {})[key] = value

    @rule(key=SMALL)
    def remove(self, key: int) -> None:
        self.states["map"].remove(key)
        entries = self.model.get(self.slot("map"), {})
        entries.pop(key, None)
        if not entries:
            self.model.pop(self.slot("map"), None)

    @rule(value=SMALL)
    def take_in(self, value: int) -> None:
        for name in ("sum", "mean"):
            self.states[name].add(value)
            self.model[self.slot(name)] = [*self.model.get(self.slot(name), []), value]

    @rule(name=st.sampled_from(["value", "list", "map", "sum", "mean"]))
    def clear(self, name: str) -> None:
        self.states[name].clear()
        self.model.pop(self.slot(name), None)

    @rule(name=st.sampled_from(["list", "sum", "mean"]), into=NAMESPACES, source=NAMESPACES)
    def merge(self, name: str, into: str, source: str) -> None:
        self.states[name].merge_namespaces(into, [source])
        moved = self.model.pop((name, source, self.key), None)
        self.select_namespace(into)
        if moved is not None:
            self.model[self.slot(name)] = self.model.get(self.slot(name), []) + moved

    @invariant()
    def reads_agree(self) -> None:
        states, taken = self.states, self.model.get(self.slot("sum"))
        assert states["value"].value() == self.model.get(self.slot("value"))
        assert states["list"].get() == self.model.get(self.slot("list"), [])
        assert dict(states["map"].items()) == self.model.get(self.slot("map"), {})
        assert states["map"].is_empty() is (self.slot("map") not in self.model)
        assert states["sum"].get() == (None if taken is None else sum(taken))
        taken = self.model.get(self.slot("mean"))
        assert states["mean"].get() == (None if taken is None else sum(taken) / len(taken))
        assert self.backend.entry_count() == len(self.model)


TestStatesAgainstDicts = StatesAgainstDicts.TestCase
