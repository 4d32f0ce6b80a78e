"""JobStatus: which states are terminal, as in Flink 2.3."""

from __future__ import annotations

import pytest

from opchain.runtime.job.client import JobStatus

OVER_FOR_GOOD = {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}


@pytest.mark.parametrize("status", JobStatus)
def test_three_states_are_globally_terminal_and_suspended_is_locally_terminal(
    status: JobStatus,
) -> None:
    assert status.is_globally_terminal_state() == (status in OVER_FOR_GOOD)
    assert status.is_terminal_state() == (status in {*OVER_FOR_GOOD, JobStatus.SUSPENDED})


def test_the_states_are_numbered_as_in_pyflink() -> None:
    assert [status.name for status in JobStatus] == [
        "CREATED",
        "RUNNING",
        "FAILING",
        "FAILED",
        "CANCELLING",
        "CANCELED",
        "FINISHED",
        "RESTARTING",
        "SUSPENDED",
        "RECONCILING",
    ]
    assert [status.value for status in JobStatus] == list(range(10))
