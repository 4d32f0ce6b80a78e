from __future__ import annotations

from opchain.compiler.settings.execution_config import InputDependencyConstraint


def test_there_are_two() -> None:
    assert [(item.name, item.value) for item in InputDependencyConstraint] == [
        ("ANY", 0),
        ("ALL", 1),
    ]
