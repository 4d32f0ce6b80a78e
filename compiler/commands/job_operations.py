"""`opchain stop` and `opchain cancel`, and savepoints of jobs that run: asked for through their checkpoint folder."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from opchain.compiler.commands.checkpoint_key_option import takes_key
from opchain.compiler.commands.failures import clear_errors
from opchain.compiler.commands.output import answer
from opchain.runtime.checkpoint.job_requests import JobRequest, Kind, await_answer, post
from opchain.runtime.checkpoint.storage import checkpoint_storage

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey

TIMEOUT_S = 600.0


def ask_job(
    job: str,
    kind: Kind,
    *,
    target: str | None = None,
    drain: bool = False,
    key: CheckpointKey | None = None,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Asks the job whose checkpoints are in a folder; the path of the savepoint, if it is to take one.

    Raises:
        CheckpointError: No job runs there, or it refuses.
    """
    storage = checkpoint_storage(job, key)
    request = JobRequest(
        uuid.uuid4().hex, kind, target=None if target is None else _absolute(target), drain=drain
    )
    post(storage, request)
    return str(await_answer(storage, request, timeout_s)["path"])


def _absolute(target: str) -> str:
    """The driver has another working directory."""
    return target if urlsplit(target).scheme else os.path.abspath(target)  # noqa: PTH100 - keeps links


@click.command(short_help="Stops JOB with a savepoint after the current epoch.")
@click.argument("job")
@click.argument("target", required=False)
@click.option("--drain", is_flag=True, help="End event time first: all windows fire.")
@click.option("--timeout", "timeout_s", default=TIMEOUT_S, help="Seconds to wait for the job.")
@takes_key
def stop(
    job: str, target: str | None, drain: bool, timeout_s: float, key: CheckpointKey | None
) -> None:
    """Stops the job whose checkpoints are in the folder JOB, and takes a savepoint.

    TARGET is a path or URL of a folder that is empty, as the job's driver sees it; without it the savepoint goes
    to a folder of its own in the job's execution.checkpointing.savepoint-dir. Any machine may ask that reaches JOB.

    Exit codes: 0 stopped, 2 no job runs there, or it refuses.
    """
    with clear_errors():
        path = ask_job(job, "stop", target=target, drain=drain, key=key, timeout_s=timeout_s)
    answer(f"stopped with savepoint {path}\n")


@click.command(short_help="Cancels JOB, without a savepoint.")
@click.argument("job")
@click.option("--timeout", "timeout_s", default=TIMEOUT_S, help="Seconds to wait for the job.")
@takes_key
def cancel(job: str, timeout_s: float, key: CheckpointKey | None) -> None:
    """Cancels the job whose checkpoints are in the folder JOB. Started again, it resumes from the last one.

    Exit codes: 0 cancelled, 2 no job runs there, or it refuses.
    """
    with clear_errors():
        ask_job(job, "cancel", key=key, timeout_s=timeout_s)
    answer("cancelled\n")
