from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.datastream.state import StateTtlConfig
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keys.key_hashers import hasher_named
from opchain.runtime.state.keys.key_identity import key_identity, state_key

COUNT: ValueStateDescriptor[int] = ValueStateDescriptor("count", Types.LONG())
TTL = StateTtlConfig.new_builder(1000).build()


def with_ttl(descriptor: Any) -> Any:
    descriptor.enable_time_to_live(TTL)
    return descriptor


@pytest.fixture
def backend() -> HashMapKeyedStateBackend:
    return HashMapKeyedStateBackend(where="'count' (job.py:3)")


def test_requesting_a_state_again_returns_the_same_object(
    backend: HashMapKeyedStateBackend,
) -> None:
    state = backend.get_state(COUNT)
    assert backend.get_state(ValueStateDescriptor("count", Types.LONG())) is state
    assert backend.state(COUNT) is state
    assert backend.namespaced_state(COUNT) is backend.get_partitioned_state("w", COUNT)
    assert backend.namespaced_state(COUNT) is not state


@pytest.mark.parametrize(
    "other",
    [
        ValueStateDescriptor("count", Types.STRING()),
        ListStateDescriptor("count", Types.LONG()),
        MapStateDescriptor("count"),
        ReducingStateDescriptor("count", lambda a, b: a + b, Types.LONG()),
        with_ttl(ValueStateDescriptor("count", Types.LONG())),
    ],
    ids=["type", "list", "map", "reducing", "ttl"],
)
@pytest.mark.parametrize("asks_for", ["state", "namespaced_state"])
def test_requesting_a_name_for_another_kind_of_state_is_an_error(
    backend: HashMapKeyedStateBackend, other: Any, asks_for: str
) -> None:
    backend.get_state(COUNT)
    with pytest.raises(
        StateError, match=r"'count' \(job.py:3\): state 'count' is registered as .* "
    ):
        getattr(backend, asks_for)(other)


def test_the_current_key_is_returned_as_it_was_set(backend: HashMapKeyedStateBackend) -> None:
    key = ("a", 1.0)
    backend.set_current_key(key)
    assert backend.current_key is key
    assert backend.state_key == state_key(key)
    backend.set_current_state_key(state_key(True))
    assert backend.current_key is True


@pytest.mark.parametrize("key", [None, object(), {"a": 1}, frozenset({"a", "b"})])
def test_any_object_can_be_a_key(backend: HashMapKeyedStateBackend, key: Any) -> None:
    state = backend.get_state(COUNT)
    backend.set_current_key(key)
    state.update(1)
    backend.set_current_key("a")
    assert state.value() is None
    backend.set_current_key(key)
    assert state.value() == 1
    assert backend.current_key is key


def test_after_clear_current_key_there_is_no_current_key(backend: HashMapKeyedStateBackend) -> None:
    state = backend.get_state(COUNT)
    backend.set_current_key("a")
    state.update(1)
    backend.clear_current_key()
    assert backend.current_key is None
    with pytest.raises(StateError, match="without a current key"):
        state.value()


def test_keys_declared_as_integers_are_one_key_if_they_are_equal() -> None:
    hasher = hasher_named("Long")
    backend = HashMapKeyedStateBackend(identity=key_identity(hasher), hasher=hasher)
    state = backend.get_state(COUNT)
    backend.set_current_key(True)
    state.update(7)
    backend.set_current_key(1)
    assert state.value() == 7
    assert list(backend.keys("count")) == [1]


def test_a_table_shows_the_entries_of_the_state_with_its_name(
    backend: HashMapKeyedStateBackend,
) -> None:
    state = backend.get_state(COUNT)
    table = backend.table("count")
    backend.set_current_key(1.5)
    state.update(3)
    assert table == {state_key(1.5): 3}
    table[state_key(1.5)] = 4
    assert state.value() == 4
    assert backend.table("count") is table
    assert backend.table("count", "w") == {}


def test_a_table_without_a_descriptor_can_be_used(backend: HashMapKeyedStateBackend) -> None:
    backend.table("own", "w")["a"] = 1
    assert backend.table("own", "w") == {"a": 1}
    assert list(backend.keys("own", "w")) == ["a"]
    assert list(backend.keys("own")) == list(backend.keys("unknown")) == []
    with pytest.raises(StateError, match="is registered as table"):
        backend.get_state(ValueStateDescriptor("own"))


def test_apply_to_all_keys_visits_each_key_and_may_clear_its_state(
    backend: HashMapKeyedStateBackend,
) -> None:
    state = backend.get_state(COUNT)
    for key, count in (("b", 1), (True, 2), ("a", 3)):
        backend.set_current_key(key)
        state.update(count)
    seen = []

    def visit(key: Any, found: Any) -> None:
        seen.append((key, found.value()))
        found.clear() if key == "b" else found.update(0)

    backend.apply_to_all_keys(COUNT, visit)
    assert seen == [("b", 1), (True, 2), ("a", 3)]
    assert list(backend.keys("count")) == [True, "a"]
    with pytest.raises(StateError, match="without a current key"):
        state.value()


def test_apply_to_all_keys_visits_the_keys_of_one_namespace(
    backend: HashMapKeyedStateBackend,
) -> None:
    for window in ("v", "w"):
        state = backend.get_partitioned_state(window, COUNT)
        backend.set_current_key(window + "key")
        state.update(1)
    seen: list[Any] = []
    backend.apply_to_all_keys(COUNT, lambda key, _: seen.append(key), "w")
    assert seen == ["wkey"]
    assert list(backend.keys("count", "v")) == ["vkey"]


def test_clear_all_removes_all_keys_and_namespaces(backend: HashMapKeyedStateBackend) -> None:
    for key in ("a", "b"):
        backend.set_current_key(key)
        backend.get_state(COUNT).update(1)
        backend.get_partitioned_state("w", COUNT).update(2)
    table = backend.table("count")
    assert backend.entry_count() == 4
    backend.clear_all()
    assert backend.entry_count() == 0
    assert backend.table("count") is table


def test_listeners_are_called_for_each_selected_key(backend: HashMapKeyedStateBackend) -> None:
    heard: list[None] = []
    backend.on_key_selected(lambda: heard.append(None))
    backend.set_current_key("a")
    backend.set_current_key("a")
    backend.set_current_state_key("b")
    assert len(heard) == 3


def test_in_batch_mode_a_key_ends_when_another_key_is_selected(
    backend: HashMapKeyedStateBackend,
) -> None:
    ended: list[Any] = []
    state = backend.get_state(COUNT)

    def end() -> None:
        ended.append((backend.current_key, state.value()))
        backend.set_current_state_key(backend.state_key)  # as firing timers does

    backend.end_each_key(end)
    for key in ("a", "a", 1, True, True):
        backend.set_current_key(key)
        state.update((state.value() or 0) + 1)
    assert ended == [("a", 2), (1, 1)]
    assert backend.entry_count() == 1
    backend.clear_current_key()
    backend.set_current_key("c")
    assert len(ended) == 2
