from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.operators.registry import BATCH_OPERATORS, OPERATORS
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.testing.operator_harness import OneInputOperatorHarness

WITHOUT_CLASS = {specs.OperatorSpec, specs.SinkSpec, specs.GuardedSpec}
"""The root; what the compiler takes apart into a writer and a committer; the operator of the guarded spec runs."""


def test_every_spec_has_an_operator() -> None:
    kinds = {
        kind
        for name, kind in inspect.getmembers(specs, inspect.isclass)
        if issubclass(kind, specs.OperatorSpec) and not name.startswith("_")
    }
    assert kinds - WITHOUT_CLASS == OPERATORS.keys() | BATCH_OPERATORS.keys()


def test_the_error_names_a_spec_without_an_operator() -> None:
    @dataclass(frozen=True)
    class NewSpec(specs.OperatorSpec):
        kind = "novelty"
        default_name = "New"

    with pytest.raises(UnsupportedFeatureError, match=r"'New' \(test harness\) is a novelty"):
        OneInputOperatorHarness(NewSpec())
