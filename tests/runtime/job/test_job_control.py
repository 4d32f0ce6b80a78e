"""Requests to a running job, by its client and through its checkpoint directory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.job_requests import JobRequest, await_answer, post
from opchain.runtime.checkpoint.run_lease import LEASE_MS, RunLease
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.errors import CheckpointError
from opchain.runtime.job import job_control
from opchain.runtime.job.job_control import JobControl
from opchain.runtime.mailbox.timer_service import wall_clock_ms

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("stops", [True, False])
def test_a_stop_request_is_refused_with_the_reason_while_the_job_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stops: bool
) -> None:
    monkeypatch.setattr(job_control, "_LOOK_EVERY_S", 1000.0)
    storage = checkpoint_storage(str(tmp_path / "checkpoints"))
    lease = RunLease.take(storage, "job", "run", LEASE_MS, wall_clock_ms)
    control = JobControl(
        "run-1",
        threading.Lock(),
        stop_query=lambda: None,
        cancel=lambda: None,
        wake=lambda: None,
    )
    control.begin(storage, None)
    if stops:
        control.ask(JobRequest("a1", "stop", target=str(tmp_path / "first")))
    second = JobRequest("b2", "stop", target=str(tmp_path / "second"))
    post(storage, second)
    control.end()
    reason = r"request a1 already stops the job \(stop\)" if stops else "the job has ended"
    with pytest.raises(CheckpointError, match=reason):
        await_answer(storage, second, 1)
    lease.close()
