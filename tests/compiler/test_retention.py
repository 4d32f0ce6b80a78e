"""Whether the checkpoints of a job that has ended stay, as the configuration says."""

from __future__ import annotations

import pytest

from opchain.compiler.execution import streaming_settings
from opchain.datastream import ExternalizedCheckpointRetention, StreamExecutionEnvironment

CANCELLED, FAILED, FINISHED = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        (None, [CANCELLED, FAILED, FINISHED]),
        (ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION, [CANCELLED, FAILED]),
        (ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION, [FAILED]),
        (ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS, []),
    ],
)
def test_externalized_checkpoint_retention_decides_when_checkpoints_are_kept(
    retention: ExternalizedCheckpointRetention | None, kept: list[tuple[bool, bool]]
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    if retention is not None:
        env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
    found = streaming_settings(env.program().settings).checkpoint_retention
    assert kept == [
        (is_cancelled, has_failed)
        for is_cancelled, has_failed in (CANCELLED, FAILED, FINISHED)
        if found.keeps(is_cancelled=is_cancelled, has_failed=has_failed)
    ]


def test_a_checkpoint_has_no_timeout_unless_one_is_set() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert streaming_settings(env.program().settings).checkpoint_timeout_ms == 0
    env.get_checkpoint_config().set_checkpoint_timeout(60_000)
    assert streaming_settings(env.program().settings).checkpoint_timeout_ms == 60_000
