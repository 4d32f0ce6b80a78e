"""Which operator of one plan is which of another: by what the user fixed first, by looks last.

A uid is a promise. A generated id is none: adding an operator shifts those of others, so that an equal
id may well belong to another operator (that is what makes a careless restore dangerous). Hence ids
count only together with name or kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from opchain.compiler.plan.model import PlannedOperator


class Match(NamedTuple):
    """An operator before and after."""

    before: PlannedOperator
    after: PlannedOperator


class Matching(NamedTuple):
    """Operators of both plans, each in the order of its plan."""

    matches: list[Match]
    removed: list[PlannedOperator]
    added: list[PlannedOperator]


_IDENTITIES: tuple[Callable[[PlannedOperator], Hashable], ...] = (
    lambda operator: operator.uid,
    lambda operator: (operator.id, operator.name, operator.kind),
    lambda operator: (operator.name, operator.kind),
    lambda operator: (operator.id, operator.kind),
)


def match_operators(
    before: Sequence[PlannedOperator], after: Sequence[PlannedOperator]
) -> Matching:
    """Pairs the operators of two plans.

    Identities are tried from the strongest to the weakest, each on what is left. Operators that one
    identity cannot tell apart are paired in the order of the program.
    """
    matches: dict[int, Match] = {}
    left_before, left_after = list(before), list(after)
    for identity in _IDENTITIES:
        waiting: dict[Hashable, list[PlannedOperator]] = {}
        for operator in left_after:
            if identity(operator) is not None:
                waiting.setdefault(identity(operator), []).append(operator)
        for operator in left_before:
            candidates = waiting.get(identity(operator))
            if candidates:
                matches[operator.node] = Match(operator, candidates.pop(0))
        taken = {match.after.node for match in matches.values()}
        left_before = [operator for operator in left_before if operator.node not in matches]
        left_after = [operator for operator in left_after if operator.node not in taken]
    ordered = [matches[operator.node] for operator in before if operator.node in matches]
    return Matching(ordered, left_before, left_after)
