from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.input_log import InputRestoredError, SavedInput, save_input

if TYPE_CHECKING:
    from pathlib import Path


def test_saved_input_is_restored_once_after_a_new_plan_overwrote_it(tmp_path: Path) -> None:
    storage = checkpoint_storage(str(tmp_path))
    for batch in range(5):
        storage.write(f"spark/offsets/{batch}", b"old %d" % batch)
        storage.write(f"spark/offsets/.{batch}.crc", b"?")
    save_input(storage, 2)
    save_input(storage, 2)  # interrupted, and repeated
    assert storage.children("spark/offsets") == [".0.crc", ".1.crc", ".2.crc", "0", "1", "2"]
    kept = SavedInput(storage)
    kept.require(2)
    for batch in (3, 4):
        storage.write(f"spark/offsets/{batch}", b"new")
        storage.write(f"spark/offsets/.{batch}.crc", b"?")
        with pytest.raises(InputRestoredError, match=f"micro-batch {batch} has its input restored"):
            kept.require(batch)
        assert storage.read(f"spark/offsets/{batch}") == b"old %d" % batch
        assert f".{batch}.crc" not in storage.children("spark/offsets")
        kept.require(batch)
        kept.forget(batch)
        kept.require(batch)
    storage.write("spark/offsets/5", b"new")
    kept.require(5)
    assert storage.names("replaced-offsets") == []
