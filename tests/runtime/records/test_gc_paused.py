"""The collector is away for as long as it is asked to be."""

from __future__ import annotations

import gc

import pytest

from opchain.runtime.records.garbage_collection import gc_paused


def test_it_comes_back() -> None:
    assert gc.isenabled()
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_comes_back_after_an_error() -> None:
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()
