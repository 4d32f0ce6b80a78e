from __future__ import annotations

from typing import TYPE_CHECKING

from forms import Ran, job_of, seen

from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.spark import stage_rdds
from opchain.runtime.spark.bounded_job import BoundedJob

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_a_large_vertex_program_is_broadcast_and_destroyed_at_the_end(
    monkeypatch: pytest.MonkeyPatch, session: SparkSession
) -> None:
    monkeypatch.setattr(stage_rdds, "INLINE_BYTES", 10)
    dropped: list[object] = []
    made = session.sparkContext.broadcast(b"").__class__
    monkeypatch.setattr(made, "destroy", lambda self, blocking=False: dropped.append(self))
    job = job_of(lambda env: seen(env.from_collection(["a"]).rebalance().map(str.upper), "s"))
    assert Ran(job, BoundedJob(session, job, ship_vertices(job)).run()).records("s") == ["A"]
    assert len(dropped) == len(job.vertices)
