"""When a task with several inputs may start. PyFlink: pyflink.common.input_dependency_constraint."""

from __future__ import annotations

from opchain.compiler.settings.execution_config import InputDependencyConstraint
from opchain.reexports import reexports

__all__ = [
    "InputDependencyConstraint",
]

__getattr__ = reexports(__name__)
