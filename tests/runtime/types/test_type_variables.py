from __future__ import annotations

import inspect
from typing import Any, TypeVar

import pytest

from opchain.runtime.types import type_variables

VARIABLES = {
    name: value for name, value in vars(type_variables).items() if isinstance(value, TypeVar)
}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_varies_as_its_name_says(name: str) -> None:
    variable: Any = VARIABLES[name]
    assert variable.__name__ == name
    assert variable.__covariant__ is name.endswith("_co")
    assert variable.__contravariant__ is name.endswith("_contra")


def test_type_checkers_and_interpreters_see_the_same_variables() -> None:
    source = inspect.getsource(type_variables)
    for_checkers, _, at_run_time = source.partition("\nelse:\n")
    for name in VARIABLES:
        assert f'    {name} = TypeVar("{name}"' in for_checkers
        assert f'    {name} = TypeVar("{name}"' in at_run_time
    assert for_checkers.count("= TypeVar(") == at_run_time.count("= TypeVar(") == len(VARIABLES)
