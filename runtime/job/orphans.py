"""What sinks have written and nobody will commit.

What is hidden is found by the job's lineage, and removed only while no task of the lineage runs whose output
may count: when a bounded job has failed or has committed, and on the driver of an unbounded one between two
epochs.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from opchain.runtime.errors import add_note
from opchain.runtime.functions.sink import Committer, SinkOrigin
from opchain.runtime.program.operator_specs import SinkCommitterSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram


def discard_orphans(
    job: JobProgram,
    lineage: str,
    confirm: Callable[[], None] = lambda: None,
    staging: str | None = None,
) -> None:
    """Has every sink remove what writers of a lineage have hidden.

    Args:
        job: The job.
        lineage: The lineage.
        confirm: Raises where another run of the lineage has the job by now. One that stood still since it
            looked would else remove what that run has written.
        staging: The job's folder for what waits for its commit, if it has one.
    """

    def discard(operator: OperatorProgram, committer: Committer) -> None:
        where = f"'{operator.name}' ({operator.call_site})"
        origin = SinkOrigin(lineage, operator.operator_id, where, staging)
        committer.discard_orphans(origin, confirm)

    each_committer(job, discard)


def can_have_orphans(job: JobProgram) -> bool:
    """Whether some sink hides anything before it is committed, and can remove it."""
    found: list[type[Committer]] = []
    each_committer(job, lambda _, committer: found.append(type(committer)))
    return any(kind.discard_orphans is not Committer.discard_orphans for kind in found)


@contextmanager
def discarded_on_failure(job: JobProgram, lineage: str) -> Iterator[None]:
    """Within the block a job runs and commits; where it fails, nothing of it stays hidden."""
    try:
        yield
    except BaseException as failure:
        _beside(failure, lambda: discard_orphans(job, lineage))
        raise


def abort_epoch(job: JobProgram, checkpoint_id: int, failure: BaseException) -> None:
    """Tells every sink that an epoch failed; what fails in that is noted with the failure."""
    _beside(
        failure,
        lambda: each_committer(job, lambda _, committer: committer.abort(checkpoint_id)),
    )


def each_committer(job: JobProgram, action: Callable[[OperatorProgram, Committer], None]) -> None:
    """Calls a function with each sink's operator and its committer."""
    for vertex in job.vertices:
        for operator in vertex.operators:
            sink = getattr(operator.spec, "sink", None)
            if sink is None or isinstance(operator.spec, SinkCommitterSpec):
                continue  # a sink with two operators is asked by its writer's, whose origin it is
            committer = sink.create_committer()
            if committer is not None:
                with closing(committer):
                    action(operator, committer)


def _beside(failure: BaseException, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the first failure is what counts
        add_note(failure, f"and then sinks could not clean up: {type(error).__name__}: {error}")
