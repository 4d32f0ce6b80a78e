"""`opchain savepoint`, `opchain stop` and `opchain cancel`: a request to a running job is a file in its checkpoint directory."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from opchain.compiler.command_line.failures import CommandError, clear_errors
from opchain.compiler.command_line.keys import key_of, takes_key
from opchain.compiler.command_line.output import answer, examples
from opchain.compiler.commands.checkpoint import show_signature
from opchain.compiler.plan.checkpoint_text import checkpoint_text
from opchain.runtime.checkpoint.job_requests import JobRequest, Kind, await_answer, post
from opchain.runtime.checkpoint.run_lease import running_run
from opchain.runtime.checkpoint.savepoint import Located, find_checkpoint, write_savepoint
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
    """Sends a request to the job whose checkpoints are in a folder; returns the path of its savepoint, if it takes one.

    Raises:
        CheckpointError: No job runs there, or it refuses.
    """
    storage = checkpoint_storage(job, key)
    storage.require_folder()
    request = JobRequest(
        uuid.uuid4().hex, kind, target=None if target is None else _absolute(target), drain=drain
    )
    post(storage, request)
    return str(await_answer(storage, request, timeout_s)["path"])


def _absolute(target: str) -> str:
    """An absolute path: the driver has another working directory."""
    return target if urlsplit(target).scheme else os.path.abspath(target)  # noqa: PTH100 - keeps links


@click.command(
    short_help="Stops JOB with a savepoint after the current epoch.",
    epilog=examples("opchain stop /data/job", "opchain stop /data/job /data/savepoint --drain"),
)
@click.argument("job")
@click.argument("target", required=False)
@click.option(
    "--drain", is_flag=True, help="First advance event time to its end, so that all windows fire."
)
@click.option("--timeout", "timeout_s", default=TIMEOUT_S, help="Seconds to wait for the job.")
@takes_key
def stop(
    job: str, target: str | None, drain: bool, timeout_s: float, key: CheckpointKey | None
) -> None:
    """Stops the job whose checkpoints are in the folder JOB, and takes a savepoint.

    The driver of the job writes the savepoint to TARGET, the path or URL of an empty folder. Without TARGET it creates
    a folder in the job's execution.checkpointing.savepoint-dir. This command works on any machine that can access JOB.

    Exit codes: 0 stopped, 2 no job runs there, or it refuses.
    """
    with clear_errors():
        path = ask_job(job, "stop", target=target, drain=drain, key=key, timeout_s=timeout_s)
    answer(f"stopped with savepoint {path}\n")


@click.command(
    short_help="Cancels JOB, without a savepoint.",
    epilog=examples("opchain cancel /data/job", "opchain cancel /data/job --timeout 30"),
)
@click.argument("job")
@click.option("--timeout", "timeout_s", default=TIMEOUT_S, help="Seconds to wait for the job.")
@takes_key
def cancel(job: str, timeout_s: float, key: CheckpointKey | None) -> None:
    """Cancels the job whose checkpoints are in the folder JOB. Its next run resumes from the last checkpoint.

    Exit codes: 0 cancelled, 2 there is no running job, or it refuses.
    """
    with clear_errors():
        ask_job(job, "cancel", key=key, timeout_s=timeout_s)
    answer("cancelled\n")


@click.command(
    short_help="Copies CHECKPOINT to TARGET, or asks a running job for one.",
    epilog=examples(
        "opchain savepoint /data/job /data/savepoint",
        "opchain savepoint /data/job /data/signed --sign-with checkpoint.key",
    ),
)
@click.argument("checkpoint")
@click.argument("target", required=False)
@takes_key
@click.option(
    "--sign-with",
    metavar="FILE",
    help="Sign TARGET with the key in FILE: for a CHECKPOINT that is not signed, or to change keys.",
)
@click.option("--copy", is_flag=True, help="Copy the last checkpoint, even if the job is running.")
def savepoint(
    checkpoint: str,
    target: str | None,
    key: CheckpointKey | None,
    sign_with: str | None,
    copy: bool,
) -> None:
    """Takes a savepoint: a copy of a checkpoint that needs no other files and is never removed.

    If CHECKPOINT is the folder of a running job, the job takes the savepoint after its current epoch. The driver writes
    it to TARGET, or without TARGET to its execution.checkpointing.savepoint-dir.

    Otherwise CHECKPOINT is as in 'opchain checkpoint', and is copied. TARGET is the path or URL of an empty folder.
    Nothing is unpickled.
    """
    new_key = key_of(sign_with)
    with clear_errors():
        if not copy and new_key is None and is_running(checkpoint, key):
            path = ask_job(checkpoint, "savepoint", target=target, key=key)
            answer(f"savepoint {path}\n")
            return
        if target is None:
            raise CommandError(
                f"no running job has its checkpoints in {checkpoint}: pass TARGET to copy the last checkpoint"
            )
        found = find_checkpoint(checkpoint, key)
        written = write_savepoint(found, target, new_key)
        answer(checkpoint_text(written))
        show_signature(Located(checkpoint_storage(target, new_key or key), written))


def is_running(checkpoint: str, key: CheckpointKey | None) -> bool:
    """Whether a job runs that has its checkpoints in this folder."""
    return running_run(checkpoint_storage(checkpoint, key)) is not None


COMMANDS = (cancel, savepoint, stop)
