"""Output that does not belong to the job's checkpoints: output that is never committed, and commits of later checkpoints.

Staged output is found by the lineage of the job. It is removed only while no task of the lineage runs whose output may
still be committed: after a bounded job has failed or committed, and on the driver of an unbounded job between epochs.

A sink notes with its output the last checkpoint that it has committed. If this checkpoint is later than the job's last
one, the directory of checkpoints was restored from a backup. The epochs between the two would run again, and may not
give the same records, so the job does not start.
"""

from __future__ import annotations

import logging
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from opchain.runtime.errors import CheckpointError, add_note
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
    """Removes the staged output of a lineage in every sink.

    Args:
        job: The job.
        lineage: The lineage.
        confirm: Raises if another run of the lineage has taken over. A run that was paused since its last check would
            otherwise remove the output of the other run.
        staging: The job's folder of output that waits for its commit, if there is one.
    """

    def discard(operator: OperatorProgram, committer: Committer) -> None:
        origin = SinkOrigin(lineage, operator.operator_id, operator.label, staging)
        committer.discard_orphans(origin, confirm)

    each_committer(job, discard)


def can_have_orphans(job: JobProgram) -> bool:
    """Whether a sink stages output before its commit, and can remove it."""
    found: list[type[Committer]] = []
    each_committer(job, lambda _, committer: found.append(type(committer)))
    return any(kind.discard_orphans is not Committer.discard_orphans for kind in found)


@contextmanager
def discarded_on_failure(job: JobProgram, lineage: str) -> Iterator[None]:
    """Removes the staged output of a job if it fails within the block."""
    try:
        yield
    except BaseException as failure:
        _beside(failure, lambda: discard_orphans(job, lineage))
        raise


def abort_epoch(job: JobProgram, checkpoint_id: int, failure: BaseException) -> None:
    """Aborts an epoch in every sink. Errors of sinks are added to the failure as notes."""
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
                continue  # a sink with two operators is listed with its writer's operator, which is its origin
            committer = sink.create_committer()
            if committer is not None:
                with closing(committer):
                    action(operator, committer)


def _beside(failure: BaseException, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the first failure is what counts
        add_note(failure, f"and then sinks could not clean up: {type(error).__name__}: {error}")


ACCEPT_DUPLICATES = "opchain.streaming.accept-duplicates"

_LOG = logging.getLogger("opchain.epochs")


def require_no_later_commits(
    job: JobProgram,
    lineage: str,
    url: str,
    last: int,
    is_dropped: Callable[[int], bool],
    *,
    accepts_duplicates: bool = False,
) -> None:
    """Checks that no sink has committed a later checkpoint than the last one.

    Args:
        job: The job.
        lineage: Its lineage.
        url: The directory of its checkpoints.
        last: The last checkpoint; 0 if there is none.
        is_dropped: Whether a later checkpoint was dropped because it was damaged. Its epoch gives the same output again.
        accepts_duplicates: Whether later commits are ignored, so that their output is written a second time.

    Raises:
        CheckpointError: A sink has committed a later checkpoint.
    """

    def check(operator: OperatorProgram, committer: Committer) -> None:
        where = operator.label
        origin = SinkOrigin(lineage, operator.operator_id, where)
        committed = committer.last_commit(origin)
        if committed is None or committed <= last or is_dropped(committed):
            return
        if accepts_duplicates:
            _LOG.warning(
                "%s has committed checkpoint %d, and the last checkpoint of %s is %d: its later output is written a second time",
                where,
                committed,
                url,
                last,
            )
            committer.reset_commits(origin, last)
            return
        raise CheckpointError(
            f"{where} has committed checkpoint {committed}, and the last checkpoint of {url} is {last}: "
            "the directory seems to be an older copy. To resume from there, either set "
            f"{ACCEPT_DUPLICATES} = true, which writes the output of checkpoints {last + 1} to {committed} "
            f"a second time; or remove that output yourself and reset the sink's note: {committer.how_to_reset(origin, last)}"
        )

    each_committer(job, check)
