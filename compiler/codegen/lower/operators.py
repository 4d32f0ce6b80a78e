"""The code of each kind of operator, except windows: one function each."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.associative import is_associative
from opchain.compiler.codegen.lower.lowering import (
    Lowering,
    Place,
    comment,
    function_of,
    identified,
)
from opchain.runtime.functions.co_grouping import InputTagger
from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.functions.process_functions import has_on_timer
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import NO_OPERATOR, OperatorProgram
from opchain.runtime.watermarks.strategy import (
    BoundedOutOfOrderness,
    FunctionTimestampAssigner,
    MonotonousTimestamps,
    NoWatermarks,
    WatermarkStrategy,
)

_KEEP_THE_GREATEST = (BoundedOutOfOrderness, MonotonousTimestamps, NoWatermarks)
_WITH_TIMERS = (specs.KeyedProcessSpec, specs.KeyedCoProcessSpec, specs.KeyedBroadcastProcessSpec)


def lower_timestamps(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """Gives a record its timestamp, and keeps the greatest of a batch for the watermark generator.

    This is done only for generators that need nothing but the greatest timestamp, and emit after the batch. Any other
    generator may emit after each record, so it is called as an object.
    """
    strategy = _strategy_of(operator)
    is_written_out = strategy is not None and (
        place.in_batch
        and (
            lowering.program.is_batch or isinstance(strategy.generator_supplier, _KEEP_THE_GREATEST)
        )
    )
    if strategy is None or is_written_out:
        lowering.emit_sides(operator)  # a source may have one, for malformed records
    if strategy is None:
        return lowering.downstream(operator, place)
    if not is_written_out:
        return lowering.call(operator, place, number)
    lines: f.Lines = []
    index, assigner = operator.index, strategy.timestamp_assigner
    if assigner is not None:
        lowering.names.bind("NO_TIMESTAMP", "shared")
        time = place.timestamp
        so_far = "NO_TIMESTAMP" if time is None else f"NO_TIMESTAMP if {time} is None else {time}"
        is_wrapped = isinstance(assigner, FunctionTimestampAssigner)
        call = lowering.call_of(
            lowering.names.bind(f"time_of_{index}", "attribute", index, "time_of"),
            assigner.function if is_wrapped else assigner,  # type: ignore[attr-defined]
            "extract_timestamp",
            place.record,
            f.expression(so_far),
            owner=lowering.names.bind(
                f"assigner_{index}", "attribute", index, "strategy.timestamp_assigner"
            ),
        )
        text = """
            timestamp = assigned
            if timestamp.__class__ is not int:
                timestamp = op.as_timestamp(timestamp, value)
            """
        assigns = lowering.code(operator, place, text, assigned=call)
        lines = f.with_comment(assigns, comment(operator))
        place = replace(place, timestamp=f"timestamp_{index}")
    if place.timestamp is not None and not lowering.program.is_batch:
        greatest = f"greatest_{index}"
        lowering.names.bind("NO_TIMESTAMP", "shared")
        lowering.function.before += f.statements(f"{greatest} = NO_TIMESTAMP", NO_OPERATOR)
        lowering.function.after += f.statements(f"op_{index}.saw({greatest})", NO_OPERATOR)
        test = f"{place.timestamp} > {greatest}"
        if strategy.timestamp_assigner is None:
            test = f"{place.timestamp} is not None and {test}"
        lines += f.statements(f"if {test}:\n    {greatest} = {place.timestamp}", index)
    return [*lines, *lowering.downstream(operator, place)]


def lower_map(lowering: Lowering, operator: OperatorProgram, place: Place, _number: int) -> f.Lines:
    """`value_1 = parse_1(value)`."""
    index = operator.index
    function = function_of(operator)
    if type(function) is InputTagger:  # of a join
        made: ast.expr = ast.Tuple([ast.Constant(function.number), place.record], ast.Load())
    else:
        made = lowering.applied(operator, "map", place.record)
    result = f.let(f"value_{index}", made, index)
    lines = [
        *lowering.set_key_of_rich(operator, place),
        *f.with_comment([result], comment(operator)),
    ]
    place = replace(place, value=f"value_{index}", is_shared=True)
    return [*lines, *lowering.downstream(operator, place)]


def lower_filter(
    lowering: Lowering, operator: OperatorProgram, place: Place, _number: int
) -> f.Lines:
    """`if is_click_2(value_1): ...`."""
    test = lowering.applied(operator, "filter", place.record)
    guard = ast.If(test, lowering.downstream(operator, place), [])
    lines = f.with_comment(f.marked([guard], operator.index), comment(operator))
    return [*lowering.set_key_of_rich(operator, place), *lines]


def lower_flat_map(
    lowering: Lowering, operator: OperatorProgram, place: Place, _number: int
) -> f.Lines:
    """`for value_3 in words_3(value_2): ...`."""
    call = lowering.applied(operator, "flat_map", place.record)
    return [*lowering.set_key_of_rich(operator, place), *lowering.emits(operator, place, call)]


def lower_map_batches(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """`values_of_1.append(value)`. The batch is flushed at the end of the turn."""
    index = operator.index
    function = lowering.function
    if place.in_batch and function.kind == "process":
        name = lowering.names.bind(f"flush_{index}", "flush_batch", index)
        function.at_end += f.statements(f"{name}()", index)
    lowering.emit_batches(operator)
    return gather(lowering, operator, place, number)


def lower_process(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """A loop over the results of a process function. Tagged results go to side outputs."""
    has_two_inputs = isinstance(operator.spec, (specs.CoProcessSpec, specs.KeyedCoProcessSpec))
    method = f"process_element{number + 1}" if has_two_inputs else "process_element"
    context, lines = _with_context(lowering, operator, place.timestamp)
    call = lowering.applied(operator, method, place.record, context)
    return [
        *lines,
        *lowering.emits_results(operator, place, call, calls_emit=_emits_by_timer(operator)),
    ]


def lower_keyed_process(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """The code of `process`, after the record's key is set."""
    if _emits_by_timer(operator):
        lowering.later(f"fire_{operator.index}", lambda: _timers_function(lowering, operator))
    lines = lowering.set_key(operator, place, number)
    return [*lines, *lower_process(lowering, operator, place, number)]


_NOT_COMBINED = (
    "not combined before the exchange: its source does not show that it is associative; combine each field with itself, "
    "by +, min or max"
)


def lower_reduce(
    lowering: Lowering, operator: OperatorProgram, place: Place, _number: int
) -> f.Lines:
    """Reduces the record into its key's entry. In batch mode, results are emitted only at the end of the key."""
    index, names = operator.index, lowering.names
    key, previous, result = f"key_{index}", f"previous_{index}", f"value_{index}"
    names.bind(f"table_{index}", "table", index)
    first: ast.expr | None = None
    if isinstance(operator.spec, specs.CombinedReduceSpec):
        # The senders have checked the first records.
        lines = f.statements(f"{key}, item_{index} = {place.value}", index)
        value = f.name(f"item_{index}")
    else:
        lines = [f.let(key, lowering.key_of(operator, place, 0), index)]
        if has_lifecycle(function_of(operator)):
            names.bind(f"set_key_{index}", "set_key", index)
            lines += f.statements(f"set_key_{index}({key})", index)
        value = place.record
        if lowering.program.is_batch and not is_associative(function_of(operator)):
            lowering.form.remark(index, _NOT_COMBINED)
        path = ("method", index, "first")
        first = lowering.first_of(function_of(operator), f"first_{index}", path, value)
    plain = names.bind(f"plain_keys_{index}", "plain_keys", index)
    identify = names.bind(f"identify_{index}", "identify", index)
    lines.append(identified(key, plain, identify))
    fold = f.made(
        f.Fold,
        table=f"table_{index}",
        previous=previous,
        key=f.name(key),
        value=value,
        first=first,
        reduced=lowering.applied(operator, "reduce", f.name(previous), value),
        target=f.target(result),
    )
    lines = f.with_comment(f.marked([*lines, fold], index), comment(operator))
    if lowering.program.is_batch:
        lowering.emit_batches(operator)
        return lines
    copied, place = lowering.out_of_state(operator, replace(place, value=result, is_shared=True))
    return [*lines, *copied, *lowering.downstream(operator, place)]


def lower_co_map(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """A map per input; None emits nothing."""
    index, result = operator.index, f"value_{operator.index}"
    call = lowering.applied(operator, ("map1", "map2")[number], place.record)
    lines = f.with_comment([f.let(result, call, index)], comment(operator))
    behind = lowering.downstream(operator, replace(place, value=result, is_shared=True))
    guard = ast.If(f.expression(f"{result} is not None"), behind, [])
    notes.asks.set(guard, "none")
    return [*lowering.set_key_of_rich(operator, place, number), *lines, *f.marked([guard], index)]


def lower_co_flat_map(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """A flat map per input; None emits nothing."""
    call = lowering.applied(operator, ("flat_map1", "flat_map2")[number], place.record)
    lines = lowering.emits(operator, place, call, nullable=True)
    return [*lowering.set_key_of_rich(operator, place, number), *lines]


def lower_broadcast_process(
    lowering: Lowering, operator: OperatorProgram, place: Place, number: int
) -> f.Lines:
    """The code of a process function for the stream's records. Broadcast records are few: a call processes them."""
    if number:
        return lowering.call(operator, place, number)
    is_keyed = isinstance(operator.spec, specs.KeyedBroadcastProcessSpec)
    return (lower_keyed_process if is_keyed else lower_process)(lowering, operator, place, number)


def lower_sink_writer(
    lowering: Lowering, operator: OperatorProgram, place: Place, _number: int
) -> f.Lines:
    """`values_of_4.append(value_3)`. The records are written as a batch, and committables are emitted at the end."""
    lowering.add_emit_function(operator)
    return gather(lowering, operator, place, 0)


def gather(lowering: Lowering, operator: OperatorProgram, place: Place, _number: int) -> f.Lines:
    """`values_of_4.append(value_3)`, for an operator that takes records as a batch."""
    index = operator.index
    values = lowering.names.bind(f"values_of_{index}", "sink_values", index)
    lines: f.Lines = [f.made(f.Append, list=values, value=place.record, sink=index)]
    if operator.timestamps:
        times = lowering.names.bind(f"timestamps_of_{index}", "sink_timestamps", index)
        time = place.time or ast.Constant(None)
        lines.append(f.made(f.Append, list=times, value=time, sink=index))
    return f.with_comment(f.marked(lines, index), comment(operator))


def lower_legacy_sink(
    lowering: Lowering, operator: OperatorProgram, place: Place, _number: int
) -> f.Lines:
    """`print_sink_4(value_3, context_4)`."""
    index = operator.index
    context, lines = _with_context(lowering, operator, place.timestamp)
    call = lowering.applied(operator, "invoke", place.record, context)
    invoke = f.with_comment(f.marked([ast.Expr(call)], index), comment(operator))
    return [*lines, *invoke]


def _with_context(
    lowering: Lowering, operator: OperatorProgram, timestamp: str | None
) -> tuple[ast.Name, f.Lines]:
    """The context of a function, after statements that give it the time of the record."""
    index = operator.index
    context = lowering.names.bind(f"context_{index}", "context", index)
    text = "" if timestamp is None else f"{context}._timestamp = {timestamp}"
    return f.name(context), f.statements(text, index)


def _timers_function(lowering: Lowering, operator: OperatorProgram) -> None:
    """The loop over the event-time timers that are due, in place of `KeyedFunctionOperator.on_event_time`."""
    index = operator.index
    about = f"Results of '{operator.name}' for event-time timers that are due"
    function = lowering.open_function(f"fire_{index}", "due", about, is_batch=True)
    context, lines = _with_context(lowering, operator, "timestamp")
    name = lowering.names.bind(f"on_timer_{index}", "method", index, "on_timer")
    owner = lowering.names.bind(f"self_{index}", "function", index)
    parts = f.name("timestamp"), context
    call = lowering.call_of(name, function_of(operator), "on_timer", *parts, owner=owner)
    function.types["timestamp"] = int
    if not lowering.program.is_batch:  # there, all timers are of the current key
        lowering.names.bind(f"set_state_key_{index}", "set_state_key", index)
        lines[:0] = f.statements(f"set_state_key_{index}(key_{index})", index)
    place = Place("", "timestamp", in_batch=False)
    lines += lowering.emits_fired(operator, place, call)
    each = f"for timestamp, namespace_{index}, key_{index} in due:\n    pass"
    (loop,) = function.body = f.statements(each, index)
    loop.body = lines  # type: ignore[attr-defined]


def _emits_by_timer(operator: OperatorProgram) -> bool:
    """Whether timers emit results. Then `emit_I` processes all results of the operator."""
    return isinstance(operator.spec, _WITH_TIMERS) and has_on_timer(function_of(operator))


def _strategy_of(operator: OperatorProgram) -> WatermarkStrategy[Any] | None:
    spec = operator.spec
    if isinstance(spec, specs.TimestampsWatermarksSpec):
        return spec.strategy
    return spec.watermark_strategy if isinstance(spec, specs.SourceSpec) else None
