from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.records.garbage_collection import (
    CONTAINERS,
    freeze_imports,
    gc_relaxed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_gc_relaxed_raises_the_threshold_and_restores_it() -> None:
    gc.set_threshold(700, 11, 12)
    with gc_relaxed():
        assert gc.get_threshold()[:2] == (CONTAINERS, 11)
        with gc_relaxed():
            assert gc.get_threshold()[0] == CONTAINERS
        assert gc.get_threshold()[0] == CONTAINERS
    assert gc.get_threshold()[:2] == (700, 11)


def test_the_threshold_is_restored_after_an_error() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(KeyError), gc_relaxed():
        raise KeyError
    assert gc.get_threshold()[0] == 700


@pytest.mark.parametrize("threshold", [0, CONTAINERS, 2 * CONTAINERS])
def test_a_threshold_of_0_or_an_already_high_one_is_not_changed(threshold: int) -> None:
    gc.set_threshold(threshold, 10, 10)
    with gc_relaxed():
        assert gc.get_threshold()[0] == threshold
    assert gc.get_threshold()[0] == threshold


def test_a_threshold_that_the_user_sets_in_the_block_is_kept() -> None:
    gc.set_threshold(700, 10, 10)
    with gc_relaxed():
        gc.set_threshold(5000, 10, 10)
    assert gc.get_threshold()[0] == 5000


def test_garbage_in_cycles_is_still_collected() -> None:
    collected = []
    watch = lambda phase, info: collected.append(phase)  # noqa: E731
    with gc_relaxed():
        gc.callbacks.append(watch)
        try:
            kept = [[] for _ in range(3 * CONTAINERS)]
        finally:
            gc.callbacks.remove(watch)
    assert kept
    assert collected


def test_existing_objects_are_frozen_once() -> None:
    freeze_imports.cache_clear()
    gc.unfreeze()
    freeze_imports()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    later = [[number] for number in range(1000)]
    freeze_imports()
    assert gc.get_freeze_count() <= frozen
    assert gc.is_tracked(later[0])
    gc.unfreeze()
