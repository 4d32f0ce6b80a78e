from __future__ import annotations

import pickle

from opchain.runtime.metrics.metric_types import Counter


def test_a_counter_is_incremented_and_decremented() -> None:
    counter = Counter()
    counter.inc()
    counter.inc(5)
    counter.dec()
    counter.dec(3)
    assert counter.get_count() == counter.snapshot() == 2


def test_a_counter_may_be_negative() -> None:
    counter = Counter()
    counter.dec(4)
    assert counter.get_count() == -4


def test_a_snapshot_does_not_change_with_its_counter() -> None:
    counter = Counter()
    counter.inc()
    snapshot = pickle.loads(pickle.dumps(counter.snapshot()))
    counter.inc()
    assert snapshot == 1
