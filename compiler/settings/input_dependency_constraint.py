"""When a task with several inputs may start."""

from __future__ import annotations

from enum import Enum


class InputDependencyConstraint(Enum):
    """Whether one input with data is enough to start a task.

    Flink 2 no longer has it, and PyFlink still exports it. Spark starts a stage when all its inputs
    are there, which is `ALL`.
    """

    ANY = 0
    ALL = 1
