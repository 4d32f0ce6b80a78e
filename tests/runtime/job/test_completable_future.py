from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future, TimeoutError  # noqa: A004 - not the builtin before 3.11

import pytest

from opchain.runtime.job.client import CompletableFuture


def test_a_future_is_completed_once_with_a_value() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    assert not future.done()
    assert str(future) == "CompletableFuture[not completed]"
    assert future.set_result(1)
    assert not future.set_result(2)
    assert not future.set_exception(ValueError())
    assert not future.cancel()
    assert future.done()
    assert future.result() == 1
    assert future.exception() is None
    assert str(future) == "CompletableFuture[completed]"


def test_a_future_is_completed_once_with_an_error() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    error = ValueError("broken")
    assert future.set_exception(error)
    assert not future.set_result(2)
    assert future.exception() is error
    assert not future.cancelled()
    assert str(future) == "CompletableFuture[completed with ValueError('broken')]"
    with pytest.raises(ValueError, match="broken"):
        future.result()


def test_a_cancelled_future_stays_cancelled() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    assert future.cancel()
    assert future.cancel()
    assert not future.set_result(2)
    assert future.cancelled()
    assert future.done()
    assert isinstance(future.exception(), CancelledError)
    with pytest.raises(CancelledError):
        future.result()


def test_exception_of_an_incomplete_future_is_none() -> None:
    assert CompletableFuture[int]().exception() is None


def test_result_of_an_incomplete_future_times_out() -> None:
    with pytest.raises(TimeoutError):
        CompletableFuture[int]().result(timeout=0)


def test_completed_returns_a_completed_future() -> None:
    assert CompletableFuture.completed("x").result() == "x"


def test_a_concurrent_future_can_be_wrapped() -> None:
    inner: Future[int] = Future()
    future = CompletableFuture(inner)
    inner.set_result(5)
    assert future.result() == 5


def test_callbacks_run_on_completion_or_at_once_if_already_completed() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    seen: list[int] = []
    future.add_done_callback(lambda done: seen.append(done.result()))
    assert seen == []
    future.set_result(1)
    future.add_done_callback(lambda done: seen.append(done.result() + 1))
    assert seen == [1, 2]


def test_one_of_many_threads_completes_the_future() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    start = threading.Barrier(8)
    wins: list[int] = []

    def complete(number: int) -> None:
        start.wait()
        if future.set_result(number):
            wins.append(number)

    threads = [threading.Thread(target=complete, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wins == [future.result()]
