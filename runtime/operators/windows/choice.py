"""Which operator runs a window: the general one, the one that merges, or one that is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.operators.windows.aligned_window_operator import (
    AlignedWindowOperator,
    is_aligned,
)
from opchain.runtime.operators.windows.merging_window_operator import (
    MergingWindowOperator,
    SessionWindowOperator,
    has_plain_sessions,
)
from opchain.runtime.operators.windows.window_operator import WindowOperator
from opchain.runtime.windows.assigners import MergingWindowAssigner

if TYPE_CHECKING:
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.operators.windows.window_operator import KeyedWindowOperator
    from opchain.runtime.program.operator_specs import WindowSpec
    from opchain.runtime.program.vertex_program import OperatorProgram


def window_operator_class(spec: WindowSpec, *, is_batch: bool) -> type[KeyedWindowOperator]:
    """The class of the operator that runs a spec."""
    if is_aligned(spec, is_batch=is_batch):
        return AlignedWindowOperator
    if isinstance(spec.assigner, MergingWindowAssigner):
        return SessionWindowOperator if has_plain_sessions(spec) else MergingWindowOperator
    return WindowOperator


def create_window_operator(
    program: OperatorProgram, context: OperatorContext, output: Output
) -> KeyedWindowOperator:
    """The operator of a program whose spec is a WindowSpec."""
    spec: WindowSpec = program.spec  # type: ignore[assignment]
    kind = window_operator_class(spec, is_batch=context.task.vertex.is_batch)
    return kind(program, context, output)
