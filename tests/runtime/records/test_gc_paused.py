"""gc_paused: garbage collection is disabled within the block."""

from __future__ import annotations

import gc

import pytest

from opchain.runtime.records.garbage_collection import gc_paused


def test_nested_gc_paused_blocks_enable_garbage_collection_at_the_end() -> None:
    assert gc.isenabled()
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_collection_is_enabled_after_an_error() -> None:
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()
