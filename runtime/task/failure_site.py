"""Finds the operator that failed, and the record, from an exception's traceback.

Nothing is recorded while no exception is raised. A line of generated code belongs to an operator or an exchange. In
interpreted code, and inside operators that generated code calls, the operator is the `self` of a frame. The exception
keeps its type and gets notes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import add_note, short_repr
from opchain.runtime.functions.sink import SinkWriter
from opchain.runtime.operators.operator import StreamOperator, TaskInfo
from opchain.runtime.operators.pending_batch import PendingBatch
from opchain.runtime.program.vertex_program import (
    FIRST_OUTPUT,
    NO_OPERATOR,
    OperatorProgram,
    OutputProgram,
    VertexProgram,
)
from opchain.runtime.records.columns import Columns, inner_fields
from opchain.runtime.records.json_texts import are_fields

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType, TracebackType


_OPERATORS = f"{StreamOperator.__module__.rpartition('.')[0]}."
_GIVE_ITERABLES = frozenset(
    {
        *("flat map", "co flat map", "process", "keyed process", "co process", "keyed co process"),
        *("broadcast process", "keyed broadcast process", "interval join", "window"),
        *("full window", "multi input"),
    }
)
"""The kinds of operators that iterate over the results of their function."""


@dataclass(frozen=True, slots=True)
class _Site:
    """The place of a failure. `record` has at most one record. `output` is set if the record was being sent."""

    operator: OperatorProgram
    record: Sequence[Any] = ()
    key: Any = None
    output: OutputProgram | None = None

    def __str__(self) -> str:
        where = f"in {self.operator.label}"
        if self.output is not None:
            where += f", sending to {self.output.label}"
            if self.output.key is not None:
                where += f" ({self.output.key.call_site})"
        if self.record:
            where += f", at record {short_repr(self.record[0])}"
        if self.key is not None:
            where += f", key {short_repr(self.key)}"
        return where


def add_failure_site(
    error: BaseException, task: TaskInfo, pending: Sequence[PendingBatch] = ()
) -> None:
    """Adds notes that name the operator, its call site, the record and the task.

    `pending` has the records that wait for each output of the chain.
    """
    site = _innermost_site(error, task.vertex, pending)
    if site is not None:
        add_note(error, str(site))
        hint = _hint(error, site, task.vertex)
        if hint:
            add_note(error, hint)
    add_note(error, f"in task {task.name_with_subtasks}")


def _innermost_site(
    error: BaseException, vertex: VertexProgram, pending: Sequence[PendingBatch]
) -> _Site | None:
    found: _Site | None = None
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if frame.f_code.co_filename == vertex.file_name:
            # A comprehension or a lambda has a frame of its own, without the record.
            if not frame.f_code.co_name.startswith("<"):
                found = _in_generated_code(frame, step.tb_lineno, vertex) or found
        else:
            found = _in_our_code(frame, found, vertex, pending) or found
        step = step.tb_next
    return found


def _in_generated_code(frame: FrameType, line: int, vertex: VertexProgram) -> _Site | None:
    if not 1 <= line <= len(vertex.lines):
        return None
    number = vertex.lines[line - 1]
    if number == NO_OPERATOR:
        return None
    variables = frame.f_locals
    if number < NO_OPERATOR:
        output = vertex.outputs[FIRST_OUTPUT - number]
        operator = vertex.operators[output.operator]
        sent = _newest_value(variables, operator.index, vertex, line)
        return _Site(operator, sent, output=output)
    operator = vertex.operators[number]
    if f"item_{number}" in variables:
        record: Sequence[Any] = [variables[f"item_{number}"]]
    else:
        record = _newest_value(variables, operator.parent, vertex, line)
    return _Site(operator, record, variables.get(f"key_{operator.index}"))


def _newest_value(
    variables: dict[str, Any], index: int, vertex: VertexProgram, line: int
) -> Sequence[Any]:
    """The record that operator `index` emitted last: the value of its variable, or of the previous operator's."""
    names = _variables_set_before(vertex, line)
    while index >= 0:
        # A reduce sets its variable in two branches.
        for name in (*names.get(index, ()), f"value_{index}"):
            if name in variables:
                return [_whole(variables[name], variables)]
        index = vertex.operators[index].parent
    if "value" in variables:
        return [_whole(variables["value"], variables)]
    return _by_fields(variables)


_SETS_VALUE = re.compile(r" *(?:for )?(value_(\d+)(?:_\d+)?(?:_too)*)(?: =| in )")
"""A line that sets the variable of a record. An operator has several variables if it emits at several places."""


def _variables_set_before(vertex: VertexProgram, line: int) -> dict[int, list[str]]:
    """By operator, the record variables that are set before a line of generated code, the last one first.

    Variables of other branches are left out: they have the record of an earlier turn of the loop.
    """
    lines = (vertex.source or "").splitlines()[:line]
    names: dict[int, list[str]] = {}
    depth = len(lines[-1]) - len(lines[-1].lstrip())
    for text in reversed(lines):
        indent = len(text) - len(text.lstrip())
        if not text or indent > depth:
            continue
        depth = indent
        found = _SETS_VALUE.match(text)
        if found is not None:
            names.setdefault(int(found[2]), []).append(found[1])
        if not depth:
            break
    return names


def _whole(record: Any, variables: dict[str, Any]) -> Any:
    """The whole dictionary, if generated code has decoded only some of its fields; any other record unchanged."""
    if not are_fields(record):
        return record
    return json.loads(variables["text"] if "text" in variables else variables["value"])


def _by_fields(variables: dict[str, Any]) -> Sequence[Any]:
    """A record whose fields arrived as columns, and which was not built; without the key that a sender added."""
    values = variables.get("values")
    if not isinstance(values, Columns):
        return []
    inner = [number for entry in values.layout for number in inner_fields(entry)]
    names = [f"field_{n}" for n, constant in enumerate(values.layout) if not constant]
    if inner:
        names = [
            f"field_{inner.index(number)}" if number in inner else "field_key"
            for number in range(len(values.lists))
        ]
    if not all(name in variables for name in names):
        return []
    record = values.record(variables[name] for name in names)
    return [record[1] if inner else record]


def _in_our_code(
    frame: FrameType, found: _Site | None, vertex: VertexProgram, pending: Sequence[PendingBatch]
) -> _Site | None:
    owner = frame.f_locals.get("self")
    record = [frame.f_locals["value"]] if "value" in frame.f_locals else []
    if isinstance(owner, StreamOperator):
        if owner.program.index >= len(vertex.all_operators):
            return None
        return _Site(owner.program, record, owner.current_key)
    if isinstance(owner, PendingBatch) and record:
        for output, batch in zip(vertex.outputs, pending, strict=True):
            if batch is owner:
                return _Site(vertex.operators[output.operator], record, output=output)
    if found is not None and frame.f_code is SinkWriter.write_batch.__code__:
        return _Site(found.operator, record)
    return None


def _hint(error: BaseException, site: _Site, vertex: VertexProgram) -> str | None:
    """The probable mistake, if opchain failed to iterate over the result of a function."""
    if isinstance(error, AttributeError) and "Context' object has no attribute 'output'" in str(
        error
    ):
        return "to emit to a side output, yield (tag, value)"
    if isinstance(error, AttributeError) and error.name == "get_runtime_context":
        return (
            "open(self, runtime_context) gets the RuntimeContext; the function has no method for it"
        )
    kind = site.operator.spec.kind.replace("_", " ")
    is_looped_over = isinstance(error, TypeError) and "object is not iterable" in str(error)
    if not is_looped_over or site.output is not None or kind not in _GIVE_ITERABLES:
        return None
    if not _is_ours(_last_step(error), vertex):
        return None
    article = "an" if kind[0] in "aeiou" else "a"
    return f"the function of {article} {kind} must return an iterable, or yield; to drop a record, yield nothing"


def _last_step(error: BaseException) -> TracebackType:
    step = error.__traceback__
    assert step is not None
    while step.tb_next is not None:
        step = step.tb_next
    return step


def _is_ours(step: TracebackType, vertex: VertexProgram) -> bool:
    """Whether opchain iterates over the result of a function here, in generated code or in an operator."""
    frame = step.tb_frame
    if frame.f_code.co_filename == vertex.file_name and vertex.source is not None:
        line = vertex.source.splitlines()[step.tb_lineno - 1]
        return line.lstrip().startswith("for value_")  # other loops are those of inlined functions
    return str(frame.f_globals.get("__name__")).startswith(_OPERATORS)
