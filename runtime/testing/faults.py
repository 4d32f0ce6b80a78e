"""Runs a program until it succeeds, and kills its processes at chosen points of its checkpoints.

    from opchain.testing import faults

    faults.run_with_kills([sys.executable, "job.py"], ["before-state@2", "completed@3"])
    assert output_of_job == what_an_undisturbed_run_gives

The program must have checkpoints (`execution.checkpointing.dir`) and must end without a stop command, for example with the
trigger available-now. A point is `point@epoch`: `faults.POINTS` lists them. A driver that dies is
started again, as by a cluster manager. Spark retries tasks if the master allows it (`local[2,3]`, a cluster).
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.fault_points import (
    FOLDER_VARIABLE,
    POINTS,
    VARIABLE,
    read_faults,
)
from opchain.runtime.errors import TaskFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["POINTS", "SurvivedRun", "run_with_kills"]

MOST_STARTS = 20


@dataclass(frozen=True, slots=True)
class SurvivedRun:
    """The result of a program that has succeeded.

    `starts` is the number of starts of the driver. `died` are the points at which processes were killed. `output` is
    the standard output of the last start.
    """

    starts: int
    died: tuple[str, ...]
    output: str


def run_with_kills(
    command: Sequence[str],
    kills: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 300,
) -> SurvivedRun:
    """Runs a program until it succeeds, and kills its processes on the way.

    Args:
        command: The program and its arguments.
        kills: The points at which a process is killed once, as `point@epoch`.
        environment: Variables in addition to those of this process.
        timeout_s: The longest time of one start, in seconds.

    Raises:
        ValueError: A point is unknown.
        TaskFailedError: The program failed without a kill, or was started too often.
    """
    read_faults(",".join(kills), "kills")
    with tempfile.TemporaryDirectory(prefix="opchain-faults-") as folder:
        variables = {
            **os.environ,
            **(environment or {}),
            VARIABLE: ",".join(kills),
            FOLDER_VARIABLE: folder,
        }
        for start in range(1, MOST_STARTS + 1):
            ended = subprocess.run(  # noqa: S603 - the caller's own program
                list(command),
                env=variables,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
            if ended.returncode == 0:
                died = tuple(kill for kill in kills if (Path(folder) / kill).exists())
                return SurvivedRun(start, died, ended.stdout)
            if ended.returncode not in (-signal.SIGKILL, 128 + signal.SIGKILL):
                raise TaskFailedError(
                    f"start {start} of {' '.join(command)} failed without a kill, with exit code "
                    f"{ended.returncode}: {ended.stderr[-2000:]}"
                )
    raise TaskFailedError(
        f"{' '.join(command)} was started {MOST_STARTS} times without reaching its end"
    )
