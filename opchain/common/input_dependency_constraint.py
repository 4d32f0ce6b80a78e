"""When a task with several inputs may start. PyFlink: pyflink.common.input_dependency_constraint."""

from __future__ import annotations

from opchain.compiler.settings.execution_config import InputDependencyConstraint

__all__ = [
    "InputDependencyConstraint",
]
