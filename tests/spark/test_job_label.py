from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from forms import job_of

from opchain.runtime.job.progress import stage_name
from opchain.runtime.spark.stage_rdds import job_group, stage_label

if TYPE_CHECKING:
    from pyspark import SparkContext


class Properties:
    """The local properties of a SparkContext."""

    def __init__(self, **values: str) -> None:
        self.values: dict[str, str | None] = dict(values)

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
        return self.values.get(name)

    def setLocalProperty(self, name: str, value: str | None) -> None:  # noqa: N802
        self.values[name] = value

    def setJobGroup(self, group: str, description: str) -> None:  # noqa: N802
        self.values |= {"spark.jobGroup.id": group, "spark.job.description": description}


def context(**values: str) -> tuple[SparkContext, Properties]:
    properties = Properties(**values)
    return cast("SparkContext", properties), properties


def test_group_and_pool_of_a_job_are_set_and_restored() -> None:
    spark, properties = context(
        **{"spark.jobGroup.id": "theirs", "spark.scheduler.pool": "their pool"}
    )
    job = job_of(lambda env: env.from_collection([1]).print())
    with job_group(spark, "ours", job, "our pool"):
        assert properties.values["spark.jobGroup.id"] == "ours"
        names = "; ".join(stage_name(job, stage) for stage in job.stages)
        assert properties.values["spark.job.description"] == f"{job.job_name}: {names}"
        assert properties.values["spark.scheduler.pool"] == "our pool"
    assert properties.values["spark.jobGroup.id"] == "theirs"
    assert properties.values["spark.job.description"] is None
    assert properties.values["spark.scheduler.pool"] == "their pool"


def test_a_stage_has_the_names_of_its_vertices_and_their_program_lines() -> None:
    job = job_of(
        lambda env: env.from_collection([1]).rebalance().map(str).name("text").print(),
        parallelism=2,
    )
    assert stage_name(job, job.stages[1]) == "text -> Sink: Print to Std. Out x2"
    spark, properties = context()
    with stage_label(spark, job, job.stages[0]):
        details = properties.values["callSite.long"]
    assert details is not None
    assert details.splitlines()[0].startswith("Source: ")
    assert "(test_job_label.py:" in details
    assert details.splitlines()[-1] == "  -> text (rebalance)"


def test_names_that_the_jvm_cannot_encode_are_replaced() -> None:
    job = job_of(lambda env: env.from_collection([1]).map(str).name("a\ud800\nb\x00").print())
    spark, properties = context()
    job = replace(job, job_name="\ud800 job")
    with stage_label(spark, job, job.stages[0]), job_group(spark, "ours", job, None):
        shown = [value for value in properties.values.values() if value is not None]
    assert any("a  b " in value for value in shown)
    for value in shown:
        assert value.encode()
