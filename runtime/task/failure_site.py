"""Finds out which operator failed, at which record, from an exception's traceback.

Nothing is recorded while all goes well. A frame of generated code names the operator by its line; in
interpreted code, and inside operators that generated code calls, the frame's `self` is the operator.
The exception keeps its type and gets notes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import add_note, short_repr
from opchain.runtime.operators.operator import StreamOperator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from opchain.runtime.operators.context import TaskInfo
    from opchain.runtime.task.vertex_program import OperatorProgram, VertexProgram


def add_failure_site(error: BaseException, task: TaskInfo) -> None:
    """Adds notes that name the operator, its call site, the record and the task."""
    site = _innermost_site(error, task.vertex)
    if site is not None:
        operator, record, key = site
        where = f"in '{operator.name}' ({operator.call_site})"
        if record:
            where += f", at record {short_repr(record[0])}"
        if key is not None:
            where += f", key {short_repr(key)}"
        add_note(error, where)
        hint = _hint(error, operator)
        if hint:
            add_note(error, hint)
    add_note(error, f"in task {task.name_with_subtasks}")


def _innermost_site(
    error: BaseException, vertex: VertexProgram
) -> tuple[OperatorProgram, Sequence[Any], Any] | None:
    found = None
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if frame.f_code.co_filename == vertex.file_name:
            found = _in_generated_code(frame, step.tb_lineno, vertex) or found
        else:
            found = _in_an_operator(frame, vertex) or found
        step = step.tb_next
    return found


def _in_generated_code(
    frame: FrameType, line: int, vertex: VertexProgram
) -> tuple[OperatorProgram, Sequence[Any], Any] | None:
    if not 1 <= line <= len(vertex.lines) or vertex.lines[line - 1] < 0:
        return None
    operator = vertex.operators[vertex.lines[line - 1]]
    variables = frame.f_locals
    record: list[Any] = []
    ancestor: int = operator.parent
    while ancestor >= 0 and not record:
        name = f"value_{ancestor}"
        record = [variables[name]] if name in variables else []
        ancestor = vertex.operators[ancestor].parent
    if not record and "value" in variables:
        record = [variables["value"]]
    return operator, record, variables.get(f"key_{operator.index}")


def _in_an_operator(
    frame: FrameType, vertex: VertexProgram
) -> tuple[OperatorProgram, Sequence[Any], Any] | None:
    owner = frame.f_locals.get("self")
    if not isinstance(owner, StreamOperator):
        return None
    if owner.program.index >= len(vertex.all_operators):
        return None
    record = [frame.f_locals["value"]] if "value" in frame.f_locals else []
    return owner.program, record, owner.current_key


def _hint(error: BaseException, operator: OperatorProgram) -> str | None:
    """What the user most likely forgot."""
    if isinstance(error, TypeError) and "is not iterable" in str(error):
        kind = operator.spec.kind.replace("_", " ")
        return f"the function of a {kind} must return an iterable, or yield; to drop a record, yield nothing"
    return None
