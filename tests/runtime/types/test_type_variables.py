from __future__ import annotations

import inspect
from typing import Any, TypeVar

import pytest

from opchain.runtime.functions import type_variables as bounded
from opchain.runtime.types import type_variables

VARIABLES = {
    name: value
    for module in (type_variables, bounded)
    for name, value in vars(module).items()
    if isinstance(value, TypeVar)
}


@pytest.mark.parametrize("name", VARIABLES)
def test_the_variance_of_a_type_variable_is_that_of_its_name(name: str) -> None:
    variable: Any = VARIABLES[name]
    assert variable.__name__ == name
    assert variable.__covariant__ is name.endswith("_co")
    assert variable.__contravariant__ is name.endswith("_contra")


def test_type_checkers_and_interpreters_see_the_same_variables() -> None:
    parts = [inspect.getsource(m).partition("\nelse:\n") for m in (type_variables, bounded)]
    for_checkers = "".join(part[0] for part in parts)
    at_run_time = "".join(part[2] for part in parts)
    for name in VARIABLES:
        assert f'    {name} = TypeVar("{name}"' in for_checkers
        assert f'    {name} = TypeVar("{name}"' in at_run_time
    assert for_checkers.count("= TypeVar(") == at_run_time.count("= TypeVar(") == len(VARIABLES)
