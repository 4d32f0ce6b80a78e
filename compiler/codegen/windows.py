"""The lines that put a record into its tumbling or sliding event-time windows.

    key_0 = value[0]  # 0 TumblingEventTimeWindows (job.py:12)
    if key_0.__class__ not in plain_0:
        key_0 = identify_0(key_0)
    if timestamp is None:
        refuse_0(value)
    start_0 = timestamp - timestamp % 10000
    pane_0 = panes_0.get(start_0)
    if pane_0 is None:
        pane_0 = pane_for_0(start_0, key_0, value, timestamp)
    if pane_0 is not None:
        held_0 = pane_0.get(key_0)
        pane_0[key_0] = value if held_0 is None else add_prices_0(held_0, value)

They stand for `AlignedWindowOperator.process_element`; windows that are new, late or have fired are the
operator's business (`pane_for`). All other windows are called as objects.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.record_code import comment, key_code
from opchain.runtime.operators.windows.aligned_window_operator import is_aligned
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram


def is_written_out(operator: OperatorProgram, *, is_batch: bool) -> bool:
    """Whether the lines below take a record of an operator in; its records must have timestamps."""
    return (
        isinstance(operator.spec, specs.WindowSpec)
        and is_aligned(operator.spec, is_batch=is_batch)
        and operator.timestamps
    )


def emit_aligned_window(
    generator: VertexGenerator, body: SourceText, operator: OperatorProgram, place: Place
) -> None:
    """Writes the lines."""
    index, depth, names = operator.index, place.depth, generator.names
    spec = operator.spec
    assert isinstance(spec, specs.WindowSpec)
    size, slide, offset = spec.assigner.pace  # type: ignore[attr-defined]
    value, timestamp = place.value, place.timestamp
    key, start, pane = f"key_{index}", f"start_{index}", f"pane_{index}"
    for name in ("plain", "identify", "refuse", "panes", "pane_for", "skip"):
        if name != "skip" or slide > size:
            names.bind(f"{name}_{index}", "attribute", index, name)
    body.add(depth, f"{key} = {key_code(generator, operator, place, 0)}{comment(operator)}", index)
    body.add(depth, f"if {key}.__class__ not in plain_{index}:", index)
    body.add(depth + 1, f"{key} = identify_{index}({key})", index)
    body.add(depth, f"if {timestamp} is None:", index)
    body.add(depth + 1, f"refuse_{index}({value})", index)
    latest = f"{timestamp} - {_since(timestamp, offset)} % {slide}"
    if slide == size:
        body.add(depth, f"{start} = {latest}", index)
    elif slide < size:
        window = f"range({latest}, {timestamp} - {size}, -{slide})"
        body.add(depth, f"for {start} in {window}:", index)
        depth += 1
    else:
        body.add(depth, f"{start} = {latest}", index)
        body.add(depth, f"if {timestamp} - {start} >= {size}:  # between two windows", index)
        body.add(depth + 1, f"skip_{index}({value}, {timestamp})", index)
        body.add(depth, "else:", index)
        depth += 1
    body.add(depth, f"{pane} = panes_{index}.get({start})", index)
    body.add(depth, f"if {pane} is None:", index)
    arguments = f"{start}, {key}, {value}, {timestamp}"
    body.add(depth + 1, f"{pane} = pane_for_{index}({arguments})", index)
    body.add(depth, f"if {pane} is not None:", index)
    _add(generator, body, operator, value, depth + 1)
    generator.emit_by_itself(operator)
    generator.emit_sides(operator)


def _since(timestamp: str | None, offset: int) -> str:
    if not offset:
        return f"{timestamp}"
    return f"({timestamp} - {offset})" if offset > 0 else f"({timestamp} + {-offset})"


def _add(
    generator: VertexGenerator, body: SourceText, operator: OperatorProgram, value: str, depth: int
) -> None:
    """Takes the record into the key's contents, as the classes in `windows.contents` do."""
    index, names = operator.index, generator.names
    spec = operator.spec
    assert isinstance(spec, specs.WindowSpec)
    held, entry = f"held_{index}", f"pane_{index}[key_{index}]"
    body.add(depth, f"{held} = pane_{index}.get(key_{index})", index)
    if spec.reduce is not None:
        reduced = _expression(generator, spec.reduce, "reduce", held, value)
        if reduced is None:
            name = names.function(spec.reduce, "reduce", index)
            reduced = f"{names.bind(name, 'attribute', index, 'contents.reduce')}({held}, {value})"
        body.add(depth, f"{entry} = {value} if {held} is None else {reduced}", index)
    elif spec.aggregate is not None:
        create = names.bind(f"create_{index}", "attribute", index, "contents.create")
        body.add(depth, f"if {held} is None:", index)
        body.add(depth + 1, f"{held} = {create}()", index)
        added = _expression(generator, spec.aggregate, "add", value, held)
        if added is None:
            name = names.function(spec.aggregate, "add", index)
            added = f"{names.bind(name, 'attribute', index, 'contents.fold_in')}({value}, {held})"
        body.add(depth, f"{entry} = {added}", index)
    else:
        body.add(depth, f"if {held} is None:", index)
        body.add(depth + 1, f"{entry} = [{value}]", index)
        body.add(depth, "else:", index)
        body.add(depth + 1, f"{held}.append({value})", index)


def _expression(
    generator: VertexGenerator, function: Any, method: str, *arguments: str
) -> str | None:
    """The expression that stands for calling a function, or a method that doesn't use its object."""
    called = getattr(function, method, function)
    expression = generator.expression(called)
    if expression is not None:
        return f"({expression.applied_to(*arguments)})"
    definition = getattr(called, "__func__", None)
    expression = generator.expression(definition)
    if expression is None:
        return None
    own = expression.parameters[0]
    used = {node.id for node in ast.walk(ast.parse(expression.text)) if isinstance(node, ast.Name)}
    return None if own in used else f"({expression.applied_to(own, *arguments)})"
