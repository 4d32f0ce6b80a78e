"""What changed between two plans: operators are matched, and changes named as in a review (chained, unchained, moved, renamed).

An operator that has a uid is matched by it. A generated id is not stable: adding an operator shifts the ids of
others, so an equal id may belong to another operator. That makes a careless restore dangerous. So equal ids count
only if the name or the kind is equal, too.

State is stored under the generated operator id. A restore finds it by this id or by the uid hash (Flink:
`StateAssignmentOperation`). `state_problems` has a case for each way in which a stateful operator can differ. Only the
savepoint can tell whether the new code can read the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.plan.layout import (
    DEFAULT_WIDTH,
    Line,
    Paragraph,
    counted,
    listed,
    one_line,
    set_lines,
)
from opchain.compiler.plan.text import exchange_text
from opchain.runtime.errors import ALLOW_NON_RESTORED_STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedOperator, PlannedVertex


class StateProblem(NamedTuple):
    """State that a restore would lose, refuse, or assign to another operator; and what to do."""

    code: str
    text: str
    remedy: str


def state_problems(before: JobPlan, after: JobPlan, matching: Matching) -> list[StateProblem]:
    """All problems of restoring a savepoint of `before` into the program `after`."""
    return [
        *_lost_or_misplaced(before, after, matching),
        *_changed_kinds(matching),
        *_changed_key_groups(before, after, matching),
        *_changed_key_types(matching),
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
                f"{old.state} of '{old.name}' would be handed to {finder.label}, "
                f"which now has its operator id {old.id}",
                "give both operators a uid, in the old program first",
            )
        elif same is None:
            yield StateProblem(
                "orphaned",
                f"{old.state} of '{old.name}' (id {old.id}) has no operator any more",
                f"to drop it, {ALLOW_NON_RESTORED_STATE} when you restore",
            )
        elif finder is None:
            yield StateProblem(
                "lost",
                f"{old.state} of '{old.name}' would not be found: its operator id changed from "
                f"{old.id} to {same.id}{_why_id_changed(old, same)}",
                (f"uid('{old.uid}') again, or " if old.uid is not None else "")
                + f"set_uid_hash('{old.id}') on {same.label}",
            )


def _finders(plan: JobPlan, stored: AbstractSet[str]) -> Mapping[str, PlannedOperator]:
    """The operator that restores the state of each id.

    An operator with a uid hash looks for state under it, and not under its generated id.
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


def _kinds(old: PlannedOperator, new: PlannedOperator) -> tuple[str, str]:
    """Both kinds of operators, with the names of DSL methods, unless both have the same name."""
    if old.word != new.word:
        return old.word, new.word
    return old.kind.replace("_", " "), new.kind.replace("_", " ")


def _changed_kinds(matching: Matching) -> Iterable[StateProblem]:
    for old, new in matching.matches:
        if old.state is not None and old.kind != new.kind:
            was, is_now = _kinds(old, new)
            yield StateProblem(
                "kind",
                f"{new.label} was a {was} and is a {is_now}: the state it "
                "finds was written by another kind of operator",
                "give it a new uid to start with empty state",
            )


def _changed_key_groups(
    before: JobPlan, after: JobPlan, matching: Matching
) -> Iterable[StateProblem]:
    """Keyed state is stored by key group. The number of key groups can never change once state is written.

    If the program does not set a max parallelism, the operator uses the stored one, unless the parallelism is greater
    (Flink: `StateAssignmentOperation.checkParallelismPreconditions`).
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
                f"keyed state of {new.label} is stored in {stored} key groups, and "
                f"its max parallelism is now {vertex.max_parallelism}",
                f"set_max_parallelism({stored}) on '{new.name}'",
            )
        elif vertex.parallelism > stored:
            yield StateProblem(
                "parallelism",
                f"keyed state of {new.label} is stored in {stored} key groups, too "
                f"few for the {vertex.parallelism} tasks it now has",
                f"set_parallelism({stored}) or less on '{new.name}'",
            )


def _changed_key_types(matching: Matching) -> Iterable[StateProblem]:
    for old, new in matching.matches:
        was, now = (", ".join(dict.fromkeys(of.key_types)) for of in (old, new))
        if old.state is not None and was and now and was != now:
            yield StateProblem(
                "key-type",
                f"the keys of {new.label} had type {was}, and now have type {now}",
                "declare the old type as key_type of key_by(), or give it a new uid to start with empty state",
            )


def _vertex_of(plan: JobPlan, operator: PlannedOperator) -> PlannedVertex:
    return plan.vertices[plan.vertex_number_of[operator.node] - 1]


class Match(NamedTuple):
    """The same operator in both plans."""

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
    """Matches the operators of two plans.

    Identities are tried from the strongest to the weakest, each for the remaining operators. Operators with the same
    identity are matched in the order of the program.
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


class Change(NamedTuple):
    """One difference. `kind` is stable: tools and tests use it."""

    kind: str
    text: str


class PlanDiff(NamedTuple):
    """The differences in the order of the program, and their effect on state."""

    changes: list[Change]
    state: list[StateProblem]
    starts_empty: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether the plans are equal, except for call sites and reasons."""
        return not self.changes and not self.state


def diff_plans(before: JobPlan, after: JobPlan) -> PlanDiff:
    """Compares two plans; call sites and reasons are not compared."""
    matching = match_operators(before.operators, after.operators)
    finds_state = {operator.id for operator in before.operators if operator.state is not None}
    changes = [
        *_job_changes(before, after),
        *(Change("removed", f"{_named(operator)}") for operator in matching.removed),
        *(Change("added", f"{_named(operator)}") for operator in matching.added),
        *_operator_changes(matching),
        *_edge_changes(before, after, matching),
        *_vertex_changes(before, after, matching),
    ]
    starts_empty = [
        f"'{operator.name}'"
        for operator in matching.added
        if operator.state is not None
        and not {operator.id, (operator.user_id or "").lower()} & finds_state
    ]
    return PlanDiff(changes, state_problems(before, after, matching), starts_empty)


def diff_text(diff: PlanDiff, *, width: int = DEFAULT_WIDTH) -> str:
    """The differences as text, one per line. A sentence if there are none."""
    if diff.is_empty:
        return "the plans are the same\n"
    lines: list[Line] = [
        Paragraph("", f"{change.kind:<16}", change.text) for change in diff.changes
    ]
    if diff.state:
        lines += ["", f"restoring state: {counted(len(diff.state), 'problem')}"]
    for problem in diff.state:
        lines.append(Paragraph("  ", f"{problem.code}: ", problem.text))
        lines.append(Paragraph("      ", "what to do: ", problem.remedy))
    if diff.starts_empty:
        lines += ["", Paragraph("", "starts with empty state: ", listed(diff.starts_empty))]
    return set_lines(lines, width)


def _job_changes(before: JobPlan, after: JobPlan) -> Iterable[Change]:
    if before.job_name != after.job_name:
        yield Change("job name", f"'{before.job_name}' -> '{after.job_name}'")
    if before.mode != after.mode:
        yield Change("mode", f"{before.mode} -> {after.mode}")


_ATTRIBUTES: tuple[tuple[str, Callable[[PlannedOperator], object]], ...] = (
    ("uid", lambda operator: "none" if operator.uid is None else f"'{operator.uid}'"),
    ("uid hash", lambda operator: operator.user_id or "none"),
    ("parallelism", lambda operator: operator.parallelism),
    (
        "max parallelism",
        lambda op: "unset" if op.max_parallelism == UNSET else op.max_parallelism,
    ),
    ("moved", lambda operator: f"slot sharing group '{operator.slot_sharing_group}'"),
    ("state", lambda operator: operator.state or "none"),
    ("description", lambda op: "none" if op.description is None else f'"{op.description}"'),
)


def _operator_changes(matching: Matching) -> Iterable[Change]:
    """Names and kinds are listed one by one. For other attributes, equal changes of several operators share a line."""
    for old, new in matching.matches:
        if old.name != new.name:
            yield Change("renamed", f"'{one_line(old.name)}' -> '{one_line(new.name)}'")
        if old.kind != new.kind:
            was, is_now = _kinds(old, new)
            yield Change("kind", f"'{one_line(new.name)}': {was} -> {is_now}")
    for attribute, value_of in _ATTRIBUTES:
        changed: dict[str, list[str]] = {}
        for old, new in matching.matches:
            if value_of(old) != value_of(new):
                how = f"{value_of(old)} -> {value_of(new)}"
                changed.setdefault(how, []).append(f"'{one_line(new.name)}'")
        for how, names in changed.items():
            yield Change(attribute, f"{listed(names)}: {how}")


def _edge_changes(before: JobPlan, after: JobPlan, matching: Matching) -> Iterable[Change]:
    """Edges are equal if their ends, input and side output are equal."""
    now_is = {match.before.node: match.after.node for match in matching.matches}
    old_edges = _by_ends(before, now_is)
    new_edges = _by_ends(after, {node: node for node in now_is.values()})
    for ends, new in new_edges.items():
        old = old_edges.get(ends)
        if old is not None:
            yield from _edge_change(after, old, new)
    yield from _rewired(before, after, matching, now_is)


_Ends: TypeAlias = tuple[int, int, int, str | None, int]


def _by_ends(plan: JobPlan, node_after: dict[int, int]) -> dict[_Ends, PlannedEdge]:
    found: dict[_Ends, PlannedEdge] = {}
    for edge in plan.edges:
        if edge.source not in node_after or edge.target not in node_after:
            continue
        source, target = node_after[edge.source], node_after[edge.target]
        twin = 0  # a stream united with itself gives two identical edges
        while (source, target, edge.input, edge.tag, twin) in found:
            twin += 1
        found[source, target, edge.input, edge.tag, twin] = edge
    return found


def _edge_change(after: JobPlan, old: PlannedEdge, new: PlannedEdge) -> Iterable[Change]:
    ends = " -> ".join(
        f"'{one_line(after.operator_at[node].name)}'" for node in (new.source, new.target)
    )
    if new.is_chained and not old.is_chained:
        yield Change("chained", f"{ends}  (was {exchange_text(old)})")
    elif old.is_chained and not new.is_chained:
        because = "; ".join(rule.reason for rule in new.not_chained_because)
        yield Change("unchained", f"{ends}  {exchange_text(new)}, because {because}")
    elif exchange_text(old) != exchange_text(new):
        yield Change("exchange", f"{ends}: {exchange_text(old)} -> {exchange_text(new)}")


def _rewired(
    before: JobPlan, after: JobPlan, matching: Matching, now_is: dict[int, int]
) -> Iterable[Change]:
    """Operators whose inputs have changed."""
    for old, new in matching.matches:
        was = [(edge.source, edge.input, edge.tag) for edge in before.in_edges[old.node]]
        reads = [(edge.source, edge.input, edge.tag) for edge in after.in_edges[new.node]]
        if [(now_is.get(source), *rest) for source, *rest in was] != [
            (source, *rest) for source, *rest in reads
        ]:
            yield Change(
                "moved",
                f"'{one_line(new.name)}' reads {_sources(after, reads)}, was {_sources(before, was)}",
            )


def _sources(plan: JobPlan, reads: list[tuple[int, int, str | None]]) -> str:
    return (
        listed(
            f"'{one_line(plan.operator_at[source].name)}'"
            + (f" (side output '{tag}')" if tag is not None else "")
            for source, _, tag in reads
        )
        or "nothing"
    )


def _vertex_changes(before: JobPlan, after: JobPlan, matching: Matching) -> Iterable[Change]:
    """Changes of a vertex's key groups that are not changes of an operator's setting."""
    for old, new in matching.matches:
        was, now = _effective(before, old), _effective(after, new)
        if new.keys and was != now and old.max_parallelism == new.max_parallelism:
            yield Change("key groups", f"'{one_line(new.name)}': {was} -> {now}")


def _effective(plan: JobPlan, operator: PlannedOperator) -> int:
    return plan.vertices[plan.vertex_number_of[operator.node] - 1].effective_max_parallelism


def _named(operator: PlannedOperator) -> str:
    return f"'{one_line(operator.name)}' ({operator.word}, {operator.call_site})"
