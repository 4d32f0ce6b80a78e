"""Snapshots of keyed state: whole, by key group, at another parallelism, and with errors."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.datastream.state import StateTtlConfig
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keys.key_groups import key_group, key_group_range
from opchain.runtime.testing.operator_harness import ManualClock
from opchain.runtime.windows.time_windows import TimeWindow

GROUPS = 16
VALUE: ValueStateDescriptor[Any] = ValueStateDescriptor("value")
LIST: ListStateDescriptor[Any] = ListStateDescriptor("list")
MAP: MapStateDescriptor[Any, Any] = MapStateDescriptor("map")


def backend_of(parallelism: int = 1, index: int = 0) -> HashMapKeyedStateBackend:
    return HashMapKeyedStateBackend(
        GROUPS, key_group_range(GROUPS, parallelism, index), where="'count' (job.py:3)"
    )


def contents(backend: HashMapKeyedStateBackend) -> dict[str, list[Any]]:
    return {
        name: [
            (namespace, repr(key), kept)
            for namespace, entries in table.spaces.items()
            for key, kept in entries.items()
        ]
        for name, table in backend._tables.items()
    }


KEYS = st.one_of(
    st.integers(-5, 5), st.booleans(), st.text("ab", max_size=2), st.sampled_from([1.0, -0.0, 0.0])
)


@given(st.lists(st.tuples(KEYS, st.integers()), max_size=12), st.integers(1, 5), st.integers(1, 5))
def test_state_survives_any_change_of_parallelism(
    writes: list[tuple[Any, int]], before: int, after: int
) -> None:
    owner = {index: backend_of(before, index) for index in range(before)}
    expected: dict[str, Any] = {}
    for key, value in writes:
        group = key_group(key, GROUPS)
        for backend in owner.values():
            if group in backend.key_groups:
                backend.set_current_key(key)
                backend.get_state(VALUE).update(value)
                backend.get_partitioned_state(TimeWindow(0, value), LIST).add(value)
        expected[repr(key)] = value
    snapshots = [backend.snapshot() for backend in owner.values()]
    found: dict[str, Any] = {}
    for index in range(after):
        backend = backend_of(after, index)
        backend.restore(snapshots)
        assert sum(len(s) for s in contents(backend).values()) == backend.entry_count()
        state = backend.get_state(VALUE)
        for key in backend.keys("value"):
            assert key_group(key, GROUPS) in backend.key_groups
            backend.set_current_key(key)
            found[repr(key)] = state.value()
            window_state = backend.get_partitioned_state(TimeWindow(0, found[repr(key)]), LIST)
            assert window_state.get()
    assert found == expected


def test_the_order_of_keys_survives_any_change_of_parallelism() -> None:
    backend = backend_of()
    names = [f"key {number * 7 % 50}" for number in range(50)]
    for name in names:
        backend.set_current_key(name)
        backend.get_state(VALUE).update(name)
    restored = backend_of()
    restored.restore([backend.snapshot()])
    assert list(restored.keys("value")) == names
    assert restored.snapshot() == backend.snapshot()


def test_all_kinds_of_state_survive() -> None:
    backend = backend_of()
    total: ReducingStateDescriptor[int] = ReducingStateDescriptor("sum", lambda a, b: a + b)
    backend.set_current_key("k")
    backend.get_state(VALUE).update(1)
    backend.get_list_state(LIST).add_all([1, 2])
    backend.get_map_state(MAP).put("a", 1)
    backend.get_reducing_state(total).add(3)
    backend.table("own")["k"] = "raw"
    restored = backend_of()
    restored.restore([backend.snapshot()])
    restored.set_current_key("k")
    assert restored.get_state(VALUE).value() == 1
    assert list(restored.get_list_state(LIST).get()) == [1, 2]
    assert dict(restored.get_map_state(MAP).items()) == {"a": 1}
    state = restored.get_reducing_state(total)
    state.add(4)
    assert state.get() == 7
    assert restored.table("own") == {"k": "raw"}


def test_a_snapshot_does_not_change_with_later_updates() -> None:
    backend = backend_of()
    backend.set_current_key("k")
    backend.get_list_state(LIST).add(1)
    snapshot = backend.snapshot()
    backend.get_list_state(LIST).add(2)
    restored = backend_of()
    restored.restore([snapshot])
    restored.set_current_key("k")
    assert list(restored.get_list_state(LIST).get()) == [1]


def test_a_backend_without_state_has_an_empty_snapshot() -> None:
    backend = backend_of()
    backend.get_state(VALUE)
    assert backend.snapshot() == {}


def test_a_full_snapshot_can_omit_expired_entries() -> None:
    clock = ManualClock()
    for in_snapshot, kept in ((True, {"list": [(6, "new")]}), (False, None)):
        backend = HashMapKeyedStateBackend(GROUPS, now=clock.current_processing_time)
        builder = StateTtlConfig.new_builder(10).disable_cleanup_in_background()
        config = (builder.cleanup_full_snapshot() if in_snapshot else builder).build()
        value: ValueStateDescriptor[int] = ValueStateDescriptor("value")
        elements: ListStateDescriptor[str] = ListStateDescriptor("list")
        for descriptor in (value, elements):
            descriptor.enable_time_to_live(config)
        clock = ManualClock()
        backend._now = clock.current_processing_time
        backend.set_current_key("k")
        backend.get_state(value).update(1)
        backend.get_list_state(elements).add("old")
        clock.advance(6)
        backend.get_list_state(elements).add("new")
        clock.advance(6)
        ((_, states),) = [pickle.loads(data) for data in backend.snapshot().values()]
        found = {name: rows[0][3] for name, (_, _, rows) in states.items()}
        assert found == (kept or {"value": (0, 1), "list": [(0, "old"), (6, "new")]})
        assert backend.entry_count() == 2  # the running state keeps these entries


@pytest.mark.parametrize("gains", [True, False], ids=["time to live added", "time to live removed"])
def test_time_to_live_can_be_added_and_removed_between_runs(gains: bool) -> None:
    clock = ManualClock(100)
    expiring: list[Any] = []
    for kind in (ValueStateDescriptor, ListStateDescriptor, MapStateDescriptor):
        descriptor = kind("s" + kind.__name__)
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(10).build())
        expiring.append(descriptor)
    lasting = [type(descriptor)(descriptor.name) for descriptor in expiring]
    before, after = (lasting, expiring) if gains else (expiring, lasting)
    backend = HashMapKeyedStateBackend(GROUPS, now=clock.current_processing_time)
    backend.set_current_key("k")
    value, elements, entries = map(backend.state, before)
    value.update(1)
    elements.add(2)
    entries.put("a", 3)
    restored = HashMapKeyedStateBackend(GROUPS, now=clock.current_processing_time)
    restored.restore([backend.snapshot()])
    restored.set_current_key("k")
    clock.advance(9)
    value, elements, entries = map(restored.state, after)
    clock.advance(9)  # the time to live starts at the restore
    assert (value.value(), list(elements.get()), entries.get("a")) == (1, [2], 3)
    clock.advance(1)
    assert (value.value() is None, not list(elements.get())) == (gains, gains)


@pytest.mark.parametrize("descriptor", [LIST, VALUE], ids=["requested after", "requested before"])
def test_a_state_of_another_kind_is_not_restored(descriptor: Any) -> None:
    backend = backend_of()
    backend.set_current_key("k")
    backend.get_map_state(MapStateDescriptor(descriptor.name)).put(1, 1)
    restored = backend_of()
    if descriptor is VALUE:
        restored.state(descriptor)
        with pytest.raises(
            StateError, match=r"'count' \(job.py:3\): state 'value' was a MapState.* restore before"
        ):
            restored.restore([backend.snapshot()])
    else:
        restored.restore([backend.snapshot()])
        with pytest.raises(StateError, match=r"state 'list' is registered as MapState.* ListState"):
            restored.state(descriptor)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "can't be read: it is empty"),
        (b"garbage", "can't be read"),
        (pickle.dumps((7, {})), "has format 7, but this version of opchain reads formats 1 and 2"),
        (pickle.dumps(5), "has format 5, but this version"),
    ],
)
def test_a_damaged_or_foreign_snapshot_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(StateError, match=message):
        backend_of().restore([{0: data}])


def test_the_error_names_a_value_that_cannot_be_pickled() -> None:
    backend = backend_of()
    backend.set_current_key("k")
    backend.get_state(VALUE).update(open)  # a built-in function is pickled by name
    assert backend.snapshot()
    backend.get_list_state(LIST).add(iter([]).__class__)
    backend.get_map_state(MAP).put("gen", (n for n in ()))
    with pytest.raises(StateError, match=r"state 'map' can't be saved: .*generator"):
        backend.snapshot()
