"""The states and which of them are final, as Flink 2.3 has them."""

from __future__ import annotations

import pytest

from opchain.runtime.job.client import JobStatus

OVER_FOR_GOOD = {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}


@pytest.mark.parametrize("status", JobStatus)
def test_three_states_are_final_and_one_is_final_here(status: JobStatus) -> None:
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
