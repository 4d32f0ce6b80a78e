from __future__ import annotations

from opchain.compiler.settings.checkpoint_config import CheckpointingMode


def test_checkpointing_mode_has_pyflinks_names_and_values() -> None:
    names = ["EXACTLY_ONCE", "AT_LEAST_ONCE"]
    assert [(member.name, member.value) for member in CheckpointingMode] == list(
        zip(names, range(9), strict=False)
    )
