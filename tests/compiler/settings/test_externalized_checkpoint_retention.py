from __future__ import annotations

from opchain.compiler.settings.checkpoint_config import (
    ExternalizedCheckpointRetention,
)


def test_externalized_checkpoint_retention_has_pyflinks_names_and_values() -> None:
    names = ["DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"]
    assert [(member.name, member.value) for member in ExternalizedCheckpointRetention] == list(
        zip(names, range(9), strict=False)
    )
