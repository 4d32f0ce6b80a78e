from __future__ import annotations

from opchain.compiler.settings.execution_config import RuntimeExecutionMode


def test_execution_mode_has_pyflinks_names_and_values() -> None:
    names = ["STREAMING", "BATCH", "AUTOMATIC"]
    assert [(member.name, member.value) for member in RuntimeExecutionMode] == list(
        zip(names, range(9), strict=False)
    )
