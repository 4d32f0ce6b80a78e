"""The collector is away for as long as it is asked to be."""

from __future__ import annotations

import gc

import pytest

from opchain.runtime.records.garbage_collection import collector_paused


def test_it_comes_back() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_comes_back_after_an_error() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()
