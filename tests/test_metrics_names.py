"""`opchain.metrics` has PyFlink's names with PyFlink's parameters, and executors can load it."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest

import opchain.metrics

PYFLINK = {
    "MetricGroup": {
        "add_group": [("name", True), ("extra", False)],
        "counter": [("name", True)],
        "gauge": [("name", True), ("obj", True)],
        "meter": [("name", True), ("time_span_in_seconds", False)],
        "distribution": [("name", True)],
    },
    "Metric": {},
    "Counter": {"inc": [("n", False)], "dec": [("n", False)], "get_count": []},
    "Meter": {"mark_event": [("value", False)], "get_count": []},
    "Distribution": {"update": [("value", True)]},
}
"""The methods of each class, and of each parameter whether it is required."""

ACCUMULATORS = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
]
"""Java's classes that users see."""

MODULES = ["opchain.metrics", "opchain.metrics.metricbase", "opchain.common.accumulators"]


@pytest.mark.parametrize("module", MODULES[:2])
@pytest.mark.parametrize("name", PYFLINK)
def test_metrics_have_pyflinks_names_and_parameters(module: str, name: str) -> None:
    owner: Any = getattr(importlib.import_module(module), name)
    for method, parameters in PYFLINK[name].items():
        _, *ours = inspect.signature(getattr(owner, method)).parameters.values()
        assert [(item.name, item.default is item.empty) for item in ours] == parameters


def test_a_meter_has_pyflinks_default_time_span() -> None:
    signature = inspect.signature(opchain.metrics.MetricGroup.meter)
    assert signature.parameters["time_span_in_seconds"].default == 60


def test_accumulators_have_the_names_of_flinks_java_classes() -> None:
    assert importlib.import_module("opchain.common.accumulators").__all__ == ACCUMULATORS


@pytest.mark.parametrize("module", MODULES)
def test_every_name_in_all_of_a_metrics_module_exists(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []
    assert sorted(loaded.__all__) == loaded.__all__


@pytest.mark.parametrize("module", MODULES)
def test_metrics_need_only_the_standard_library(module: str) -> None:
    program = (
        f"import sys; before = set(sys.modules); import {module}\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["opchain"]
