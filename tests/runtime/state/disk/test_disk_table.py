from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.state.disk.disk_backend import DiskKeyedStateBackend
from opchain.runtime.state.disk.rocksdb import RocksDBTables
from opchain.runtime.state.keyed.keyed_backend import VOID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("rocksdict")


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Any]:
    with closing(
        DiskKeyedStateBackend(
            store=RocksDBTables((str(tmp_path),), "the operator"), where="'x' (a.py:1)"
        )
    ) as made:
        made.set_current_key("k")
        yield made


def test_a_namespace_that_is_left_leaves_nothing_on_disk(backend: Any) -> None:
    backend.table("panes", "w")["k"] = 1
    backend._tables["panes"].entries("w").write_back()
    del backend.table("panes", "w")["k"]
    backend.leave("panes", "w")
    assert list(backend._store.scan(b"", b"z")) == []
    assert list(backend._tables["panes"].spaces) == [VOID]


def test_keys_can_be_gone_over_while_they_change(backend: Any) -> None:
    panes = backend.table("panes")
    panes.update((number, number) for number in range(3))
    for key in backend._tables["panes"].keys_in(VOID):
        del panes[key]
    assert len(panes) == 0
    assert list(backend._tables["panes"].keys_in("nowhere")) == []
