"""Snapshots of the disk backend consist of several frames; test_disk_backend tests their contents."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from opchain.runtime.state.disk import disk_backend as disk_snapshots
from opchain.runtime.state.disk.disk_backend import DiskKeyedStateBackend
from opchain.runtime.state.disk.rocksdb import RocksDBTables
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("rocksdict")

VALUE: ValueStateDescriptor[Any] = ValueStateDescriptor("value")


def test_a_key_group_in_several_frames_is_restored_by_both_backends(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_snapshots, "_PART", 7)
    numbers = [number * 7 % 101 for number in range(101)]
    for number in numbers:
        backend.set_current_key(number)
        backend.get_state(VALUE).update(number)
    snapshot = backend.snapshot()
    in_memory = HashMapKeyedStateBackend()
    in_memory.restore([snapshot])
    assert list(in_memory.keys("value")) == numbers
    with closing(
        DiskKeyedStateBackend(store=RocksDBTables((str(tmp_path),), "the operator"))
    ) as on_disk:
        on_disk.restore([snapshot])
        assert list(on_disk.keys("value")) == numbers
        on_disk.set_current_key("new")
        on_disk.get_state(VALUE).update(1)
        assert list(on_disk.keys("value")) == [*numbers, "new"]


def test_a_state_of_another_kind_is_refused(backend: Any) -> None:
    in_memory = HashMapKeyedStateBackend()
    in_memory.set_current_key("k")
    in_memory.get_state(VALUE).update(1)
    snapshot = in_memory.snapshot()
    backend.state(ListStateDescriptor("value"))
    with pytest.raises(StateError, match="state 'value' was a ValueStateDescriptor"):
        backend.restore([snapshot])
