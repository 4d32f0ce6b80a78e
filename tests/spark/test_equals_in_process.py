"""Random jobs on Spark give the same records, order and counters as in this process."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest
from forms import Ran, job_of, run_job
from hypothesis import HealthCheck, Phase, given, settings
from random_jobs import RandomJob, draw_job, failing_jobs, random_jobs

from opchain.runtime.spark.bounded_job import spark_run

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

# A job on Spark takes seconds, so there are few examples, and only the tests in process shrink them.
on_spark = settings(
    max_examples=int(os.environ.get("OPCHAIN_SPARK_EXAMPLES", "3")),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)


def compiled(job: RandomJob) -> Any:
    return job_of(partial(draw_job, job), **job.keys)


@on_spark
@given(job=random_jobs())
def test_a_job_gives_the_same_results_on_spark(job: RandomJob) -> None:
    program = compiled(job)
    here, there = run_job(program), Ran(program, spark_run(program)._run())
    for number in range(len(job.sinks)):
        assert there.subtasks(str(number)) == here.subtasks(str(number))
    assert there.counters() == here.counters()


@on_spark
@given(job=failing_jobs())
def test_a_job_fails_on_spark_as_in_process(job: RandomJob) -> None:
    program = compiled(job)
    with pytest.raises(Exception) as here:  # noqa: PT011 - any type
        run_job(program)
    with pytest.raises(Exception) as there:  # noqa: PT011
        spark_run(program)._run()
    assert type(there.value) is type(here.value)
    assert str(there.value) == str(here.value)
    # The last note names the attempt, and Spark makes several attempts.
    assert there.value.__notes__[:-1] == here.value.__notes__[:-1]  # type: ignore[attr-defined]
