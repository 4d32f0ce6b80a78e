from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import MapStateDescriptor, ValueStateDescriptor
from opchain.runtime.state.disk import disk_entries

pytest.importorskip("rocksdict")

VALUE: ValueStateDescriptor[Any] = ValueStateDescriptor("value")
MAP: MapStateDescriptor[Any, Any] = MapStateDescriptor("map")


def test_more_entries_than_the_cache_holds_are_read_in_order(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_entries, "_CACHE_ENTRIES", 10)
    state = backend.get_state(VALUE)
    numbers = [number * 7 % 101 for number in range(101)]
    for number in numbers:
        backend.set_current_key(number)
        state.update([number])
    assert backend._on_disk.cached <= 11
    assert list(backend.keys("value")) == numbers
    backend.set_current_key(50)
    state.clear()
    state.update("last")
    assert list(backend.keys("value")) == [*(n for n in numbers if n != 50), 50]


def test_table_values_may_be_changed_in_place(backend: Any) -> None:
    backend.table("panes", "w").setdefault("k", []).append(1)
    backend.table("panes", "w")["k"].append(2)
    backend._tables["panes"].entries("w").evict()
    assert backend.table("panes", "w")["k"] == [1, 2]


def test_the_error_names_a_value_that_cannot_be_pickled(backend: Any) -> None:
    backend.get_map_state(MAP).put("gen", (n for n in ()))
    with pytest.raises(
        StateError, match=r"'x' \(a.py:1\): state 'map' can't be saved: .*generator"
    ):
        backend.snapshot()


def test_the_error_names_a_value_that_cannot_be_unpickled(backend: Any) -> None:
    backend.get_state(VALUE).update(iter([]).__class__)
    backend._tables["value"].entries(backend.namespaces("value")[0]).evict()
    with pytest.raises(
        StateError, match=r"'x' \(a.py:1\): state 'value' holds a value that can't be read"
    ):
        backend.get_state(VALUE).value()


def test_large_values_are_evicted_by_their_size(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_entries, "_CACHE_BYTES", 1000)
    state = backend.get_state(VALUE)
    for key in range(5):
        backend.set_current_key(key)
        state.update("x" * 300)
    backend._tables["value"].entries(backend.namespaces("value")[0]).evict()
    for key in range(5):
        backend.set_current_key(key)
        assert state.value() == "x" * 300
        assert backend._on_disk.cached_bytes <= 1400


@pytest.mark.parametrize("count", [3, 1000])
def test_a_cleared_namespace_is_empty_and_can_be_filled(backend: Any, count: int) -> None:
    panes = backend.table("panes", "w")
    panes.update((number, [number]) for number in range(count))
    panes.write_back()
    panes.clear()
    assert (len(panes), list(panes), 1 in panes, list(reversed(panes))) == (0, [], False, [])
    panes[1] = "new"
    assert list(panes.items()) == [(1, "new")]
    assert next(backend._store.scan(b"", b"z"))[1].endswith(b"new\x94.")
