from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of, run_job, seen

from opchain.datastream import MapFunction, RuntimeContext
from opchain.runtime.errors import TaskFailedError, UnpicklableFunctionError
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.dependencies import CachedFile, JobDependencies
from opchain.runtime.local import job as job_module
from opchain.runtime.local.job import local_run, run_in_process, run_tasks
from opchain.runtime.local.live_run import StopSwitch
from opchain.runtime.local.task_thread import JobStoppedError
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.shipping.functions import ship_vertices

if TYPE_CHECKING:
    from pathlib import Path


class CountsItsCalls(MapFunction[int, int]):
    def __init__(self) -> None:
        self.calls = 0

    def map(self, value: int) -> int:
        self.calls += 1
        return self.calls


class ReadsAFile(MapFunction[str, str]):
    def open(self, runtime_context: RuntimeContext) -> None:
        file = runtime_context.get_distributed_cache().get_file("greeting")
        self.greeting = file.read_text("utf-8")

    def map(self, value: str) -> str:
        return self.greeting + value


def test_each_subtask_has_its_own_function() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 8).rebalance().map(CountsItsCalls()), "counts")

    subtasks = run_job(job_of(draw, parallelism=2)).subtasks("counts")
    assert [[value for value, _ in records] for records in subtasks.values()] == [
        [1, 2, 3, 4],
        [1, 2, 3, 4],
    ]


def test_functions_find_cached_files(tmp_path: Path) -> None:
    (tmp_path / "hello.txt").write_text("hello ", "utf-8")
    dependencies = JobDependencies(
        cached_files=(CachedFile(str(tmp_path / "hello.txt"), "greeting"),)
    )

    def draw(env: Any) -> None:
        env.from_collection(["you"]).map(ReadsAFile()).collect_async()

    job = job_of(draw)
    run = local_run(job, dependencies).run_here()
    uid = job.vertices[-1].operators[-1].uid
    assert uid is not None
    assert list(run.collected(uid)) == ["hello you"]


def test_an_unpicklable_function_fails_before_the_job_runs() -> None:
    lock = threading.Lock()
    job = job_of(lambda env: env.from_collection([1]).map(lambda x: (x, lock)).print())
    with pytest.raises(UnpicklableFunctionError):
        local_run(job)


def test_a_job_can_be_cancelled_between_two_buffers() -> None:
    job = job_of(lambda env: env.from_sequence(1, 10).rebalance().map(str).print())
    switch = StopSwitch()
    switch.stop()
    with pytest.raises(JobStoppedError):
        list(run_tasks(job, ship_vertices(job), switch=switch))


def test_a_cancelled_job_has_the_status_canceled() -> None:
    run = local_run(job_of(lambda env: env.from_sequence(1, 10).rebalance().map(str).print()))
    run.cancel()
    run.run_here()
    assert run.get_job_status().result() is JobStatus.CANCELED


def test_a_function_that_calls_sys_exit_fails_the_job_and_not_the_program() -> None:
    def leave(value: int) -> int:
        raise SystemExit(3)

    job = job_of(lambda env: env.from_collection([1]).map(leave).print())
    with pytest.raises(TaskFailedError, match=r"called sys.exit\(3\)") as caught:
        run_in_process(job)
    assert any("in 'Map' (test_job.py:" in note for note in caught.value.__notes__)


class LeavesAtTheEnd(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return value

    def close(self) -> None:
        raise SystemExit(0)


def test_a_function_that_calls_sys_exit_in_close_fails_the_job() -> None:
    job = job_of(lambda env: env.from_collection([1]).map(LeavesAtTheEnd()).print())
    with pytest.raises(TaskFailedError, match=r"called sys.exit\(0\)"):
        run_in_process(job)


def test_exchanged_buffers_are_spilled_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[BufferStore] = []

    def small() -> BufferStore:
        stores.append(BufferStore(memory_limit_bytes=1000))
        return stores[-1]

    monkeypatch.setattr(job_module, "BufferStore", small)

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 50_000).map(str).rebalance().map(int), "all")

    ran = run_job(job_of(draw, parallelism=2, mode="STREAMING"))
    assert sorted(ran.records("all")) == list(range(1, 50_001))
    assert any(store.spilled_bytes > 100_000 for store in stores)
    assert all(store.memory_bytes == len(store) == 0 for store in stores)
    assert all(store._file is None for store in stores)


@pytest.mark.parametrize(("mode", "sent"), [("BATCH", 1000), ("STREAMING", 2000)])
def test_in_batch_mode_an_exchange_with_two_readers_is_written_once(mode: str, sent: int) -> None:
    def draw(env: Any) -> None:
        shared = env.from_sequence(1, 1000).map(str).rebalance()
        for reader in "ab":
            seen(shared.map(int), reader)

    ran = run_job(job_of(draw, parallelism=2, mode=mode))
    assert sorted(ran.records("a")) == sorted(ran.records("b")) == list(range(1, 1001))
    assert ran.outcome.metrics.vertices[0].records_out == sent
