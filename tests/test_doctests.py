"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import opchain.compiler
import opchain.runtime

MODULES = sorted(
    module.name
    for package in (opchain.compiler, opchain.runtime)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if ".spark" not in module.name
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples_to_run() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = (importlib.import_module(name) for name in MODULES)
    assert sum(bool(test.examples) for m in modules for test in finder.find(m)) > 20
