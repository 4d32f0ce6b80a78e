"""Checkpoints that are older than the output: a directory of checkpoints that was restored from a backup.

A sink notes with its output which checkpoint it has committed last. If that is a later one than the last checkpoint,
the epochs between are run again. Nobody can tell whether they give the same records, so the job does not start.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opchain.runtime.errors import CheckpointError
from opchain.runtime.functions.sink import SinkOrigin
from opchain.runtime.job.orphans import each_committer

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.functions.sink import Committer
    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram

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
    """Makes sure that no sink has committed a later checkpoint than the last one.

    Args:
        job: The job.
        lineage: Its lineage.
        url: The directory of its checkpoints.
        last: The last checkpoint; 0 if there is none.
        is_dropped: Whether a later checkpoint was dropped because it was damaged. Its epoch gives the same output again.
        accepts_duplicates: Whether later commits are forgotten, so that what they wrote is written again.

    Raises:
        CheckpointError: A sink has.
    """

    def check(operator: OperatorProgram, committer: Committer) -> None:
        where = f"'{operator.name}' ({operator.call_site})"
        origin = SinkOrigin(lineage, operator.operator_id, where)
        committed = committer.last_commit(origin)
        if committed is None or committed <= last or is_dropped(committed):
            return
        if accepts_duplicates:
            _LOG.warning(
                "%s has committed checkpoint %d, and the last checkpoint of %s is %d: what it wrote since is written again",
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
