"""What sinks have written and nobody will commit: found by the job's lineage, and removed.

Only while no task of the lineage runs whose output may count: when a bounded job has failed, and on the driver
of an unbounded one between two epochs.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opchain.runtime.connectors.sink import SinkOrigin
from opchain.runtime.errors import add_note
from opchain.runtime.operators.specs import SinkCommitterSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.runtime.task.vertex_program import JobProgram


def discard_orphans(job: JobProgram, lineage: str) -> None:
    """Has every sink remove what writers of a lineage have hidden."""
    for vertex in job.vertices:
        for operator in vertex.operators:
            sink = getattr(operator.spec, "sink", None)
            if sink is None or isinstance(operator.spec, SinkCommitterSpec):
                continue
            committer = sink.create_committer()
            if committer is None:
                continue
            where = f"'{operator.name}' ({operator.call_site})"
            try:
                committer.discard_orphans(SinkOrigin(lineage, operator.operator_id, where))
            finally:
                committer.close()


@contextmanager
def discarded_on_failure(job: JobProgram, lineage: str) -> Iterator[None]:
    """Within the block a job runs and commits; where it fails, nothing of it stays hidden."""
    try:
        yield
    except BaseException as failure:
        try:
            discard_orphans(job, lineage)
        except Exception as error:  # noqa: BLE001 - the first failure is what counts
            add_note(failure, f"and then sinks could not clean up: {type(error).__name__}: {error}")
        raise
