from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Configuration
from opchain.compiler.execution import slot_resources, submit
from opchain.compiler.graph.plan import required
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import SlotSharingGroup, StreamExecutionEnvironment
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.client import JobStatus
from opchain.runtime.program.vertex_program import SlotResources


def environment() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def test_execute_waits_for_the_job_and_execute_async_uses_a_thread(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for wait in (True, False):
        env = environment()
        env.from_collection([1]).print()
        run = submit(env.program(), wait=wait)
        run.get_job_execution_result().result(60)
        assert run.get_job_status().result() is JobStatus.FINISHED
    assert capsys.readouterr().out == "1\n1\n"


def test_files_of_the_program_are_available_to_a_job_in_process(tmp_path: Any) -> None:
    (tmp_path / "module_of_a_job.py").write_text("FACTOR = 7", "utf-8")

    def times(value: int) -> int:
        import module_of_a_job  # type: ignore[import-not-found]  # noqa: PLC0415

        return int(value * module_of_a_job.FACTOR)

    env = environment()
    env.add_python_file(str(tmp_path / "module_of_a_job.py"))
    with env.from_collection([6]).map(times).execute_and_collect() as found:
        assert list(found) == [42]


def test_vertices_get_the_resources_of_their_slot_sharing_group() -> None:
    env = environment()
    big = (
        SlotSharingGroup.builder("big")
        .set_cpu_cores(1.5)
        .set_task_heap_memory_mb(100)
        .set_task_off_heap_memory_mb(20)
        .set_managed_memory_mb(3)
        .set_external_resource("gpu", 1)
        .build()
    )
    plain = env.from_collection([1]).rebalance().map(str).name("plain").slot_sharing_group("plain")
    plain.rebalance().map(str).name("hungry").slot_sharing_group(big).print()
    plan = compile_program(env.program())
    resources = slot_resources(plan)
    found = {
        vertex.operators[0].name: slots
        for vertex, slots in zip(required(plan.job_program).vertices, resources, strict=True)
    }
    assert found["plain"] is None
    assert found["hungry"] == SlotResources("big", 1.5, 123, (("gpu", 1.0),))


def test_without_resources_no_vertex_has_slot_resources() -> None:
    env = environment()
    env.from_collection([1]).print()
    assert slot_resources(compile_program(env.program())) == ()


def test_a_bounded_job_in_batch_mode_starts_from_no_checkpoint() -> None:
    env = environment()
    env.get_configuration().set_string("execution.state-recovery.path", "checkpoints/chk-3")
    env.get_configuration().set_string("execution.runtime-mode", "BATCH")
    env.from_collection([1]).print()
    refused = (
        r"bounded job 'once' runs in batch mode.*chk-3 is not possible: set execution.runtime-mode"
    )
    with pytest.raises(UnsupportedFeatureError, match=refused):
        env.execute("once")
