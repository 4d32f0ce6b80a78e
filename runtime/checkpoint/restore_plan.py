"""Which operator of a program is restored from which state of a checkpoint.

State is found by operator id: first by the id that `set_uid_hash` gave, then by the generated id, as in Flink
(`StateAssignmentOperation`). An operator cannot be restored if its keyed state has another number of key groups or
another type of key, or was saved by another kind of operator, such as a window. It also cannot run in more tasks than
there are key groups.

As in Flink, a function need not request all of its states again: checkpoints keep the others.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorMetadata,
    SourceKind,
    StateDescription,
)
from opchain.runtime.checkpoint.source_numbers import match_sources, source_kind
from opchain.runtime.errors import ALLOW_NON_RESTORED_STATE, CheckpointError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.operators.operator import OperatorContext
    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram


TIMERS = "timers"
"""The kind of a timer service."""


def describe_states(context: OperatorContext) -> tuple[StateDescription, ...]:
    """The states that an operator has registered or restored."""
    found = list(context.operator_state.described_states())
    if context.keyed is not None:
        found += context.keyed.state.described_states()
        services = context.keyed.timers.described_services()
        found += [(name, TIMERS, type_text) for name, type_text in services]
    return tuple(StateDescription(*described) for described in found)


def changed_states(
    before: Iterable[StateDescription], after: Iterable[StateDescription]
) -> list[str]:
    """The incompatible changes of states, as sentences. States that exist on one side only are compatible.

    So is a state without a known type, which no function has requested.
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
    """Checks that the states of an operator match the saved states.

    Args:
        before: The states in the checkpoint.
        after: The states of the operator.
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


_LOG = logging.getLogger("opchain.epochs")


@dataclass(frozen=True, slots=True)
class ProgramOperator:
    """An operator of the program that is to start.

    `max_parallelism` is None if the program does not set it; the checkpoint then decides. `states` are the states that
    are known before the operator runs, usually none. `source` is None if the operator is not a source. `kind` is the
    kind of its spec, empty if it is not known.
    """

    operator_id: str
    name: str
    call_site: str
    parallelism: int
    max_parallelism: int | None
    uid: str | None = None
    uid_hash: str | None = None
    states: tuple[StateDescription, ...] = ()
    source: SourceKind | None = None
    key_types: tuple[str, ...] = ()
    kind: str = ""

    @property
    def label(self) -> str:
        """The operator in messages: `'Map' (clicks.py:14)`."""
        return f"'{self.name}' ({self.call_site})"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The effects of starting a program from a checkpoint.

    `restored` pairs operators with their state. `new` operators start without state. No operator claims the state in
    `dropped`. `reread` has a sentence for each source that is read again, and `refused` has one for each reason why the
    program cannot start.
    """

    metadata: CheckpointMetadata
    restored: tuple[tuple[ProgramOperator, OperatorMetadata], ...]
    new: tuple[ProgramOperator, ...]
    dropped: tuple[OperatorMetadata, ...]
    refused: tuple[str, ...]
    reread: tuple[str, ...] = ()

    @property
    def stored_by_id(self) -> Mapping[str, OperatorMetadata]:
        """The stored state of each operator, by its id in the program."""
        return {operator.operator_id: stored for operator, stored in self.restored}

    def can_start(self, *, allow_non_restored_state: bool) -> bool:
        """Whether the program can start."""
        is_lost = bool(self.dropped or self.reread)
        return not self.refused and (allow_non_restored_state or not is_lost)

    def require(self, *, allow_non_restored_state: bool) -> None:
        """Checks that the program can start.

        Raises:
            CheckpointError: It can't start, or it would lose state or positions and that is not allowed.
        """
        problems = list(self.refused)
        if self.dropped and not allow_non_restored_state:
            lost = ", ".join(map(_described, self.dropped))
            problems.append(
                f"no operator claims the state of {lost}; give this uid to an operator, or set_uid_hash() with "
                f"this id, or {ALLOW_NON_RESTORED_STATE} to discard the state"
            )
        if not allow_non_restored_state:
            problems += [
                f"{problem}; to start anyway, {ALLOW_NON_RESTORED_STATE}" for problem in self.reread
            ]
        if problems:
            raise CheckpointError(
                f"the program can't start from checkpoint {self.metadata.checkpoint_id} of "
                f"'{self.metadata.job_name}': {'; '.join(problems)}"
            )


def plan_restore(metadata: CheckpointMetadata, operators: Sequence[ProgramOperator]) -> RestorePlan:
    """The plan for starting operators from a checkpoint. It lists problems, and raises nothing."""
    stored = {operator.operator_id: operator for operator in metadata.operators}
    taken: dict[str, ProgramOperator] = {}
    for operator in operators:
        if operator.uid_hash in stored:
            taken[operator.uid_hash] = operator
    served = {id(operator) for operator in taken.values()}
    for operator in operators:
        if operator.operator_id in stored and id(operator) not in served:
            taken.setdefault(operator.operator_id, operator)
    matched = match_sources(metadata, operators)
    found = {id(operator): stored[stored_id] for stored_id, operator in taken.items()}
    restored = tuple(
        (operator, found[id(operator)]) for operator in operators if id(operator) in found
    )
    return RestorePlan(
        metadata,
        restored,
        new=tuple(operator for operator in operators if id(operator) not in found),
        dropped=tuple(old for old_id, old in stored.items() if old_id not in taken),
        refused=tuple(
            problem for operator, old in restored for problem in _refusals(operator, old, metadata)
        )
        + matched.refused,
        reread=matched.reread,
    )


def match_state(
    metadata: CheckpointMetadata, job: JobProgram, *, allow_non_restored_state: bool = False
) -> RestorePlan:
    """Plans the restore of a job. Logs a warning for each source that is read again.

    Raises:
        CheckpointError: The job can't start from the checkpoint, or state would be lost.
    """
    plan = plan_restore(metadata, operators_of(job))
    plan.require(allow_non_restored_state=allow_non_restored_state)
    for problem in plan.reread:
        _LOG.warning(
            "checkpoint %d of '%s': %s", metadata.checkpoint_id, metadata.job_name, problem
        )
    return plan


def operators_of(job: JobProgram) -> list[ProgramOperator]:
    """The operators of a compiled job."""
    return [
        program_operator(operator, vertex.parallelism, vertex.max_parallelism)
        for vertex in job.vertices
        for operator in vertex.all_operators
    ]


def program_operator(
    operator: OperatorProgram, parallelism: int, max_parallelism: int | None
) -> ProgramOperator:
    """An operator of a compiled job, as a ProgramOperator."""
    return ProgramOperator(
        operator.operator_id,
        operator.name,
        operator.call_site,
        parallelism,
        max_parallelism,
        operator.uid,
        operator.uid_hash,
        source=source_kind(operator.spec),
        key_types=operator.key_types,
        kind=getattr(operator.spec, "guarded", operator.spec).kind,
    )


def _refusals(
    operator: ProgramOperator, stored: OperatorMetadata, metadata: CheckpointMetadata
) -> Iterable[str]:
    groups = stored.max_parallelism
    if stored.is_keyed and operator.max_parallelism not in (None, groups):
        yield (
            f"keyed state of {operator.label} is stored in {groups} key groups, and its max parallelism is now "
            f"{operator.max_parallelism}: set_max_parallelism({groups})"
        )
    elif stored.is_keyed and operator.parallelism > groups:
        yield (
            f"keyed state of {operator.label} is stored in {groups} key groups, too few for the "
            f"{operator.parallelism} tasks that it now has: set_parallelism({groups}) or less"
        )
    was, now = (", ".join(dict.fromkeys(of.key_types)) for of in (stored, operator))
    if was and not now and _has_keyed_state(stored, metadata):
        yield (
            f"keyed state of {operator.label} can't be restored, because it is not keyed now: call key_by() before it, "
            "or give the operator another uid to start with empty state"
        )
    elif was and now and set(stored.key_types) != set(operator.key_types):
        yield (
            f"keyed state of {operator.label} was saved with keys of type {was}, and its keys now have type {now}: "
            "declare the old type as key_type of key_by(), or give the operator another uid to start with empty state"
        )
    elif stored.is_keyed and stored.states and operator.kind not in ("", "guarded"):
        saved_by, is_now = _owner_of(stored.states), _OWNER_OF_KIND.get(operator.kind, _FUNCTION)
        if saved_by != is_now:
            yield (
                f"keyed state of {operator.label} was saved by {saved_by}, and the operator is now {is_now}, which can't "
                "use it: give the operator another uid to start with empty state"
            )
    for problem in changed_states(stored.states, operator.states):
        yield f"{operator.label}: {problem}"


_FUNCTION, _REDUCE, _JOIN, _WINDOW = "a function", "a reduce", "an interval join", "a window"

_OWNER_OF_STATE = {
    "_op_state": _REDUCE,
    "LEFT_BUFFER": _JOIN,
    "RIGHT_BUFFER": _JOIN,
    "window-contents": _WINDOW,
    "window-timers": _WINDOW,
}
"""The operators that have states of their own, by the name of the state. Functions have all other states."""

_OWNER_OF_KIND = {
    "reduce": _REDUCE,
    "interval_join": _JOIN,
    "window": _WINDOW,
    "full_window": _WINDOW,
}


def _owner_of(states: Iterable[StateDescription]) -> str:
    """The kind of operator that saved keyed states."""
    found = (_OWNER_OF_STATE[state.name] for state in states if state.name in _OWNER_OF_STATE)
    return next(found, _FUNCTION)


def _has_keyed_state(stored: OperatorMetadata, metadata: CheckpointMetadata) -> bool:
    return any(
        stored.operator_id in state.operators and state.key_groups is not None
        for state in metadata.tasks_of(stored)
    )


def _described(stored: OperatorMetadata) -> str:
    uid = "without uid" if stored.uid is None else f"uid '{stored.uid}'"
    return f"'{stored.name}' ({stored.call_site}, {uid}, id {stored.operator_id})"
