from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.operators.async_wait import calls
from opchain.runtime.operators.async_wait.calls import EventLoopThread

if TYPE_CHECKING:
    from collections.abc import Iterator

Ends = queue.SimpleQueue[tuple[Any, BaseException | None]]
PATIENCE_S = 60
"""How long a test waits for another thread before it fails."""


@pytest.fixture
def loop_thread() -> Iterator[EventLoopThread]:
    thread = EventLoopThread("calls of 'fetch'", threads=4)
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture
def ends() -> Ends:
    return queue.SimpleQueue()


def put_in(ends: Ends) -> Any:
    return lambda result, error: ends.put((result, error))


def test_a_call_returns_its_result(loop_thread: EventLoopThread, ends: Ends) -> None:
    async def fetch() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    loop_thread.submit(fetch, put_in(ends))
    assert ends.get(timeout=PATIENCE_S) == ("calls of 'fetch'", None)


@pytest.mark.parametrize(
    "error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_a_call_raises_its_error_of_any_type(
    loop_thread: EventLoopThread, ends: Ends, error: BaseException
) -> None:
    async def fail() -> None:
        raise error

    async def succeed() -> str:
        return "still here"

    loop_thread.submit(fail, put_in(ends))
    loop_thread.submit(succeed, put_in(ends))
    assert ends.get(timeout=PATIENCE_S) == (None, error)
    assert ends.get(timeout=PATIENCE_S) == ("still here", None)


def test_calls_run_concurrently(loop_thread: EventLoopThread, ends: Ends) -> None:
    """Each call waits for all the others, so they would never end one after the other."""
    started: list[int] = []
    all_started = asyncio.Event()

    async def meet(number: int) -> int:
        started.append(number)
        if len(started) == 5:
            all_started.set()
        await all_started.wait()
        return number

    for number in range(5):
        loop_thread.submit(lambda number=number: meet(number), put_in(ends))  # type: ignore[misc]
    assert sorted(ends.get(timeout=PATIENCE_S)[0] for _ in range(5)) == [0, 1, 2, 3, 4]


def test_as_many_blocking_calls_run_concurrently_as_there_are_threads(
    loop_thread: EventLoopThread, ends: Ends
) -> None:
    meeting = threading.Barrier(4, timeout=PATIENCE_S)

    async def block() -> int:
        return await asyncio.to_thread(meeting.wait)

    for _ in range(4):
        loop_thread.submit(block, put_in(ends))
    assert sorted(ends.get(timeout=PATIENCE_S)[0] for _ in range(4)) == [0, 1, 2, 3]


def test_a_cancelled_call_runs_its_clean_up_and_reports_no_result(
    loop_thread: EventLoopThread, ends: Ends
) -> None:
    started, cleaned_up = threading.Event(), threading.Event()

    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.set()

    async def follow() -> str:
        return "next"

    call = loop_thread.submit(hang, put_in(ends))
    assert started.wait(PATIENCE_S)
    call.cancel()
    assert cleaned_up.wait(PATIENCE_S)
    loop_thread.submit(follow, put_in(ends))
    assert ends.get(timeout=PATIENCE_S) == ("next", None)


def test_a_call_cancelled_before_its_start_never_runs(
    loop_thread: EventLoopThread, ends: Ends
) -> None:
    is_held, release = threading.Event(), threading.Event()

    async def hold_the_loop() -> None:
        is_held.set()
        release.wait(PATIENCE_S)

    ran: list[str] = []

    async def run() -> None:
        ran.append("ran")

    loop_thread.submit(hold_the_loop, put_in(ends))
    assert is_held.wait(PATIENCE_S)
    loop_thread.submit(run, put_in(ends)).cancel()
    release.set()
    assert ends.get(timeout=PATIENCE_S) == (None, None)
    loop_thread.stop()
    assert ran == []
    assert ends.empty()


def test_stop_cancels_all_running_tasks_including_those_of_the_user() -> None:
    cancelled: list[str] = []
    started = threading.Event()

    async def hang(name: str) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(name)
            raise

    async def spawn() -> None:
        own = asyncio.create_task(hang("the user's task"))
        started.set()
        await asyncio.gather(own, hang("the call"))

    ends: Ends = queue.SimpleQueue()
    thread = EventLoopThread("calls", 1)
    thread.start()
    thread.submit(spawn, put_in(ends))
    assert started.wait(PATIENCE_S)
    thread.stop()
    assert sorted(cancelled) == ["the call", "the user's task"]
    assert ends.empty()
    assert "calls" not in {other.name for other in threading.enumerate()}


def test_stopping_twice_or_before_the_start_does_nothing() -> None:
    thread = EventLoopThread("calls", 1)
    thread.stop()
    thread.start()
    thread.stop()
    thread.stop()


def test_a_call_that_blocks_the_event_loop_is_abandoned_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "STOPPING_S", 0.01)
    is_blocked, release = threading.Event(), threading.Event()

    async def block() -> None:
        is_blocked.set()
        release.wait(PATIENCE_S)

    thread = EventLoopThread("calls of 'slow'", 1)
    thread.start()
    thread.submit(block, lambda result, error: None)
    assert is_blocked.wait(PATIENCE_S)
    with pytest.warns(RuntimeWarning, match="calls of 'slow': a call still runs"):
        thread.stop()
    left_behind = [each for each in threading.enumerate() if each.name == "calls of 'slow'"]
    release.set()
    for each in left_behind:
        each.join(PATIENCE_S)


def test_a_thread_may_be_stopped_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class StartsLate(threading.Thread):
        """Starts only when another thread joins it."""

        def start(self) -> None:
            pass

        def join(self, timeout: float | None = None) -> None:
            super().start()
            super().join(timeout)

    monkeypatch.setattr(threading, "Thread", StartsLate)
    thread = EventLoopThread("calls of 'fetch'", threads=1)
    thread.start()
    loop = thread._loop
    assert loop is not None
    thread.stop()
    assert loop.is_closed()
