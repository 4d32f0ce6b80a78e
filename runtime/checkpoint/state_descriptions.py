"""What states an operator has, as the metadata of a checkpoint says it; and whether they are the same again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import StateDescription
from opchain.runtime.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.operators.context import OperatorContext

TIMERS = "timers"
"""The kind of a timer service."""


def describe_states(context: OperatorContext) -> tuple[StateDescription, ...]:
    """The states that an operator knows of, once it is open and has seen records."""
    found = list(context.operator_state.described_states())
    if context.keyed_state is not None:
        found += context.keyed_state.described_states()
        found += [(name, TIMERS, "") for name in context.timers.service_names()]
    return tuple(StateDescription(*described) for described in found)


def changed_states(
    before: Iterable[StateDescription], after: Iterable[StateDescription]
) -> list[str]:
    """What is wrong with starting from states as others, as sentences; states of one side don't count.

    A type that is not known is no difference: that is a state for which nobody has asked.
    """
    now = {(state.name, state.kind == TIMERS): state for state in after}
    problems = []
    for old in before:
        new = now.get((old.name, old.kind == TIMERS))
        if new is None:
            continue
        if new.kind != old.kind:
            problems.append(f"state '{old.name}' was saved as {old.kind} and is a {new.kind}")
        elif old.type and new.type and old.type != new.type:
            problems.append(f"state '{old.name}' was saved with type {old.type} and has {new.type}")
    return problems


def require_same_states(
    before: Iterable[StateDescription], after: Iterable[StateDescription], where: str
) -> None:
    """Refuses states that are not what was saved.

    Args:
        before: What the checkpoint says of the operator.
        after: What the operator says.
        where: The operator and its call site, for the message.

    Raises:
        StateError: A kind or type has changed.
    """
    problems = changed_states(before, after)
    if problems:
        raise StateError(
            f"{where}: {'; '.join(problems)}; use another name for the new state, or another uid "
            f"for the operator to start with empty state"
        )
