from __future__ import annotations

from typing import Any

from forms import job_of

from opchain.runtime.job.progress import stage_name, vertex_name


def test_a_stage_name_has_the_vertices_and_their_parallelism() -> None:
    def draw(env: Any) -> None:
        numbers = env.from_collection([1]).rebalance().map(str).name("text")
        numbers.print()

    job = job_of(draw, parallelism=3)
    assert vertex_name(job.vertices[1]) == "text -> Sink: Print to Std. Out x3"
    assert [stage_name(job, stage) for stage in job.stages] == [
        "Source: Collection Source x1",
        "text -> Sink: Print to Std. Out x3",
    ]
