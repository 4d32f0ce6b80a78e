from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from forms import Ran, job_of, seen

from opchain.runtime.program.vertex_program import SlotResources
from opchain.runtime.spark import stage_rdds as stage_resources
from opchain.runtime.spark.bounded_job import spark_run
from opchain.runtime.spark.stage_rdds import resource_profile, with_resources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SLOTS = SlotResources("big", 1.5, 300, (("gpu", 0.5),))


@pytest.mark.parametrize(
    ("executor_cores", "cores", "overhead", "gpus"),
    [("1", 2, 300, 1), ("5", 5, 600, 1), ("8", 8, 1200, 2)],
)
def test_a_slot_is_one_task_and_executors_have_as_many_slots_as_fit(
    session: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    executor_cores: str,
    cores: int,
    overhead: int,
    gpus: int,
) -> None:
    settings = session.sparkContext.getConf()
    settings.set("spark.executor.cores", executor_cores).set("spark.executor.memory", "700m")
    settings.set("spark.executor.resource.gpu.discoveryScript", "/find-gpus")
    monkeypatch.setattr(session.sparkContext, "_conf", settings)
    profile = resource_profile(session.sparkContext, SLOTS)
    assert {name: request.amount for name, request in profile.taskResources.items()} == {
        "cpus": 2.0,
        "gpu": 0.5,
    }
    executor = profile.executorResources
    assert {name: request.amount for name, request in executor.items()} == {
        "cores": cores,
        "memory": 700,
        "memoryOverhead": overhead,
        "gpu": gpus,
    }
    assert executor["gpu"].discoveryScript == "/find-gpus"


@pytest.mark.parametrize(
    ("asks_spark", "reason"),
    [(False, "the master is local[2,3]"), (True, "ResourceProfiles are only supported")],
)
def test_without_support_in_spark_the_job_runs_with_a_warning(
    session: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    asks_spark: bool,
    reason: str,
) -> None:
    if asks_spark:
        monkeypatch.setattr(stage_resources, "is_local", lambda _: False)
    job = job_of(lambda env: seen(env.from_collection([1]).rebalance().map(lambda x: x), "s"))
    small = SlotResources("small", 1.0, 100)
    with caplog.at_level(logging.WARNING, "opchain.spark"):
        run = spark_run(job, resources=(None, small))
        assert Ran(job, run._run()).records("s") == [1]
    (record,) = caplog.records
    assert "slot sharing group small asks for 1 cores and 100 MB a slot" in record.getMessage()
    assert "seen s" in record.getMessage()
    assert reason in record.getMessage()


def test_a_stage_without_resources_has_no_resource_profile(session: SparkSession) -> None:
    rdd = session.sparkContext.parallelize((), 1)
    assert with_resources(rdd, None, "stage") is rdd
    assert not rdd.has_resource_profile
