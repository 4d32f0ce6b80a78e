"""What a restore from the state of one plan would do under another.

State is stored under the generated operator id, and found by an operator of that id, or of that uid
hash (Flink: `StateAssignmentOperation`). Where the two plans disagree, each stateful operator is one of
the cases below. Whether what is found can be read by the new code, only the savepoint can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opchain.compiler.graph.transformation import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from opchain.compiler.plan.diff import Matching
    from opchain.compiler.plan.model import JobPlan, PlannedOperator, PlannedVertex


class StateProblem(NamedTuple):
    """State that a restore would lose, hand to another operator, or refuse; and the way out."""

    code: str
    text: str
    remedy: str


def state_problems(before: JobPlan, after: JobPlan, matching: Matching) -> list[StateProblem]:
    """Everything that stands between a savepoint of `before` and the program `after`."""
    return [
        *_lost_or_misplaced(before, after, matching),
        *_changed_kinds(matching),
        *_changed_key_groups(before, after, matching),
    ]


def _lost_or_misplaced(
    before: JobPlan, after: JobPlan, matching: Matching
) -> Iterable[StateProblem]:
    stored = {operator.id for operator in before.operators if operator.state is not None}
    finders = _finders(after, stored)
    now_is = {match.before.node: match.after for match in matching.matches}
    for old in before.operators:
        if old.state is None:
            continue
        same, finder = now_is.get(old.node), finders.get(old.id)
        if finder is not None and (same is None or finder.node != same.node):
            yield StateProblem(
                "misplaced",
                f"{old.state} of '{old.name}' would be handed to '{finder.name}' "
                f"({finder.call_site}), which now has its operator id {old.id}",
                "give both operators a uid, in the old program first",
            )
        elif same is None:
            yield StateProblem(
                "orphaned",
                f"{old.state} of '{old.name}' (id {old.id}) has no operator any more",
                "allow non-restored state when you restore, if it may be dropped",
            )
        elif finder is None:
            yield StateProblem(
                "lost",
                f"{old.state} of '{old.name}' would not be found: its operator id changed from "
                f"{old.id} to {same.id}{_why_id_changed(old, same)}",
                (f"uid('{old.uid}') again, or " if old.uid is not None else "")
                + f"set_uid_hash('{old.id}') on '{same.name}' ({same.call_site})",
            )


def _finders(plan: JobPlan, stored: AbstractSet[str]) -> Mapping[str, PlannedOperator]:
    """The operator that takes the state of each id.

    An operator looks under its uid hash first, and then not under its generated id.
    """
    by_hash = {
        operator.user_id.lower(): operator
        for operator in plan.operators
        if operator.user_id is not None and operator.user_id.lower() in stored
    }
    content = {operator.node for operator in by_hash.values()}
    generated = {op.id: op for op in plan.operators if op.node not in content}
    return generated | by_hash


def _why_id_changed(old: PlannedOperator, new: PlannedOperator) -> str:
    if old.uid is None and new.uid is None:
        return " (it has no uid, so the id follows from its place in the graph)"
    return f" (its uid was {_uid(old)} and is {_uid(new)})"


def _uid(operator: PlannedOperator) -> str:
    return "not set" if operator.uid is None else f"'{operator.uid}'"


def _changed_kinds(matching: Matching) -> Iterable[StateProblem]:
    for old, new in matching.matches:
        if old.state is not None and old.kind != new.kind:
            yield StateProblem(
                "kind",
                f"'{new.name}' ({new.call_site}) was a {old.kind} and is a {new.kind}: the state it "
                "finds was written by another kind of operator",
                "give it a new uid to start with empty state",
            )


def _changed_key_groups(
    before: JobPlan, after: JobPlan, matching: Matching
) -> Iterable[StateProblem]:
    """Keyed state is stored by key group, and their number is fixed forever once it is written.

    A max parallelism that the program leaves open takes the stored one (Flink:
    `StateAssignmentOperation.checkParallelismPreconditions`), as long as it can hold the parallelism.
    """
    for old, new in matching.matches:
        if old.state is None or not old.keys:
            continue
        stored = _vertex_of(before, old).effective_max_parallelism
        vertex = _vertex_of(after, new)
        if stored == UNSET:
            continue
        if vertex.max_parallelism not in (UNSET, stored):
            yield StateProblem(
                "max-parallelism",
                f"keyed state of '{new.name}' ({new.call_site}) is stored in {stored} key groups, and "
                f"its max parallelism is now {vertex.max_parallelism}",
                f"set_max_parallelism({stored}) on '{new.name}'",
            )
        elif vertex.parallelism > stored:
            yield StateProblem(
                "parallelism",
                f"keyed state of '{new.name}' ({new.call_site}) is stored in {stored} key groups, too "
                f"few for the {vertex.parallelism} tasks it now has",
                f"set_parallelism({stored}) or less on '{new.name}'",
            )


def _vertex_of(plan: JobPlan, operator: PlannedOperator) -> PlannedVertex:
    return plan.vertices[plan.vertex_number_of[operator.node] - 1]
