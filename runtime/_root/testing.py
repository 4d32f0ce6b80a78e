"""Assertions on plans, offline: which operators share a task, and that a plan is as reviewed.

>>> from opchain import StreamExecutionEnvironment
>>> from opchain.testing import assert_chained
>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> numbers = env.from_sequence(1, 9).map(lambda n: n + 1).name("add")
>>> _ = numbers.filter(lambda n: n % 2).name("odd").print()
>>> assert_chained(env, "add", "odd")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.assertions.chaining import assert_chained, assert_not_chained
    from opchain.compiler.assertions.plan_golden import assert_plan_matches
    from opchain.compiler.assertions.planned import plan_of

_MODULES = {
    "assert_chained": "opchain.compiler.assertions.chaining",
    "assert_not_chained": "opchain.compiler.assertions.chaining",
    "assert_plan_matches": "opchain.compiler.assertions.plan_golden",
    "plan_of": "opchain.compiler.assertions.planned",
}


def __getattr__(name: str) -> Any:
    """Loads an assertion, and with it the compiler, when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(_MODULES)


__all__ = ["assert_chained", "assert_not_chained", "assert_plan_matches", "plan_of"]
