"""Time to live for each kind of state, with a clock that the test advances; the time to live is 10 ms."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from aggregates import Sum
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from opchain.datastream.state import StateTtlConfig
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.testing.operator_harness import ManualClock

Builder = StateTtlConfig.Builder


def add(left: Any, right: Any) -> Any:
    return left + right


class Kind:
    """How one kind of state is written and read, so that one test covers all kinds."""

    def __init__(self, make: Any, write: Any, read: Any, empty: Any) -> None:
        self.make, self.write, self.read, self.empty = make, write, read, empty


KINDS = {
    "value": Kind(
        lambda: ValueStateDescriptor("s"), lambda s, v: s.update(v), lambda s: s.value(), None
    ),
    "list": Kind(
        lambda: ListStateDescriptor("s"),
        lambda s, v: s.add(v),
        lambda s: list(s.get()) or None,
        None,
    ),
    "map": Kind(
        lambda: MapStateDescriptor("s"), lambda s, v: s.put("k", v), lambda s: s.get("k"), None
    ),
    "reducing": Kind(
        lambda: ReducingStateDescriptor("s", add), lambda s, v: s.add(v), lambda s: s.get(), None
    ),
    "aggregating": Kind(
        lambda: AggregatingStateDescriptor("s", Sum()),
        lambda s, v: s.add(v),
        lambda s: s.get(),
        None,
    ),
}


class Fixture:
    def __init__(self, descriptor: StateDescriptor[Any], builder: Builder) -> None:
        self.clock = ManualClock(1000)
        self.backend = HashMapKeyedStateBackend(now=self.clock.current_processing_time)
        descriptor.enable_time_to_live(builder.build())
        self.state = self.backend.state(descriptor)
        self.backend.set_current_key("k")


def ttl() -> Builder:
    return StateTtlConfig.new_builder(10).disable_cleanup_in_background()


@pytest.fixture(params=KINDS, name="kind")
def a_kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_an_entry_expires_after_its_time_to_live(kind: Kind) -> None:
    at = Fixture(kind.make(), ttl())
    kind.write(at.state, 7)
    at.clock.advance(9)
    assert kind.read(at.state) in (7, [7])
    at.clock.advance(1)
    assert kind.read(at.state) is None
    assert at.backend.entry_count() == 0


def test_reading_renews_an_entry_only_with_on_read_and_write(kind: Kind) -> None:
    for builder, expected in ((ttl(), None), (ttl().update_ttl_on_read_and_write(), 7)):
        at = Fixture(kind.make(), builder)
        kind.write(at.state, 7)
        at.clock.advance(6)
        kind.read(at.state)
        at.clock.advance(6)
        assert kind.read(at.state) in (expected, [expected])


def test_writing_renews_an_entry(kind: Kind) -> None:
    at = Fixture(kind.make(), ttl())
    kind.write(at.state, 1)
    at.clock.advance(6)
    kind.write(at.state, 2)
    at.clock.advance(6)
    expected = {"ValueStateDescriptor": 2, "ListStateDescriptor": [2], "MapStateDescriptor": 2}
    assert kind.read(at.state) == expected.get(type(kind.make()).__name__, 3)


def test_expired_entries_are_returned_once_with_return_expired(kind: Kind) -> None:
    at = Fixture(kind.make(), ttl().return_expired_if_not_cleaned_up())
    kind.write(at.state, 7)
    at.clock.advance(10)
    assert kind.read(at.state) in (7, [7])  # and the read removes the entry
    assert kind.read(at.state) is None


def test_clear_removes_the_entry(kind: Kind) -> None:
    at = Fixture(kind.make(), ttl())
    kind.write(at.state, 7)
    at.state.clear()
    assert kind.read(at.state) is None


def test_with_update_type_disabled_entries_never_expire(kind: Kind) -> None:
    at = Fixture(kind.make(), ttl().set_update_type(StateTtlConfig.UpdateType.Disabled))
    kind.write(at.state, 7)
    at.clock.advance(10**9)
    assert kind.read(at.state) in (7, [7])


@pytest.mark.parametrize("name", ["value", "reducing", "aggregating"])
def test_writing_none_clears_the_state(name: str) -> None:
    kind = KINDS[name]
    at = Fixture(kind.make(), ttl())
    kind.write(at.state, 7)
    kind.write(at.state, None)
    assert kind.read(at.state) is None
    assert at.backend.entry_count() == 0


@pytest.mark.parametrize("name", ["reducing", "aggregating"])
def test_an_expired_value_is_not_combined_with_a_new_one(name: str) -> None:
    for builder, expected in ((ttl(), 2), (ttl().return_expired_if_not_cleaned_up(), 3)):
        at = Fixture(KINDS[name].make(), builder)
        at.state.add(1)
        at.clock.advance(10)
        at.state.add(2)
        assert at.state.get() == expected


def test_elements_of_a_list_state_expire_one_by_one() -> None:
    at = Fixture(ListStateDescriptor("s"), ttl())
    at.state.add_all([1, 2])
    at.clock.advance(5)
    at.state.add(3)
    at.clock.advance(5)
    assert list(at.state.get()) == [3]
    at.state.update([4, 5])
    at.clock.advance(9)
    at.state.add_all([])
    assert list(at.state.get()) == [4, 5]
    at.state.update([])
    assert at.backend.entry_count() == 0


def test_reading_a_list_renews_its_live_elements_and_drops_the_others() -> None:
    at = Fixture(ListStateDescriptor("s"), ttl().update_ttl_on_read_and_write())
    at.state.add(1)
    at.clock.advance(5)
    at.state.add(2)
    at.clock.advance(5)
    assert list(at.state.get()) == [2]
    assert at.backend.table("s") == {"k": [(1010, 2)]}


def test_a_list_may_return_expired_elements_beside_others() -> None:
    at = Fixture(ListStateDescriptor("s"), ttl().return_expired_if_not_cleaned_up())
    at.state.add(1)
    at.clock.advance(10)
    at.state.add(2)
    assert list(at.state.get()) == [1, 2]


def test_entries_of_a_map_state_expire_one_by_one() -> None:
    at = Fixture(MapStateDescriptor("s"), ttl())
    at.state.put_all({"a": 1})
    at.state.put_all([("b", None)])
    at.clock.advance(5)
    at.state.put("c", 3)
    assert at.state.contains("b")
    at.clock.advance(5)
    assert not at.state.contains("b")
    assert list(at.state.items()) == [("c", 3)]
    assert list(at.state.keys()) == ["c"]
    assert list(at.state.values()) == [3]
    at.state.remove("c")
    assert at.state.is_empty()


def test_is_empty_of_a_map_is_true_after_its_expired_entries_are_removed() -> None:
    at = Fixture(MapStateDescriptor("s"), ttl())
    at.state.put("a", 1)
    at.clock.advance(10)
    assert not at.state.is_empty()
    assert list(at.state.keys()) == []
    assert at.state.is_empty()
    at.state.put("a", 1)
    at.clock.advance(10)
    assert at.state.get("a") is None
    assert at.state.is_empty()


def test_iterating_over_a_map_renews_its_entries_with_on_read_and_write() -> None:
    at = Fixture(MapStateDescriptor("s"), ttl().update_ttl_on_read_and_write())
    at.state.put("a", 1)
    at.clock.advance(9)
    list(at.state.items())
    at.clock.advance(9)
    assert at.state.get("a") == 1


@pytest.mark.parametrize(
    ("name", "merged"), [("list", [1, 2, 3]), ("reducing", 5), ("aggregating", 5)]
)
def test_merging_drops_expired_values(name: str, merged: Any) -> None:
    kind = KINDS[name]
    at = Fixture(kind.make(), ttl())
    descriptor = kind.make()
    descriptor.enable_time_to_live(ttl().build())
    state = at.backend.namespaced_state(descriptor)
    for window, value in (("old", 1), ("a", 2), ("t", 3)):
        state.set_current_namespace(window)
        state.add(value)
        if window == "old":
            at.clock.advance(10)
    state.merge_namespaces("t", ["old", "a"])
    found = state.get()
    # Flink moves list elements with their times unchanged: a read finds the expired one.
    assert found == ([3, 2] if name == "list" else merged)
    assert at.backend.entry_count() == 1


def test_merging_two_expired_values_leaves_no_value() -> None:
    descriptor = ReducingStateDescriptor("s", add)
    at = Fixture(descriptor, ttl())
    state = at.backend.namespaced_state(descriptor)
    for window in ("a", "b", "t"):
        state.set_current_namespace(window)
        state.add(1)
    at.clock.advance(10)
    state.merge_namespaces("t", ["a", "b"])
    assert state.get() is None


class TtlAgainstTimes(RuleBasedStateMachine):
    """A value and a map, compared with a model of their last access times."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.backend = HashMapKeyedStateBackend(now=self.clock.current_processing_time)
        value: ValueStateDescriptor[int] = ValueStateDescriptor("value")
        value.enable_time_to_live(StateTtlConfig.new_builder(10).build())
        entries: MapStateDescriptor[int, int] = MapStateDescriptor("map")
        entries.enable_time_to_live(
            StateTtlConfig.new_builder(10).update_ttl_on_read_and_write().build()
        )
        self.value, self.map = self.backend.get_state(value), self.backend.get_map_state(entries)
        self.key = 0
        self.backend.set_current_key(0)
        self.values: dict[int, tuple[int, int]] = {}
        self.entries: dict[tuple[int, int], tuple[int, int]] = {}

    def alive(self, entry: tuple[int, int] | None) -> bool:
        return entry is not None and entry[1] + 10 > self.clock.current_processing_time()

    @rule(key=st.integers(0, 2))
    def select(self, key: int) -> None:
        self.key = key
        self.backend.set_current_key(key)

    @rule(by=st.integers(0, 12))
    def wait(self, by: int) -> None:
        self.clock.advance(by)

    @rule(value=st.integers(0, 9))
    def write(self, value: int) -> None:
        self.value.update(value)
        self.values[self.key] = (value, self.clock.current_processing_time())

    @rule(entry=st.integers(0, 2), value=st.integers(0, 9))
    def put(self, entry: int, value: int) -> None:
        self.map.put(entry, value)
        self.entries[self.key, entry] = (value, self.clock.current_processing_time())

    @rule(entry=st.integers(0, 2))
    def read_entry(self, entry: int) -> None:
        kept = self.entries.get((self.key, entry))
        if self.alive(kept):
            assert kept is not None
            self.entries[self.key, entry] = (kept[0], self.clock.current_processing_time())
            assert self.map.get(entry) == kept[0]
        else:
            assert self.map.get(entry) is None

    @invariant()
    def the_value_is_alive_or_gone(self) -> None:
        kept = self.values.get(self.key)
        assert self.value.value() == (kept[0] if kept is not None and self.alive(kept) else None)


TestTtlAgainstTimes = TtlAgainstTimes.TestCase


def test_an_access_reads_the_clock_once(kind: Kind) -> None:
    reads = count()
    builder = StateTtlConfig.new_builder(10_000).cleanup_incrementally(5, False)
    descriptor = kind.make()
    descriptor.enable_time_to_live(builder.build())
    backend = HashMapKeyedStateBackend(now=lambda: next(reads))
    state = backend.state(descriptor)
    backend.set_current_key("k")
    for accesses, access in enumerate([lambda: kind.write(state, 7), lambda: kind.read(state)] * 2):
        assert next(reads) == 2 * accesses
        access()
