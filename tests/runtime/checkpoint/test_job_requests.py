"""Requests to a running job through its checkpoint directory."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey
from opchain.runtime.checkpoint.job_requests import (
    JobRequest,
    answer_request,
    await_answer,
    pending_requests,
    post,
    refuse_old_requests,
)
from opchain.runtime.checkpoint.run_lease import RunLease
from opchain.runtime.checkpoint.storage import CheckpointStorage, checkpoint_storage
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUEST = JobRequest("a1", "savepoint", target="/somewhere")


@pytest.fixture(params=[None, b"a key of more than 16 bytes"])
def storage(tmp_path: Path, request: pytest.FixtureRequest) -> CheckpointStorage:
    return checkpoint_storage(
        str(tmp_path), None if request.param is None else CheckpointKey.of(request.param)
    )


@pytest.fixture
def lease(storage: CheckpointStorage) -> Iterator[RunLease]:
    lease = RunLease.take(storage, "clicks", "run-1", 60_000, lambda: 2**60)
    yield lease
    lease.close()


@pytest.fixture(autouse=True)
def frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "opchain.runtime.checkpoint.job_requests.running_run",
        lambda storage: running_run(storage, lambda: 2**60),
    )


from opchain.runtime.checkpoint.run_lease import running_run  # noqa: E402 - the function that the fixture wraps


@pytest.mark.usefixtures("lease")
def test_a_request_is_found_and_its_answer_is_returned(storage: CheckpointStorage) -> None:
    post(storage, REQUEST)
    assert list(pending_requests(storage)) == [REQUEST]
    answer_request(storage, "a1", path="/somewhere")
    assert list(pending_requests(storage)) == []
    assert await_answer(storage, REQUEST, 10)["path"] == "/somewhere"
    assert storage.children("requests") == []


@pytest.mark.usefixtures("lease")
def test_await_answer_waits_for_the_answer(storage: CheckpointStorage) -> None:
    post(storage, REQUEST)
    answers = threading.Timer(0.1, lambda: answer_request(storage, "a1", error="no room"))
    answers.start()
    with pytest.raises(CheckpointError, match="no room"):
        await_answer(storage, REQUEST, 60)
    answers.join()


@pytest.mark.usefixtures("lease")
def test_an_unanswered_request_is_withdrawn(storage: CheckpointStorage) -> None:
    post(storage, REQUEST)
    with pytest.raises(CheckpointError, match="not answered within 0 s"):
        await_answer(storage, REQUEST, 0)
    assert list(pending_requests(storage)) == []


def test_a_request_is_refused_if_no_job_runs(storage: CheckpointStorage) -> None:
    with pytest.raises(CheckpointError, match="no running job has its checkpoints in"):
        post(storage, REQUEST)


def test_await_answer_fails_when_the_job_has_ended(
    storage: CheckpointStorage, lease: RunLease
) -> None:
    post(storage, REQUEST)
    lease.close()
    with pytest.raises(CheckpointError, match="ended before it answered"):
        await_answer(storage, REQUEST, 60)


@pytest.mark.usefixtures("lease")
def test_a_new_run_refuses_requests_to_the_run_before(storage: CheckpointStorage) -> None:
    post(storage, REQUEST)
    post(storage, replace(REQUEST, request_id="b2"))
    answer_request(storage, "b2", path="/elsewhere")
    answer_request(storage, "c3", path="who asked is gone")
    refuse_old_requests(storage)
    assert storage.children("requests") == ["a1.answer", "a1.json", "b2.answer", "b2.json"]
    with pytest.raises(CheckpointError, match="started again"):
        await_answer(storage, REQUEST, 60)


@pytest.mark.usefixtures("lease")
def test_a_request_without_the_key_is_not_served(storage: CheckpointStorage) -> None:
    post(storage, REQUEST)
    other = checkpoint_storage(storage.url, CheckpointKey.of(b"another key with 16 bytes"))
    assert list(pending_requests(other)) == []
    with pytest.raises(CheckpointError, match="not signed by the key"):
        await_answer(checkpoint_storage(storage.url), REQUEST, 60)


@pytest.mark.usefixtures("lease")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"request": "[1]", "signature": null}',
        b'{"request": "{}", "signature": "\xc3\xa9"}',
        b'{"request": "\\ud800", "signature": 1}',
        b'{"request": "{\\"a\\": 1}", "signature": null}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_request_does_not_block_other_requests(
    storage: CheckpointStorage, content: bytes
) -> None:
    storage.write("requests/a0.json", content)
    post(storage, REQUEST)
    assert list(pending_requests(storage)) == [REQUEST]
    assert "a0.answer" in storage.children("requests")
