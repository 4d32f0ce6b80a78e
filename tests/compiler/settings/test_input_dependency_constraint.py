from __future__ import annotations

from opchain.compiler.settings.execution_config import InputDependencyConstraint


def test_input_dependency_constraint_has_the_values_any_and_all() -> None:
    assert [(item.name, item.value) for item in InputDependencyConstraint] == [
        ("ANY", 0),
        ("ALL", 1),
    ]
