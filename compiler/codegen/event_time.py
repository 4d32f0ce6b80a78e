"""The lines that give a record its timestamp, and tell the watermark generator of a batch.

    greatest_1 = NO_TIMESTAMP
    for value in values:
        timestamp_1 = time_of_1(value, NO_TIMESTAMP)  # 1 Timestamps/Watermarks (job.py:14)
        if timestamp_1.__class__ is not int:
            timestamp_1 = as_timestamp_1(timestamp_1, value)
        if timestamp_1 > greatest_1:
            greatest_1 = timestamp_1
        ...
    op_1.saw(greatest_1)

They stand for `TimestampsWatermarksOperator.process_element` with a generator that only keeps the
greatest timestamp until it is asked for a watermark, which is after the batch. Any other generator may
emit after each record: it is called as an object.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.inline import item_of
from opchain.compiler.codegen.record_code import comment
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.watermarks.strategy import (
    BoundedOutOfOrderness,
    FunctionTimestampAssigner,
    MonotonousTimestamps,
    NoWatermarks,
    WatermarkStrategy,
)

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram

_KEEP_THE_GREATEST = (BoundedOutOfOrderness, MonotonousTimestamps, NoWatermarks)


def strategy_of(operator: OperatorProgram) -> WatermarkStrategy[Any] | None:
    """The strategy that runs in an operator: a source's or the operator's own."""
    spec = operator.spec
    if isinstance(spec, specs.TimestampsWatermarksSpec):
        return spec.strategy
    return spec.watermark_strategy if isinstance(spec, specs.SourceSpec) else None


def is_written_out(
    generator: VertexGenerator, strategy: WatermarkStrategy[Any], place: Place
) -> bool:
    """Whether the lines below do all that the strategy asks for: only in a loop over a batch."""
    if place.counted is None:
        return False
    # In batch mode no generator is at work.
    return generator.program.is_batch or isinstance(strategy.generator_supplier, _KEEP_THE_GREATEST)


def emit_timestamp(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    strategy: WatermarkStrategy[Any],
) -> Place:
    """Writes the lines."""
    index, depth = operator.index, place.depth
    if strategy.timestamp_assigner is not None:
        timestamp = f"timestamp_{index}"
        assigned = _assigned(generator, operator, place, strategy.timestamp_assigner)
        body.add(depth, f"{timestamp} = {assigned}{comment(operator)}", index)
        name = generator.names.bind(f"as_timestamp_{index}", "attribute", index, "as_timestamp")
        body.add(depth, f"if {timestamp}.__class__ is not int:", index)
        body.add(depth + 1, f"{timestamp} = {name}({timestamp}, {place.value})", index)
        item = _item_assigned(generator, strategy.timestamp_assigner)
        place = replace(
            place, timestamp=timestamp, time_of=None if item is None else (place.value, item)
        )
    if place.timestamp is not None and not generator.program.is_batch:
        greatest = generator.greatest(operator)
        known = f"{place.timestamp} > {greatest}"
        if strategy.timestamp_assigner is None:
            known = f"{place.timestamp} is not None and {known}"
        body.add(depth, f"if {known}:", index)
        body.add(depth + 1, f"{greatest} = {place.timestamp}", index)
    return place


def _item_assigned(generator: VertexGenerator, assigner: Any) -> str | None:
    """The item of a record, as an expression over `value`, that is its timestamp: `value[2]`."""
    if not isinstance(assigner, FunctionTimestampAssigner):
        return None
    expression = generator.expression(assigner.function)
    if expression is None:
        return None
    tree = ast.parse(expression.text, mode="eval").body
    if item_of(tree, expression.parameters[0]) is None:
        return None
    return expression.applied_to("value", "NO_TIMESTAMP")


def _assigned(
    generator: VertexGenerator, operator: OperatorProgram, place: Place, assigner: Any
) -> str:
    """The call of the assigner with the record and the timestamp that it has so far."""
    so_far = "NO_TIMESTAMP"
    if place.timestamp is not None:
        so_far = f"NO_TIMESTAMP if {place.timestamp} is None else {place.timestamp}"
    if isinstance(assigner, FunctionTimestampAssigner):
        expression = generator.expression(assigner.function)
        # Written in, it would be evaluated as often as the function reads it.
        if expression is not None:
            reads = expression.reads(expression.parameters[1])
            if reads and place.timestamp is None:
                generator.names.bind("NO_TIMESTAMP", "shared")
            if not reads or place.timestamp is None:
                return expression.applied_to(place.value, so_far)
    generator.names.bind("NO_TIMESTAMP", "shared")
    name = generator.names.bind(f"time_of_{operator.index}", "attribute", operator.index, "time_of")
    return f"{name}({place.value}, {so_far})"
