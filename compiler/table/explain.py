"""The text of explain: the plan of a query or of INSERT INTO."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.graph.plan import Program


class ExplainDetail(enum.Enum):
    """What a plan shows besides the operators. Only JSON_EXECUTION_PLAN has an effect. Flink: ExplainDetail."""

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3


def plan_text(program: Program, details: Sequence[ExplainDetail]) -> str:
    """A program as text, with Flink's headings."""
    from opchain.compiler.graph.plan import required  # noqa: PLC0415 - plans are seldom shown
    from opchain.compiler.passes.pipeline import compile_program  # noqa: PLC0415 - likewise
    from opchain.compiler.plan.explain import explain  # noqa: PLC0415 - likewise
    from opchain.compiler.plan.flink_json import streaming_plan  # noqa: PLC0415 - likewise

    text = f"== Optimized Execution Plan ==\n{explain(program, 'job-graph')}"
    if ExplainDetail.JSON_EXECUTION_PLAN not in details:
        return text
    graph = required(compile_program(program, "stream-graph").stream_graph)
    return f"{text}\n== Physical Execution Plan ==\n{json.dumps(streaming_plan(graph), indent=2)}\n"
