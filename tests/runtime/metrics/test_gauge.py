from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.metrics.metric_types import Gauge, GaugeFailure, GaugeValue


@pytest.mark.parametrize("value", [7, -2.5, "text", True, None, 10**30])
def test_plain_values_are_reported_unchanged(value: Any) -> None:
    gauge = Gauge(lambda: value)
    assert gauge.get_value() is value
    assert pickle.loads(pickle.dumps(gauge.snapshot())) == GaugeValue(value)


def test_other_values_are_reported_by_their_truncated_repr() -> None:
    assert Gauge(lambda: [1, 2]).snapshot() == GaugeValue("[1, 2]")
    text = Gauge(lambda: list(range(1000))).snapshot().value
    assert isinstance(text, str)
    assert len(text) == 80


def test_a_value_of_a_subclass_of_a_plain_type_is_reported_by_its_repr() -> None:
    class Local(int):
        def __repr__(self) -> str:
            return "local"

    assert Gauge(lambda: Local(3)).snapshot() == GaugeValue("local")


def test_an_error_of_a_gauge_is_reported_as_its_value() -> None:
    def fail() -> int:
        raise LookupError("gone")

    snapshot = Gauge(fail).snapshot()
    assert snapshot == GaugeValue(GaugeFailure("LookupError('gone')"))
    with pytest.raises(LookupError):
        Gauge(fail).get_value()


def test_a_keyboard_interrupt_in_a_gauge_is_raised() -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Gauge(interrupt).snapshot()
