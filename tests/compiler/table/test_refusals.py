from __future__ import annotations

import pytest

from opchain.compiler.dsl.argument_checks import refused, refuses, removed
from opchain.runtime.errors import UnsupportedFeatureError


def test_a_refusal_names_the_call_its_line_and_what_to_do() -> None:
    text = str(refused("Table.select", "use map()"))
    assert text.startswith("Table.select() (test_refusals.py:")
    assert text.endswith("this part of the Table API is not supported; use map()")


def test_a_refused_method_takes_any_arguments() -> None:
    with pytest.raises(UnsupportedFeatureError, match="use map"):
        refuses("Table.select", "use map()")(1, 2, of=3)


def test_a_method_of_pyflink_1_names_its_replacement() -> None:
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"^T\.scan\(\) \(.*\) is of PyFlink 1, .*: call from_path\(\)$",
    ):
        refuses("T.scan", "call from_path()", removed)("orders")
