"""Operator kind -> the lines that run it on one record.

An emitter `(generator, body, operator, place, input number)` adds lines and returns the place where
the operator's main output continues, or None where nothing continues inside this function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import event_time
from opchain.compiler.codegen.event_time import emit_timestamp, strategy_of
from opchain.compiler.codegen.map_batches import emit_map_batches
from opchain.compiler.codegen.place import Place
from opchain.compiler.codegen.private_items import items_made, keep_items_private, with_items
from opchain.compiler.codegen.private_records import keep_private
from opchain.compiler.codegen.process import emit_keyed_process, emit_process
from opchain.compiler.codegen.record_code import comment, key_code, method_name
from opchain.compiler.codegen.reduce import emit_reduce
from opchain.compiler.codegen.sending import fields_left_apart
from opchain.compiler.codegen.static_types import is_frozen, item_type
from opchain.compiler.codegen.windows import emit_aligned_window, is_written_out
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.static_types import StaticType
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram

Emitter = Callable[["VertexGenerator", "SourceText", "OperatorProgram", Place, int], "Place | None"]


def emit_map(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    _number: int,
) -> Place:
    """`value_1 = parse_1(value)`."""
    result = f"value_{operator.index}"
    _set_key(generator, body, operator, place)
    call, is_fresh = _applied(generator, operator, place.value)
    generator.types[result] = _result_type(generator, operator, place)
    apart = fields_left_apart(generator, body, operator, place)
    if apart is not None:
        return apart
    call = with_items(call, place.items)
    body.add(place.depth, f"{result} = {call}{comment(operator)}", operator.index)
    if is_fresh:
        items = items_made(result, call)
    else:
        items = keep_items_private(generator, body, place.depth, result, operator)
    return replace(place, value=result, items=items)


def emit_filter(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    _number: int,
) -> Place:
    """`if not is_click_2(value_1): continue`; an `if` around the rest where siblings follow."""
    _set_key(generator, body, operator, place)
    call, only_reads = _applied(generator, operator, place.value)
    if generator.expression(_function(operator)) is not None:
        call = f"({call})"
    if not (only_reads or is_frozen(generator.types.get(place.value))):
        place = replace(place, time_of=None)  # the item may be another from here on
    counter, counted = generator.counter(operator, place)
    depth = place.depth
    if place.skip is None:
        body.add(depth, f"if {call}:{comment(operator)}", operator.index)
        depth += 1
        if counter is None:
            body.add(depth, "pass")
    else:
        body.add(depth, f"if not {call}:{comment(operator)}", operator.index)
        body.add(depth + 1, place.skip)
    if counter is not None:
        body.add(depth, f"{counter} += 1")
    return replace(place, depth=depth, counted=counted)


def emit_flat_map(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    _number: int,
) -> Place:
    """`for value_3 in words_3(value_2):`."""
    _set_key(generator, body, operator, place)
    call, is_fresh = _applied(generator, operator, place.value, is_iterated=True)
    iterable = _result_type(generator, operator, place, is_iterated=True)
    generator.types[f"value_{operator.index}"] = item_type(iterable)
    return _loop(
        generator, body, operator, place, call, is_fresh=is_fresh, is_plain=iterable is not None
    )


def emit_co_map(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> Place:
    """A map per input; None emits nothing."""
    result = f"value_{operator.index}"
    _set_key(generator, body, operator, place, number)
    name = method_name(generator, operator, ("map1", "map2")[number])
    body.add(place.depth, f"{result} = {name}({place.value}){comment(operator)}", operator.index)
    counter, counted = generator.counter(operator, place)
    depth = place.depth
    assert place.skip is not None, "an operator with two inputs heads its vertex"
    body.add(depth, f"if {result} is None:", operator.index)
    body.add(depth + 1, place.skip)
    keep_private(generator, body, depth, result, operator.index)
    if counter is not None:
        body.add(depth, f"{counter} += 1")
    return replace(place, value=result, counted=counted)


def emit_co_flat_map(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> Place:
    """A flat map per input; None emits nothing."""
    _set_key(generator, body, operator, place, number)
    name = method_name(generator, operator, ("flat_map1", "flat_map2")[number])
    found = f"found_{operator.index}"
    body.add(place.depth, f"{found} = {name}({place.value})", operator.index)
    iterable = f"() if {found} is None else {found}"
    return _loop(generator, body, operator, place, iterable)


def emit_sink_writer(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> None:
    """`values_of_4.append(value_3)`: written as a batch; committables come out at the end."""
    emit_collect_sink(generator, body, operator, place, number)
    generator.emit_by_itself(operator)


def emit_collect_sink(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    _number: int,
) -> None:
    """`values_of_4.append(value_3)`: sent as a batch."""
    index = operator.index
    values = generator.names.bind(f"values_of_{index}", "sink_values", index)
    body.add(place.depth, f"{values}.append({place.value}){comment(operator)}", index)
    if operator.timestamps:
        timestamps = generator.names.bind(f"timestamps_of_{index}", "sink_timestamps", index)
        body.add(place.depth, f"{timestamps}.append({place.timestamp})", index)


def emit_legacy_sink(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    _number: int,
) -> None:
    """`print_sink_4(value_3, context_4)`."""
    index = operator.index
    name = method_name(generator, operator, "invoke")
    context = generator.names.bind(f"context_{index}", "context", index)
    if place.timestamp is not None:
        body.add(place.depth, f"{context}._timestamp = {place.timestamp}", index)
    body.add(place.depth, f"{name}({place.value}, {context}){comment(operator)}", index)


def emit_timestamps(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> Place | None:
    """Timestamps, as the strategy says; a source without one has nothing to do for a record."""
    strategy = strategy_of(operator)
    if strategy is None or event_time.is_written_out(generator, strategy, place):
        generator.emit_sides(operator)  # a source may have some: what it could not read
    if strategy is None:
        return place
    if event_time.is_written_out(generator, strategy, place):
        return emit_timestamp(generator, body, operator, place, strategy)
    call_operator(generator, body, operator, place, number)
    return None


def call_operator(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> None:
    """Calls an operator that emits by itself; everything downstream of it is a function of its own."""
    index = operator.index
    name = generator.names.bind(f"{operator.spec.kind}_{index}_{number}", "process", index, number)
    body.add(place.depth, f"{name}({place.value}, {place.timestamp}){comment(operator)}", index)
    if number == 0:
        generator.emit_by_itself(operator)
        generator.emit_sides(operator)


def emit_window(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> None:
    """Tumbling and sliding event-time windows are written out, all others are called as objects."""
    if is_written_out(operator, is_batch=generator.program.is_batch):
        emit_aligned_window(generator, body, operator, place)
    else:
        call_operator(generator, body, operator, place, number)


EMITTERS: dict[type[specs.OperatorSpec], Emitter] = {
    specs.SourceSpec: emit_timestamps,
    specs.InputFormatSourceSpec: emit_timestamps,
    specs.LegacySourceSpec: emit_timestamps,
    specs.TimestampsWatermarksSpec: emit_timestamps,
    specs.MapSpec: emit_map,
    specs.FilterSpec: emit_filter,
    specs.FlatMapSpec: emit_flat_map,
    specs.MapBatchesSpec: emit_map_batches,
    specs.ProcessSpec: emit_process,
    specs.KeyedProcessSpec: emit_keyed_process,
    specs.KeyedCoProcessSpec: emit_keyed_process,
    specs.ReduceSpec: emit_reduce,
    specs.CombinedReduceSpec: emit_reduce,
    specs.WindowSpec: emit_window,
    specs.CoMapSpec: emit_co_map,
    specs.CoFlatMapSpec: emit_co_flat_map,
    specs.CoProcessSpec: emit_process,
    specs.SinkWriterSpec: emit_sink_writer,
    specs.CollectSinkSpec: emit_collect_sink,
    specs.LegacySinkSpec: emit_legacy_sink,
    specs.TwoPhaseSinkSpec: emit_collect_sink,
}
"""Every other kind is called as an object: `call_operator`."""


def _loop(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    iterable: str,
    *,
    is_fresh: bool = False,
    is_plain: bool = False,
) -> Place:
    result = f"value_{operator.index}"
    counter, counted = generator.counter(operator, place)
    index, where = operator.index, comment(operator)
    if is_plain:
        body.add_loop(place.depth, result, iterable, operator=index, comment=where)
    else:
        body.add(place.depth, f"for {result} in {iterable}:{where}", index)
    depth = place.depth + 1
    items = () if is_fresh else keep_items_private(generator, body, depth, result, operator)
    if counter is not None:
        body.add(depth, f"{counter} += 1")
    if not generator.copies and counter is None:
        body.add(depth, "pass")
    return replace(place, value=result, depth=depth, skip="continue", counted=counted, items=items)


def _function(operator: OperatorProgram) -> Any:
    return operator.spec.function  # type: ignore[attr-defined]


def _applied(
    generator: VertexGenerator, operator: OperatorProgram, value: str, *, is_iterated: bool = False
) -> tuple[str, bool]:
    """The call of an operator's function, and whether its result is known to be nobody else's."""
    function = _function(operator)
    expression = generator.expression(function, is_iterated=is_iterated)
    if expression is not None:
        return expression.applied_to(value), expression.is_fresh
    name = generator.names.function(function, operator.spec.kind, operator.index)
    return f"{generator.names.bind(name, 'call', operator.index)}({value})", False


def _result_type(
    generator: VertexGenerator,
    operator: OperatorProgram,
    place: Place,
    *,
    is_iterated: bool = False,
) -> StaticType | None:
    """What is known of an operator's results."""
    expression = generator.expression(_function(operator), is_iterated=is_iterated)
    if expression is None:
        return None
    return generator.type_of(expression, generator.types.get(place.value))


def _set_key(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int = 0,
) -> None:
    """On a keyed stream a rich function may use keyed state: its key is set before each call."""
    if not operator.keys or operator.keys[number] is None:
        return
    if hasattr(_function(operator), "open"):
        name = generator.names.bind(f"set_key_{operator.index}", "set_key", operator.index)
        key = f"key_{operator.index}"
        selected = key_code(generator, operator, place, number)
        body.add(place.depth, f"{key} = {selected}", operator.index)
        body.add(place.depth, f"{name}({key})", operator.index)
