"""A snapshot with its changes restores the state, with the same contents and order."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
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
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keys.key_groups import key_group_range
from opchain.runtime.state.operator_snapshot import OperatorSnapshot, with_changes
from opchain.runtime.testing.operator_harness import ManualClock
from opchain.runtime.time import Duration

GROUPS = 8
VALUE: ValueStateDescriptor[Any] = ValueStateDescriptor("value")
LIST: ListStateDescriptor[Any] = ListStateDescriptor("list")
MAP: MapStateDescriptor[Any, Any] = MapStateDescriptor("map")
WINDOWED: ReducingStateDescriptor[int] = ReducingStateDescriptor("windowed", lambda a, b: a + b)


def backend_of(
    parallelism: int = 1, index: int = 0, clock: ManualClock | None = None
) -> HashMapKeyedStateBackend:
    backend = HashMapKeyedStateBackend(
        GROUPS,
        key_group_range(GROUPS, parallelism, index),
        now=(clock or ManualClock()).current_processing_time,
        where="'count' (job.py:3)",
    )
    backend.track_changes()
    return backend


def contents(backend: HashMapKeyedStateBackend) -> dict[str, dict[Any, list[Any]]]:
    """The contents of each namespace, in the order of keys."""
    found = {
        name: {
            repr(namespace): [(repr(key), kept) for key, kept in entries.items()]
            for namespace, entries in table.spaces.items()
            if entries
        }
        for name, table in backend._tables.items()
    }
    return {name: spaces for name, spaces in found.items() if spaces}


def restored(
    chain: list[dict[int, bytes]], *, clock: ManualClock | None = None
) -> HashMapKeyedStateBackend:
    backend = backend_of(clock=clock)
    for part in chain:
        backend.restore([part])
    return backend


KEYS = st.one_of(st.integers(0, 7), st.sampled_from(["a", True, 1.0, -0.0, (1, "x")]))
VALUES = st.integers(0, 9)
OPERATIONS = st.one_of(
    st.tuples(st.just("value"), KEYS, st.none() | VALUES),
    st.tuples(st.just("add"), KEYS, VALUES),
    st.tuples(st.just("list"), KEYS, st.lists(VALUES, max_size=2)),
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("remove"), KEYS, VALUES),
    st.tuples(st.just("window"), KEYS, st.tuples(st.integers(0, 3), st.none() | VALUES)),
    st.tuples(st.just("merge"), KEYS, st.tuples(st.integers(0, 3), st.integers(0, 3))),
    st.tuples(st.just("direct"), KEYS, st.tuples(st.integers(0, 2), VALUES)),
    st.tuples(st.just("drop"), KEYS, st.integers(0, 2)),
    st.tuples(st.just("expiring"), KEYS, VALUES),
    st.tuples(st.just("read"), KEYS, VALUES),
    st.tuples(st.just("tick"), KEYS, st.integers(1, 30)),
)
EPOCHS = st.lists(st.lists(OPERATIONS, max_size=12), min_size=1, max_size=5)


def expiring() -> ListStateDescriptor[Any]:
    descriptor: ListStateDescriptor[Any] = ListStateDescriptor("expiring")
    ttl = StateTtlConfig.new_builder(Duration.of_millis(50)).cleanup_incrementally(2, True).build()
    descriptor.enable_time_to_live(ttl)
    return descriptor


class Job:
    """An operator that applies given operations to its state."""

    def __init__(self, clock: ManualClock, backend: HashMapKeyedStateBackend) -> None:
        self.clock, self.backend = clock, backend
        self.expiring = backend.state(expiring())
        self.windowed = backend.namespaced_state(WINDOWED)

    def run(self, what: str, key: Any, argument: Any) -> None:  # noqa: C901 - a table of operations
        backend = self.backend
        if what in ("direct", "drop"):
            self.run_directly(what, key, argument)
            return
        backend.set_current_key(key)
        if what == "value":
            backend.get_state(VALUE).update(argument)
        elif what == "add":
            backend.get_list_state(LIST).add(argument)
        elif what == "list":
            backend.get_list_state(LIST).update(argument)
        elif what == "put":
            backend.get_map_state(MAP).put(argument, argument)
        elif what == "remove":
            backend.get_map_state(MAP).remove(argument)
        elif what == "window":
            namespace, value = argument
            self.windowed.set_current_namespace(namespace)
            self.windowed.add(value)
        elif what == "merge":
            target, source = argument
            if target != source:
                self.windowed.merge_namespaces(target, [source])
        elif what == "expiring":
            self.expiring.add(argument)
        elif what == "read":
            self.expiring.get()
        elif what == "tick":
            self.clock.advance_to(self.clock.current_processing_time() + argument)

    def run_directly(self, what: str, key: Any, argument: Any) -> None:
        backend = self.backend
        backend.clear_current_key()
        if what == "drop":
            backend.table("panes", argument)
            backend.drop("panes", argument)
            return
        pane, value = argument
        backend.touch([key])
        backend.table("panes", pane)[backend.identity.of(key)] = value

    def changes(self) -> dict[int, bytes]:
        self.backend.clear_current_key()
        self.backend.table("panes")
        self.backend.write_to("panes", range(3))
        return self.backend.snapshot_changes()


def run_epochs(epochs: list[Any]) -> tuple[Job, list[dict[int, bytes]]]:
    clock = ManualClock()
    job = Job(clock, backend_of(clock=clock))
    chain = []
    for epoch in epochs:
        for operation in epoch:
            job.run(*operation)
        chain.append(job.changes() if chain else job.backend.snapshot())
    return job, chain


@given(EPOCHS)
@settings(max_examples=100)
def test_a_snapshot_and_its_changes_restore_the_state(epochs: list[Any]) -> None:
    job, chain = run_epochs(epochs)
    assert contents(restored(chain)) == contents(job.backend)


@given(EPOCHS)
def test_bytes_of_changes_may_be_appended_to_those_of_the_snapshot(epochs: list[Any]) -> None:
    job, chain = run_epochs(epochs)
    parts = [
        OperatorSnapshot(keyed=part, is_changes=number > 0) for number, part in enumerate(chain)
    ]
    backend = backend_of()
    backend.restore([with_changes(parts).keyed])
    assert contents(backend) == contents(job.backend)


@given(EPOCHS)
def test_changes_are_written_with_the_same_bytes_each_time(epochs: list[Any]) -> None:
    assert run_epochs(epochs)[1] == run_epochs(epochs)[1]


@given(EPOCHS, st.integers(1, 8))
def test_changes_are_redistributed_by_key_group(epochs: list[Any], parallelism: int) -> None:
    job, chain = run_epochs(epochs)
    found: dict[tuple[str, str], list[Any]] = {}
    for index in range(parallelism):
        backend = backend_of(parallelism, index)
        for part in chain:
            backend.restore([part])
        for name, spaces in contents(backend).items():
            for namespace, entries in spaces.items():
                found.setdefault((name, namespace), []).extend(entries)
    expected = {
        (name, namespace): sorted(entries, key=repr)
        for name, spaces in contents(job.backend).items()
        for namespace, entries in spaces.items()
    }
    assert {place: sorted(entries, key=repr) for place, entries in found.items()} == expected


@given(EPOCHS, EPOCHS)
def test_changes_are_tracked_after_a_restore(before: list[Any], after: list[Any]) -> None:
    _, chain = run_epochs(before)
    clock = ManualClock(10**6)
    job = Job(clock, restored(chain, clock=clock))
    for epoch in after:
        for operation in epoch:
            job.run(*operation)
        chain.append(job.changes())
    assert contents(restored(chain)) == contents(job.backend)


def test_changes_contain_only_the_touched_keys() -> None:
    backend = backend_of()
    for key in range(1000):
        backend.set_current_key(key)
        backend.get_state(VALUE).update(key)
    whole = sum(map(len, backend.snapshot().values()))
    assert backend.snapshot_changes() == {}
    backend.set_current_key(7)
    backend.get_state(VALUE).update(8)
    ((_, data),) = backend.snapshot_changes().items()
    assert len(data) < 150 < whole
    assert pickle.loads(data)[2] == [7]


def test_a_key_that_is_removed_and_added_again_is_last() -> None:
    backend = backend_of()
    for key in "abc":
        backend.set_current_key(key)
        backend.get_state(VALUE).update(1)
    chain = [backend.snapshot()]
    for key, value in (("b", 2), ("a", None), ("a", 3)):
        backend.set_current_key(key)
        backend.get_state(VALUE).update(value)
    chain.append(backend.snapshot_changes())
    assert list(restored(chain).keys("value")) == ["b", "c", "a"]


def test_dropping_a_namespace_with_few_keys_writes_only_their_key_groups() -> None:
    backend = backend_of()
    backend.touch(["a"])
    backend.table("panes", 1)["a"] = 5
    chain = [backend.snapshot()]
    backend.drop("panes", 1)
    chain.append(backend.snapshot_changes())
    assert [len(part) for part in chain] == [1, 1]
    assert contents(restored(chain)) == {}
    assert restored(chain).namespaces("panes") == []


def test_changes_are_tracked_if_requested_right_after_a_restore() -> None:
    backend = backend_of()
    backend.set_current_key("a")
    backend.get_state(VALUE).update(1)
    chain = [backend.snapshot()]
    again = HashMapKeyedStateBackend(GROUPS)
    again.restore(chain)
    assert not again.tracks_changes
    again.track_changes()
    assert again.tracks_changes
    again.set_current_key("b")
    again.get_state(VALUE).update(2)
    chain.append(again.snapshot_changes())
    assert contents(restored(chain)) == contents(again)


def test_updates_before_track_changes_require_a_full_snapshot() -> None:
    backend = HashMapKeyedStateBackend(GROUPS)
    backend.restore([backend_of().snapshot()])
    backend.snapshot()
    backend.set_current_key("a")
    backend.get_state(VALUE).update(1)
    backend.track_changes()
    assert not backend.tracks_changes


def test_snapshot_changes_requires_a_snapshot_before() -> None:
    backend = backend_of()
    assert not backend.tracks_changes
    with pytest.raises(StateError, match="take a full snapshot first"):
        backend.snapshot_changes()


def test_a_backend_that_does_not_track_changes_records_no_keys() -> None:
    backend = HashMapKeyedStateBackend(GROUPS)
    backend.touch(["a"])
    backend.set_current_key("b")
    assert backend.touched_keys() == {}
    assert not backend.tracks_changes
    with pytest.raises(StateError, match="not tracked"):
        backend.snapshot_changes()


def test_a_new_time_to_live_requires_a_full_snapshot() -> None:
    backend = backend_of()
    backend.set_current_key(1)
    backend.get_list_state(ListStateDescriptor("expiring")).add(5)
    chain = [backend.snapshot()]
    again = restored(chain)
    assert again.tracks_changes
    again.state(expiring())
    assert not again.tracks_changes


def test_clear_all_requires_a_full_snapshot() -> None:
    backend = backend_of()
    backend.snapshot()
    backend.clear_all()
    assert not backend.tracks_changes


def test_the_error_names_a_value_that_cannot_be_pickled() -> None:
    backend = backend_of()
    backend.snapshot()
    backend.set_current_key("k")
    backend.get_state(VALUE).update(iter([]) and (value for value in ()))
    with pytest.raises(StateError, match=r"state 'value' can't be saved: <generator"):
        backend.snapshot_changes()


def test_the_void_namespace_is_not_tracked_as_a_pair() -> None:
    backend = backend_of()
    backend.set_current_key("k")
    backend.table("panes", VOID)
    assert backend._tables["panes"].touched is not None
    assert backend._tables["panes"].touched.pairs == {}
