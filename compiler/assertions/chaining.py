"""Assertions on the plan of an environment or a program.

Which operators share a task: messages show the rules and the plan. Golden files of plans: stored, compared, and
rewritten by `pytest --update-golden`.
"""

from __future__ import annotations

import difflib
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from opchain.compiler.graph.plan import Program
from opchain.compiler.passes.chaining_rules import CHAINING_RULES
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.explain import Form, explain
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.layout import listed, set_lines
from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedOperator
from opchain.compiler.plan.text import edge_lines, plan_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from opchain.compiler.interception import Environment


if TYPE_CHECKING:
    Planned: TypeAlias = Environment | Program | JobPlan


def program_of(program: Environment | Program) -> Program:
    """The program that an environment holds so far."""
    return program if isinstance(program, Program) else program.program()


def plan_of(program: Planned) -> JobPlan:
    """The plan to assert on: `plan_of(env).vertices`, `.operators`, `.edges`.

    Raises:
        GraphError: The program is refused.
    """
    if isinstance(program, JobPlan):
        return program
    return job_plan(compile_program(program_of(program), "job-graph"))


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
        raise TypeError(f"an operator is named by a string, but got {name!r}")
    for claims in _CLAIMS:
        found = [operator for operator in plan.operators if claims(operator, name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(
                f"{len(found)} operators are called '{name}': {_places(found)}; "
                "give the intended one a unique name or uid"
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


def assert_chained(program: Planned, first: str, second: str, *more: str) -> None:
    """Asserts that operators run in one task, records going from each to the next by a call.

    Operators are named by name or uid. Between two of them may be others.

    Args:
        program: An environment, a program, or a plan.
        first: The upstream operator.
        second: The operator that reads it.
        *more: Further operators, each of which reads the previous one.

    Raises:
        AssertionError: Two of them are not chained; the message has every broken rule.
        ValueError: A name fits no operator or several.
    """
    __tracebackhide__ = True
    plan = plan_of(program)
    operators = [operator_called(plan, name) for name in (first, second, *more)]
    for up, down in pairwise(operators):
        path = _path(plan, up, down)
        cuts = [edge for edge in path or () if not edge.is_chained]
        if path is None:
            raise AssertionError(_message(f"no records go from {_named(up, down)}", plan))
        if cuts:
            raise AssertionError(_message(f"not chained: {_named(up, down)}", plan, cuts))


def assert_not_chained(
    program: Planned, first: str, second: str, *, because: str | None = None
) -> None:
    """Asserts that there is an exchange between two operators, and the rule that requires it.

    Args:
        program: An environment, a program, or a plan.
        first: The operator upstream, by name or uid.
        second: The operator that reads it.
        because: The code of a rule that must be broken (`parallelism`, `partitioner`, ... as
            `opchain explain` prints them), or words of a reason.

    Raises:
        AssertionError: They are chained, no records go from one to the other, or the reason is another.
        ValueError: A name fits no operator or several.
    """
    __tracebackhide__ = True
    plan = plan_of(program)
    up, down = operator_called(plan, first), operator_called(plan, second)
    path = _path(plan, up, down)
    if path is None:
        raise AssertionError(_message(f"no records go from {_named(up, down)}", plan))
    cuts = [edge for edge in path if not edge.is_chained]
    if not cuts:
        raise AssertionError(_message(f"chained: {_named(up, down)}", plan))
    if because is not None and not _is_reason(because, cuts):
        what = f"not chained, but not because of '{because}': {_named(up, down)}"
        raise AssertionError(_message(what, plan, cuts))


def _path(
    plan: JobPlan, up: PlannedOperator, down: PlannedOperator
) -> Sequence[PlannedEdge] | None:
    """A way from one operator to another: inside their task if there is one, else the shortest."""
    chained = _shortest_way(plan, up.node, down.node, lambda edge: edge.is_chained)
    return chained if chained is not None else _shortest_way(plan, up.node, down.node, bool)


def _shortest_way(
    plan: JobPlan, up: int, down: int, takes: Callable[[PlannedEdge], bool]
) -> Sequence[PlannedEdge] | None:
    reached_by: dict[int, PlannedEdge | None] = {up: None}
    waiting = deque([up])
    while waiting and down not in reached_by:
        node = waiting.popleft()
        for edge in plan.out_edges[node]:
            if takes(edge) and edge.target not in reached_by:
                reached_by[edge.target] = edge
                waiting.append(edge.target)
    if down not in reached_by:
        return None
    way: list[PlannedEdge] = []
    while (edge_in := reached_by[way[0].source if way else down]) is not None:
        way.insert(0, edge_in)
    return way


def _is_reason(because: str, cuts: Sequence[PlannedEdge]) -> bool:
    rules = [rule for edge in cuts for rule in edge.not_chained_because]
    if because in {rule.code for rule in CHAINING_RULES}:
        return any(rule.code == because for rule in rules)
    return any(because.casefold() in rule.reason.casefold() for rule in rules)


def _named(up: PlannedOperator, down: PlannedOperator) -> str:
    return f"{up.label} to {down.label}"


def _message(what: str, plan: JobPlan, cuts: Sequence[PlannedEdge] = ()) -> str:
    edges = set_lines([line for edge in cuts for line in edge_lines(plan, edge)]) if cuts else ""
    return f"{what}\n{edges}\n{plan_text(plan)}"


@dataclass(slots=True)
class GoldenRun:
    """Whether this run compares golden files or rewrites those that differ."""

    is_updating: bool = False
    written: list[Path] = field(default_factory=list)


RUN = GoldenRun()


def assert_matches_golden(actual: str, path: Path) -> None:
    """Compares text with a golden file; under `--update-golden` writes the file instead.

    The file is UTF-8 with Unix line ends on every system, so that goldens are the same everywhere.

    Raises:
        AssertionError: If the file is missing or differs; the message has the difference.
    """
    __tracebackhide__ = True
    expected = path.read_text(encoding="utf-8") if path.exists() else None
    if expected == actual:
        return
    if RUN.is_updating:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8", newline="\n")
        RUN.written.append(path)
        return
    if expected is None:
        raise AssertionError(
            f"the golden file {path} does not exist; run pytest --update-golden to write it. "
            f"It would hold:\n\n{actual}"
        )
    difference = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), f"{path} (golden)", "now", lineterm=""
    )
    lines = "\n".join(difference) or "only the newline at the end differs"
    raise AssertionError(
        f"the golden file {path} differs from what the program gives now; if the change is "
        f"intended, run pytest --update-golden and review the file.\n\n{lines}\n\nnow:\n{actual}"
    )


_TEXT = Form(call_sites=False)


def assert_plan_matches(
    program: Environment | Program,
    golden: str | os.PathLike[str],
    *,
    stage: str = "job-graph",
) -> None:
    """Asserts that the text of a plan is what a golden file holds; `pytest --update-golden` writes it.

    The text names no lines of the program, so that only changes of the plan change the file.

    Args:
        program: An environment or a program.
        golden: The file; a relative path starts at the working directory.
        stage: `stream-graph`, `job-graph`, `execution` or `generated`.

    Raises:
        AssertionError: The file is missing or differs.
        GraphError: The program is refused.
    """
    __tracebackhide__ = True
    assert_matches_golden(explain(program_of(program), stage, text=_TEXT), Path(golden))
