from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.checkpoint.coordinator import lineage_of
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.checkpoint.storage import CheckpointStorage


def test_each_checkpoint_directory_keeps_a_lineage_of_its_own(tmp_path: Path) -> None:
    here = checkpoint_storage(str(tmp_path / "here"))
    there = checkpoint_storage(str(tmp_path / "there"))
    lineage = lineage_of(here)
    assert lineage_of(here) == lineage_of(checkpoint_storage(here.url)) == lineage
    assert lineage_of(there) != lineage


def test_two_concurrent_callers_get_the_same_lineage(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[str] = []
    publish = type(storage).publish

    def late(self: Any, name: str, data: bytes) -> None:
        monkeypatch.undo()
        first.append(lineage_of(storage))
        publish(self, name, data)

    monkeypatch.setattr(type(storage), "publish", late)
    assert [lineage_of(storage)] == first


@pytest.mark.parametrize("content", [b"", b"x", b"../../x", b"\xff", b"0" * 31, b"0" * 32 + b"\n"])
def test_a_damaged_lineage_file_is_an_error(any_storage: CheckpointStorage, content: bytes) -> None:
    any_storage.write("lineage", content)
    with pytest.raises(CorruptCheckpointError, match="32 hexadecimal digits are expected: restore"):
        lineage_of(any_storage)
