from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.storage import OverlayStorage, checkpoint_storage

if TYPE_CHECKING:
    from pathlib import Path


def test_overlay_storage_reads_the_lower_storage_and_writes_to_the_upper(tmp_path: Path) -> None:
    below = checkpoint_storage(str(tmp_path))
    below.write("a/one", b"1")
    below.write("a/two", b"2")
    storage = OverlayStorage(below)
    storage.write("a/two", b"new")
    storage.publish("a/b/three", b"3")
    storage.delete("a/one")
    assert storage.names() == ["a/b/three", "a/two"]
    assert storage.names("a/b") == ["a/b/three"]
    assert storage.children("a") == ["b", "two"]
    assert [storage.read(name) for name in storage.names()] == [b"3", b"new"]
    assert storage.get(storage.put("a/four", b"4")) == b"4"
    with pytest.raises(FileNotFoundError):
        storage.read("a/one")
    with pytest.raises(FileExistsError):
        storage.publish("a/two", b"again")
    storage.write("a/one", b"back")
    assert storage.read("a/one") == b"back"
    assert below.names() == ["a/one", "a/two"]
    assert (below.read("a/one"), below.read("a/two")) == (b"1", b"2")
