from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.metric_group import MetricGroup
from opchain.runtime.metrics.metric_types import (
    Counter,
    Distribution,
    DistributionValue,
    GaugeValue,
    Meter,
)


def group() -> MetricGroup:
    return MetricGroup(("host", "job", "parse", "0"), {"<job_name>": "job"})


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("counter", Counter),
        ("meter", Meter),
        ("distribution", Distribution),
        ("histogram", Histogram),
    ],
)
def test_a_name_returns_the_same_metric_each_time(method: str, kind: type) -> None:
    root = group()
    metric = getattr(root, method)("words")
    assert type(metric) is kind
    assert getattr(root, method)("words") is metric
    assert getattr(root, method)("others") is not metric
    assert getattr(root.add_group("sub"), method)("words") is not metric


def test_add_group_returns_the_same_group_for_the_same_name() -> None:
    root = group()
    root.add_group("a").add_group("b").counter("n").inc()
    root.add_group("a").add_group("b").counter("n").inc()
    assert root.snapshot() == {"a.b.n": 2}


def test_the_snapshot_has_all_metrics_below_the_operator() -> None:
    root = group()
    root.counter("n").inc(3)
    root.add_group("sub").distribution("d").update(5)
    root.gauge("g", lambda: 8)
    assert root.snapshot() == {
        "n": 3,
        "sub.d": DistributionValue(1, 5, 5, 5),
        "g": GaugeValue(8),
    }


def test_add_group_with_key_and_value_adds_two_groups_and_a_variable() -> None:
    root = group()
    below = root.add_group("country", "it").add_group("city", "Rome")
    assert below.get_scope_components() == (
        "host",
        "job",
        "parse",
        "0",
        "country",
        "it",
        "city",
        "Rome",
    )
    assert below.get_metric_identifier("n") == "host.job.parse.0.country.it.city.Rome.n"
    assert below.get_all_variables() == {
        "<job_name>": "job",
        "<country>": "it",
        "<city>": "Rome",
    }
    assert root.get_all_variables() == {"<job_name>": "job"}
    assert root.get_scope_components() == ("host", "job", "parse", "0")


def test_get_all_variables_returns_a_copy() -> None:
    root = group()
    root.get_all_variables().clear()
    assert root.get_all_variables() == {"<job_name>": "job"}


def test_a_gauge_registered_again_uses_the_new_function() -> None:
    root = group()
    root.gauge("g", lambda: 1)
    root.gauge("g", lambda: 2)
    assert root.snapshot() == {"g": GaugeValue(2)}


def test_an_invalid_span_of_a_meter_is_refused() -> None:
    with pytest.raises(ValueError, match="it must be at least 1"):
        group().meter("m", 0)


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (
            lambda g: g.counter("x"),
            lambda g: g.meter("x"),
            "as a meter but is already registered as a counter",
        ),
        (
            lambda g: g.gauge("x", int),
            lambda g: g.counter("x"),
            "as a counter but is already registered as a gauge",
        ),
        (
            lambda g: g.histogram("x"),
            lambda g: g.gauge("x", int),
            "as a gauge but is already registered as a histogram",
        ),
    ],
)
def test_a_name_cannot_have_metrics_of_two_kinds(first: Any, second: Any, found: str) -> None:
    root = group()
    first(root)
    with pytest.raises(TypeError, match=f"'host.job.parse.0.x' was requested {found}"):
        second(root)


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.counter(3),
        lambda g: g.add_group(None),
        lambda g: g.add_group("key", 3),
    ],
)
def test_names_must_be_strings(call: Any) -> None:
    with pytest.raises(TypeError, match="the name of a metric or group must be a str, not"):
        call(group())


def test_a_gauge_requires_a_function() -> None:
    with pytest.raises(TypeError, match="gauge 'g': expected a function without arguments, not 3"):
        group().gauge("g", 3)  # type: ignore[arg-type]
