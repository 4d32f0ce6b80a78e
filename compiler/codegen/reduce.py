"""The lines of a keyed reduce: they fold a record into its key's entry.

    key_0 = value[0]  # 0 Keyed Reduce (job.py:14)
    previous_0 = table_0.get(key_0, ABSENT)
    if previous_0 is ABSENT:
        value_0 = value
    else:
        value_0 = largest_0(previous_0, value)
    table_0[key_0] = value_0

Where pairs are summed up (running_sum.py) the entry is the sum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.columns import tuple_of
from opchain.compiler.codegen.inline import reads
from opchain.compiler.codegen.private_items import with_items
from opchain.compiler.codegen.private_records import is_harmless, keep_private
from opchain.compiler.codegen.record_code import comment, is_plain_key, key_code
from opchain.compiler.codegen.running_sum import summed_pairs
from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.running_sum import RunningSum
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram


def reads_fields(generator: VertexGenerator, operator: OperatorProgram, place: Place) -> bool:
    """Whether an operator needs a record's fields alone, and not the record."""
    if type(operator.spec) is not specs.ReduceSpec or generator.program.is_batch:
        return False
    key_program = operator.keys[0]
    assert key_program is not None
    key = generator.expression(key_program.selector)
    reduced = generator.expression(operator.spec.function)
    if key is None or reduced is None:
        return False
    read = (key.applied_to(place.value), reduced.applied_to("previous", place.value))
    return not any(reads(with_items(text, place.items), place.value) for text in read)


def emit_reduce(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    _number: int,
) -> Place | None:
    """Folds the record into its key's entry; in batch mode nothing comes out before the end."""
    index, depth, names = operator.index, place.depth, generator.names
    key_program = operator.keys[0]
    assert key_program is not None
    is_combined = isinstance(operator.spec, specs.CombinedReduceSpec)
    if not (is_combined or generator.program.is_batch):
        summed = summed_pairs(
            generator, key_program, _function(operator), generator.types.get(place.value)
        )
        generator.decide(f"reduce {index}", summed)
        if summed is not None:
            return _emit_running_sum(generator, body, operator, place, summed)
    names.bind("ABSENT", "shared")
    table = names.bind(f"table_{index}", "table", index)
    key, previous, result = f"key_{index}", f"previous_{index}", f"value_{index}"
    if is_combined:
        item = f"item_{index}"
        body.add(depth, f"{key}, {item} = {place.value}{comment(operator)}", index)
        place = replace(place, value=item)
    else:
        selected = with_items(key_code(generator, operator, place, 0), place.items)
        body.add(depth, f"{key} = {selected}{comment(operator)}", index)
        if has_lifecycle(_function(operator)):
            body.add(depth, f"{names.bind(f'set_key_{index}', 'set_key', index)}({key})", index)
    if is_combined or not is_plain_key(generator, key_program, place):
        plain_keys = names.bind(f"plain_keys_{index}", "plain_keys", index)
        body.add(depth, f"if {key}.__class__ not in {plain_keys}:", index)
        identify = names.bind(f"identify_{index}", "identify", index)
        body.add(depth + 1, f"{key} = {identify}({key})", index)
    body.add(depth, f"{previous} = {table}.get({key}, ABSENT)", index)
    expression = generator.expression(_function(operator))
    if expression is not None:
        reduced = with_items(expression.applied_to(previous, place.value), place.items)
        known = generator.types.get(place.value)
        if generator.type_of(expression, known, known) == known:
            generator.types[result] = known
    else:
        name = names.function(_function(operator), "reduce", index)
        reduced = f"{names.bind(name, 'call', index)}({previous}, {place.value})"
    body.add(depth, f"if {previous} is ABSENT:", index)
    record = place.value if place.fields is None else tuple_of(place.fields)
    body.add(depth + 1, f"{result} = {record}", index)
    body.add(depth, "else:", index)
    body.add(depth + 1, f"{result} = {reduced}", index)
    body.add(depth, f"{table}[{key}] = {result}", index)
    if generator.program.is_batch:
        generator.emit_by_itself(operator)
        return None
    if not (expression is not None and expression.is_fresh and is_harmless(generator, operator)):
        keep_private(generator, body, depth, result, index)
    return replace(place, value=result, fields=None)


def _emit_running_sum(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    summed: RunningSum,
) -> Place:
    """Sums of this run are in `sums`, those from before in the table: see ReduceOperator."""
    index, depth, names = operator.index, place.depth, generator.names
    key, total, previous, result = (
        f"{word}_{index}" for word in ("key", "sum", "previous", "value")
    )
    sums = names.bind(f"sums_{index}", "sums", index, summed.key_field)
    table = names.bind(f"table_{index}", "table", index)
    where = comment(operator)
    if place.fields is None:
        addend = f"{place.value}[{summed.sum_field}]"
        body.add(depth, f"{key} = {place.value}[{summed.key_field}]{where}", index)
        where = ""
    else:
        key, addend = place.fields[summed.key_field], place.fields[summed.sum_field]
    body.add(depth, f"{total} = {sums}.get({key}){where}", index)
    body.add(depth, f"if {total} is None:", index)
    body.add(depth + 1, f"{previous} = {table}.get({key})", index)
    earlier = summed.added(f"{previous}[{summed.sum_field}]", addend)
    body.add(depth + 1, f"{total} = {addend} if {previous} is None else {earlier}", index)
    body.add(depth, "else:", index)
    body.add(depth + 1, f"{total} = {summed.added(total, addend)}", index)
    body.add(depth, f"{sums}[{key}] = {total}", index)
    body.add(depth, f"{result} = {summed.pair(key, total)}", index)
    generator.types[result] = generator.types.get(place.value)
    return replace(place, value=result, fields=None)


def _function(operator: OperatorProgram) -> Any:
    return operator.spec.function  # type: ignore[attr-defined]
