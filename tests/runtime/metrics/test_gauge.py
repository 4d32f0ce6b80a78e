from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.metrics.metric_types import Gauge, GaugeFailure, GaugeValue


@pytest.mark.parametrize("value", [7, -2.5, "text", True, None, 10**30])
def test_plain_values_are_reported_as_they_are(value: Any) -> None:
    gauge = Gauge(lambda: value)
    assert gauge.get_value() is value
    assert pickle.loads(pickle.dumps(gauge.snapshot())) == GaugeValue(value)


def test_other_values_are_reported_by_their_repr_cut_short() -> None:
    assert Gauge(lambda: [1, 2]).snapshot() == GaugeValue("[1, 2]")
    text = Gauge(lambda: list(range(1000))).snapshot().value
    assert isinstance(text, str)
    assert len(text) == 80


def test_a_subclass_of_a_plain_type_may_not_pickle_and_is_reported_by_its_repr() -> None:
    class Local(int):
        def __repr__(self) -> str:
            return "local"

    assert Gauge(lambda: Local(3)).snapshot() == GaugeValue("local")


def test_a_gauge_that_fails_shows_how_and_hurts_nobody() -> None:
    def fail() -> int:
        raise LookupError("gone")

    snapshot = Gauge(fail).snapshot()
    assert snapshot == GaugeValue(GaugeFailure("LookupError('gone')"))
    with pytest.raises(LookupError):
        Gauge(fail).get_value()


def test_a_gauge_that_ends_the_process_is_not_held_up() -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Gauge(interrupt).snapshot()
