"""The disk backend gives the results of the hash map backend; conftest runs the tests of the latter for both."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.datastream.state import StateTtlConfig
from opchain.runtime.functions.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.disk import disk_backend as disk_snapshots
from opchain.runtime.state.disk import disk_entries
from opchain.runtime.state.disk.disk_backend import DiskKeyedStateBackend
from opchain.runtime.state.disk.rocksdb import RocksDBTables
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keys.key_groups import key_group_range
from opchain.runtime.state.operator_snapshot import OperatorSnapshot, with_changes
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("rocksdict")

GROUPS = 8
VALUE: ValueStateDescriptor[Any] = ValueStateDescriptor("value")
LIST: ListStateDescriptor[Any] = ListStateDescriptor("list")
MAP: MapStateDescriptor[Any, Any] = MapStateDescriptor("map")
WINDOWED: ReducingStateDescriptor[int] = ReducingStateDescriptor("windowed", lambda a, b: a + b)
EXPIRING: ValueStateDescriptor[int] = ValueStateDescriptor("expiring")
EXPIRING.enable_time_to_live(StateTtlConfig.new_builder(3).build())

KEYS = st.one_of(st.integers(0, 7), st.sampled_from(["a", True, 1.0, -0.0, (1, "x"), (1, 2.0)]))
VALUES = st.integers(0, 9)
OPERATIONS = st.one_of(
    st.tuples(st.just("value"), KEYS, st.none() | VALUES),
    st.tuples(st.just("add"), KEYS, VALUES),
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("remove"), KEYS, VALUES),
    st.tuples(st.just("window"), KEYS, st.tuples(st.integers(0, 3), st.none() | VALUES)),
    st.tuples(st.just("merge"), KEYS, st.tuples(st.integers(0, 3), st.integers(0, 3))),
    st.tuples(st.just("direct"), KEYS, st.tuples(st.integers(0, 2), VALUES)),
    st.tuples(st.just("drop"), KEYS, st.integers(0, 2)),
    st.tuples(st.just("expiring"), KEYS, VALUES),
)
EPOCHS = st.lists(st.lists(OPERATIONS, max_size=12), min_size=1, max_size=4)


class Kinds:
    """Creates backends of both kinds, and closes them."""

    def __init__(self, closes: ExitStack, folder: str) -> None:
        self.closes = closes
        self.folder = folder
        self.clock = ManualClock()

    def backend(self, kind: str, parallelism: int = 1, index: int = 0) -> Any:
        options: dict[str, Any] = {
            "now": self.clock.current_processing_time,
            "where": "'count' (job.py:3)",
        }
        groups = key_group_range(GROUPS, parallelism, index)
        made: Any
        if kind == "rocksdb":
            made = DiskKeyedStateBackend(
                GROUPS, groups, **options, store=RocksDBTables((self.folder,), "the operator")
            )
        else:
            made = HashMapKeyedStateBackend(GROUPS, groups, **options)
        made.track_changes()
        self.closes.enter_context(closing(made))
        return made


def work(backend: Any, operation: tuple[str, Any, Any]) -> Any:
    """Applies an operation to a key; returns its results."""
    name, key, argument = operation
    backend.set_current_key(key)
    if name == "value":
        backend.state(VALUE).update(argument)
    elif name == "add":
        backend.state(LIST).add(argument)
    elif name == "put":
        backend.state(MAP).put(argument, argument)
    elif name == "remove":
        backend.state(MAP).remove(argument)
    elif name == "window":
        backend.get_partitioned_state(argument[0], WINDOWED).add(argument[1])
    elif name == "merge":
        target, source = argument
        if target != source:
            backend.get_partitioned_state(0, WINDOWED).merge_namespaces(target, [source])
    elif name == "direct":
        backend.table("panes", argument[0]).setdefault(backend.state_key, []).append(argument[1])
    elif name == "drop":
        backend.table("panes", argument)
        backend.drop("panes", argument)
    else:
        backend.state(EXPIRING).update(argument)
    return (
        backend.state(VALUE).value(),
        backend.state(LIST).get(),
        list(backend.state(MAP).items()),
        backend.state(EXPIRING).value(),
        backend.entry_count(),
    )


def contents(backend: Any) -> dict[str, dict[Any, list[Any]]]:
    found = {
        name: {
            repr(namespace): [(repr(key), kept) for key, kept in entries.items()]
            for namespace, entries in table.spaces.items()
            if entries
        }
        for name, table in backend._tables.items()
    }
    return {name: spaces for name, spaces in found.items() if spaces}


@pytest.mark.parametrize("cached", [1, 4096])
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(epochs=EPOCHS, data=st.data())
def test_both_backends_agree_and_restore_each_others_snapshots(
    cached: int, epochs: list[Any], data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_entries, "_CACHE_ENTRIES", cached)
    monkeypatch.setattr(disk_entries, "_CHUNK", 2)
    monkeypatch.setattr(disk_snapshots, "_PART", 3)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as closes:
        kinds = Kinds(closes, folder)
        running = {kind: kinds.backend(kind) for kind in ("hashmap", "rocksdb")}
        chains: dict[str, list[dict[int, bytes]]] = {kind: [] for kind in running}
        for epoch in epochs:
            for operation in epoch:
                seen = [work(backend, operation) for backend in running.values()]
                assert seen[0] == seen[1]
            kinds.clock.advance(1)
            whole = not chains["hashmap"] or data.draw(st.booleans())
            for kind, backend in running.items():
                if whole:
                    chains[kind] = [backend.snapshot()]
                else:
                    chains[kind].append(backend.snapshot_changes())
            if data.draw(st.booleans()):  # continues with the other backend
                for kind, other in (("hashmap", "rocksdb"), ("rocksdb", "hashmap")):
                    running[kind] = kinds.backend(kind)
                    running[kind].restore([joined(chains[other])])
                chains = {"hashmap": chains["rocksdb"], "rocksdb": chains["hashmap"]}
            assert contents(running["hashmap"]) == contents(running["rocksdb"])
        parts = [[kinds.backend(kind, 2, index) for index in range(2)] for kind in running]
        for (kind, chain), found in zip(chains.items(), reversed(parts), strict=True):
            for part in found:
                part.restore([joined(chain)])
            assert kind
        for one, other in zip(*parts, strict=True):
            assert contents(one) == contents(other)


def joined(chain: list[dict[int, bytes]]) -> dict[int, bytes]:
    first, *rest = chain
    parts = [OperatorSnapshot(first), *(OperatorSnapshot(part, is_changes=True) for part in rest)]
    return with_changes(parts).keyed


def test_no_file_is_left_on_disk_after_close(tmp_path: Path) -> None:
    backend = DiskKeyedStateBackend(store=RocksDBTables((str(tmp_path),), "the operator"))
    backend.close()
    assert list(tmp_path.iterdir()) == []


def test_a_restore_leaves_none_of_the_previous_contents(tmp_path: Path) -> None:
    in_memory = HashMapKeyedStateBackend()
    for number in range(10):
        in_memory.set_current_key(number)
        in_memory.get_state(VALUE).update(number)
    with closing(
        DiskKeyedStateBackend(store=RocksDBTables((str(tmp_path),), "the operator"))
    ) as backend:
        for number in reversed(range(10)):
            backend.set_current_key(number)
            backend.get_state(VALUE).update("old")
        backend.clear_all()
        backend.restore([in_memory.snapshot()])
        assert list(backend.keys("value")) == list(range(10))
        assert contents(backend) == contents(in_memory)
