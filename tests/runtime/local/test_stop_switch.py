from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from forms import job_of

from opchain.datastream import AsyncDataStream, AsyncFunction
from opchain.runtime.job.client import JobStatus
from opchain.runtime.local.job import local_run
from opchain.runtime.local.live_run import StopSwitch
from opchain.runtime.local.task_thread import JobStoppedError
from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor


class FakeTask:
    def __init__(self) -> None:
        self.processor = MailboxProcessor(lambda controller: None)


def fails(task: Any) -> bool:
    try:
        task.processor.run_mailbox_step()
    except JobStoppedError:
        return True
    return False


def test_stop_fails_watched_tasks_of_the_past_and_the_future() -> None:
    switch = StopSwitch()
    before, forgotten, after, ended = tasks = [FakeTask() for _ in range(4)]
    ended.processor.close()
    for task in (before, forgotten, ended):
        switch.watch(task)  # type: ignore[arg-type]
    switch.forget(forgotten)  # type: ignore[arg-type]
    assert not fails(before)
    switch.stop()
    switch.stop()
    switch.watch(after)  # type: ignore[arg-type]
    assert [fails(task) for task in (before, forgotten, after)] == [True, False, True]
    assert not fails(before)
    for task in tasks:
        task.processor.close()


called = threading.Event()


class NeverAnswers(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        called.set()
        await asyncio.Event().wait()
        return []


@pytest.mark.parametrize("capacity", [1, 100])
def test_a_job_that_waits_for_an_endless_async_call_can_be_cancelled(capacity: int) -> None:
    called.clear()

    def draw(env: Any) -> None:
        stream = env.from_data(1, 2, 3)
        AsyncDataStream.ordered_wait(stream, NeverAnswers(), 0, capacity).print()

    run = local_run(job_of(draw)).start()
    assert called.wait(60)
    run.cancel().result(60)
    assert run.get_job_status().result() is JobStatus.CANCELED
