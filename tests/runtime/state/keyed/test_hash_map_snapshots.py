"""Operations of a backend on all tables; test_keyed_snapshot and test_keyed_changes test the contents."""

from __future__ import annotations

import gc

import pytest

from opchain.runtime.functions.state_descriptors import ValueStateDescriptor
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keys.key_groups import KeyGroupRange, key_group

VALUE: ValueStateDescriptor[object] = ValueStateDescriptor("value")


@pytest.fixture
def backend() -> HashMapKeyedStateBackend:
    found = HashMapKeyedStateBackend(16, KeyGroupRange(0, 15))
    found.track_changes()
    return found


def test_touched_keys_are_ordered_and_reset_by_a_snapshot(
    backend: HashMapKeyedStateBackend,
) -> None:
    backend.touch(["b", 1, True])
    backend.set_current_key("a")
    assert [repr(key) for key in backend.touched_keys()] == ["'b'", "1", "True", "'a'"]
    backend.snapshot()
    assert backend.touched_keys() == {}


def test_key_groups_of_many_keys_are_all_key_groups(
    backend: HashMapKeyedStateBackend,
) -> None:
    assert list(backend.key_groups_of(["a", "b"])) == [key_group("a", 16), key_group("b", 16)]
    assert backend.key_groups_of(range(16)) == KeyGroupRange(0, 15)


def test_garbage_collection_is_paused_while_state_is_written(
    backend: HashMapKeyedStateBackend,
) -> None:
    seen = []

    class Watching:
        def __reduce__(self) -> tuple[type, tuple[()]]:
            seen.append(gc.isenabled())
            return object, ()

    backend.set_current_key("a")
    backend.get_state(VALUE).update(Watching())
    chain = [backend.snapshot()]
    backend.touch(["a"])
    chain.append(backend.snapshot_changes())
    assert seen == [False, False]
    assert gc.isenabled()
    assert [list(part) for part in chain] == [[key_group("a", 16)]] * 2


def test_a_backend_that_does_not_track_changes_drops_namespaces_too() -> None:
    backend = HashMapKeyedStateBackend(16)
    backend.table("panes", 1)["a"] = 5
    backend.write_to("panes", [1])
    backend.drop("panes", 1)
    assert backend.namespaces("panes") == []
    assert backend.entry_count() == 0
