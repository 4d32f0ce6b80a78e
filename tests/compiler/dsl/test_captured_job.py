from __future__ import annotations

import pytest

from opchain.compiler.interception import CapturedJobClient
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.client import JobStatus


def test_a_captured_job_is_finished_without_results() -> None:
    client = CapturedJobClient()
    assert str(client.get_job_id()) == "0" * 32
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_job_execution_result().result().get_net_runtime() == 0
    assert client.get_accumulators().result() == {}
    assert client.cancel().done()
    assert list(client.collected("any")) == []


def test_savepoints_of_a_captured_job_are_refused() -> None:
    client = CapturedJobClient()
    with pytest.raises(UnsupportedFeatureError, match=r"trigger_savepoint.*needs a running job"):
        client.trigger_savepoint()
    with pytest.raises(UnsupportedFeatureError, match=r"stop_with_savepoint.*needs a running job"):
        client.stop_with_savepoint(advance_to_end_of_event_time=False)
