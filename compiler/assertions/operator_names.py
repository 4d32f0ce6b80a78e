"""Finding an operator of a plan by what the user calls it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from opchain.compiler.plan.layout import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.compiler.plan.model import JobPlan, PlannedOperator

# From the strongest claim on a name to the weakest. The last one takes the names that sources and
# sinks have before Flink decorates them.
_CLAIMS: tuple[Callable[[PlannedOperator, str], bool], ...] = (
    lambda operator, name: operator.uid == name,
    lambda operator, name: operator.name == name,
    lambda operator, name: operator.name in (f"Source: {name}", f"Sink: {name}", f"{name}: Writer"),
)


def operator_called(plan: JobPlan, name: str) -> PlannedOperator:
    """The operator with a uid, a name, or a name in front of which Flink writes `Source: ` or `Sink: `.

    Raises:
        ValueError: No operator or several are called so.
    """
    if not isinstance(name, str):
        raise TypeError(f"an operator is named by a str, not by {name!r}")
    for claims in _CLAIMS:
        found = [operator for operator in plan.operators if claims(operator, name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(
                f"{len(found)} operators are called '{name}': {_places(found)}; "
                "give the one that is meant a name or a uid of its own"
            )
    raise ValueError(_unknown(plan, name))


def _places(operators: Iterable[PlannedOperator]) -> str:
    return listed(f"{operator.kind} at {operator.call_site}" for operator in operators)


def _unknown(plan: JobPlan, name: str) -> str:
    known = list(
        dict.fromkeys(
            called
            for operator in plan.operators
            for called in (operator.name, operator.uid)
            if called is not None
        )
    )
    close = difflib.get_close_matches(name, known, n=1)
    guess = f" (did you mean '{close[0]}'?)" if close else ""
    return (
        f"no operator has the name or uid '{name}'{guess}; "
        f"the operators are {listed(repr(called) for called in known)}"
    )
