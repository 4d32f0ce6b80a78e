from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.state.keyed.keyed_backend import VOID

pytest.importorskip("rocksdict")


def test_an_empty_namespace_leaves_no_entries_on_disk(backend: Any) -> None:
    backend.table("panes", "w")["k"] = 1
    backend._tables["panes"].entries("w").write_back()
    del backend.table("panes", "w")["k"]
    backend.leave("panes", "w")
    assert list(backend._store.scan(b"", b"z")) == []
    assert list(backend._tables["panes"].spaces) == [VOID]


def test_keys_can_be_iterated_while_they_are_changed(backend: Any) -> None:
    panes = backend.table("panes")
    panes.update((number, number) for number in range(3))
    for key in backend._tables["panes"].keys_in(VOID):
        del panes[key]
    assert len(panes) == 0
    assert list(backend._tables["panes"].keys_in("nowhere")) == []
