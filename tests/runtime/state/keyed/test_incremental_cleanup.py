from __future__ import annotations

from itertools import pairwise
from typing import Any

from opchain.datastream.state import StateTtlConfig
from opchain.runtime.functions.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.testing.operator_harness import ManualClock


class At:
    def __init__(
        self, descriptor: StateDescriptor[Any], *, size: int = 2, every: bool = False
    ) -> None:
        self.clock = ManualClock()
        self.backend = HashMapKeyedStateBackend(now=self.clock.current_processing_time)
        builder = StateTtlConfig.new_builder(10).cleanup_incrementally(size, every)
        descriptor.enable_time_to_live(builder.build())
        self.state = self.backend.state(descriptor)

    def left(self) -> int:
        return len(self.backend.table("s"))

    def fill(self, keys: int, write: Any) -> None:
        for key in range(keys):
            self.backend.set_current_key(key)
            write(self.state)


def test_each_access_checks_a_fixed_number_of_keys() -> None:
    at = At(ValueStateDescriptor("s"))
    at.fill(10, lambda state: state.update(1))
    at.clock.advance(10)
    at.backend.set_current_key("none of them")
    left = []
    for _ in range(8):
        at.state.value()
        left.append(at.left())
    assert left[-1] == 0
    assert all(0 <= before - after <= 2 for before, after in pairwise(left))
    assert left[0] >= 8


def test_live_entries_are_kept_and_the_cleanup_starts_over() -> None:
    at = At(ValueStateDescriptor("s"), size=3)
    at.fill(3, lambda state: state.update(1))
    at.clock.advance(9)
    at.backend.set_current_key("fresh")
    at.state.update(1)
    at.clock.advance(1)
    for _ in range(4):
        at.state.value()
    assert list(at.backend.keys("s")) == ["fresh"]
    at.clock.advance(10)
    at.backend.set_current_key("other")
    for _ in range(2):
        at.state.value()
    assert at.left() == 0


def test_keys_may_be_added_and_removed_between_two_accesses() -> None:
    at = At(ValueStateDescriptor("s"), size=1)
    for key in range(50):
        at.backend.set_current_key(key)
        at.state.update(key)
        at.clock.advance(3)
        if key % 3 == 0:
            at.state.clear()
        at.backend.set_current_key(key // 2)
        at.state.value()
    assert at.left() < 20


def test_run_cleanup_for_every_record_cleans_up_without_state_access() -> None:
    for every, left in ((True, 0), (False, 4)):
        at = At(ValueStateDescriptor("s"), every=every)
        at.fill(4, lambda state: state.update(1))
        at.clock.advance(10)
        for _ in range(4):
            at.backend.set_current_key("another")
        assert at.left() == left


def test_expired_elements_of_lists_and_maps_are_removed() -> None:
    lists = At(ListStateDescriptor("s"))
    lists.fill(1, lambda state: state.add("old"))
    lists.clock.advance(6)
    lists.state.add("new")
    lists.clock.advance(6)
    lists.backend.set_current_key("other")
    lists.state.get()
    assert lists.backend.table("s") == {0: [(6, "new")]}

    maps = At(MapStateDescriptor("s"))
    maps.fill(2, lambda state: state.put("old", 1))
    maps.clock.advance(6)
    maps.state.put("new", 2)
    maps.clock.advance(6)
    maps.backend.set_current_key("other")
    maps.state.is_empty()
    maps.state.is_empty()
    assert maps.backend.table("s") == {1: {"new": (6, 2)}}


def test_expired_namespaces_are_removed() -> None:
    descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("s")
    at = At(descriptor, size=5)
    windowed = at.backend.namespaced_state(descriptor)
    at.backend.set_current_key("k")
    for window in range(6):
        windowed.set_current_namespace(window)
        windowed.update(1)
    at.clock.advance(10)
    for _ in range(4):
        windowed.value()
    assert at.backend.entry_count() == 0
    assert len(at.backend._tables["s"].spaces) == 2  # the void namespace and the current one


def test_by_default_five_keys_are_checked() -> None:
    clock = ManualClock()
    backend = HashMapKeyedStateBackend(now=clock.current_processing_time)
    descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("s")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(10).build())
    state = backend.get_state(descriptor)
    for key in range(12):
        backend.set_current_key(key)
        state.update(1)
    clock.advance(10)
    backend.set_current_key("other")
    found = []
    for _ in range(5):
        state.value()
        found.append(len(backend.table("s")))
    assert found[-1] == 0
    assert max(before - after for before, after in pairwise(found)) == 5
