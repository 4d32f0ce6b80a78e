"""Points in the life of a checkpoint at which a test can kill a process.

The variable OPCHAIN_FAULTS lists points as `point@epoch`, separated by commas. The first process that reaches a point
kills itself with SIGKILL, so it cleans nothing up. A file in the folder OPCHAIN_FAULTS_FOLDER records the fault, so it
happens only once. Without the variable, a point costs one comparison.

`opchain.testing.faults` runs programs this way.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

VARIABLE = "OPCHAIN_FAULTS"
FOLDER_VARIABLE = "OPCHAIN_FAULTS_FOLDER"

POINTS = {
    "epoch-begun": "driver: the checkpoint is pending, no task runs yet",
    "before-state": "task: all input is processed, the state is not written",
    "after-state": "task: the state is written, and not acknowledged",
    "acknowledged": "driver: all tasks have acknowledged, the checkpoint is not complete",
    "completed": "driver: the checkpoint is complete, no sink has committed",
    "between-commits": "driver: the first sink has committed, others have not",
    "committed": "driver: all sinks have committed, Spark has not recorded the micro-batch",
}
"""The points, in the order in which an epoch reaches them."""


def reach(point: str, checkpoint_id: int) -> None:
    """Kills the process if OPCHAIN_FAULTS lists this point."""
    if _FAULTS and f"{point}@{checkpoint_id}" in _FAULTS and _is_first(point, checkpoint_id):
        os.kill(os.getpid(), signal.SIGKILL)


def read_faults(text: str, given_as: str = VARIABLE) -> frozenset[str]:
    """The points that the variable lists.

    Args:
        text: `point@epoch`, separated by commas.
        given_as: The name of the variable or option, for messages.

    Raises:
        ValueError: A point is unknown, or an epoch is not a number.
    """
    found = frozenset(filter(None, (item.strip() for item in text.split(","))))
    for item in found:
        point, _, epoch = item.partition("@")
        if point not in POINTS or not epoch.isdecimal():
            raise ValueError(
                f"{given_as} has {item!r}; use point@epoch, where the point is one of "
                f"{', '.join(POINTS)}"
            )
    return found


def _is_first(point: str, checkpoint_id: int) -> bool:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return True
    try:
        (Path(folder) / f"{point}@{checkpoint_id}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


_FAULTS = read_faults(os.environ.get(VARIABLE, ""))
