"""The lines that fold a record into its key's entry: of a keyed reduce, and before an exchange.

    key_0 = value[0]  # 0 Keyed Reduce (job.py:14)
    previous_0 = table_0.get(key_0, ABSENT)
    if previous_0 is ABSENT:
        value_0 = value
    else:
        value_0 = largest_0(previous_0, value)
    table_0[key_0] = value_0

Where pairs are summed up (running_sum.py) the entry is the sum, and a map that makes the pairs need not
make them:

    for value_1 in value.split():  # 1 Flat Map (job.py:12)
        sum_0 = combined_0.get(value_1)  # -> Keyed Reduce (hash by key), combined here
        combined_0[value_1] = 1 if sum_0 is None else sum_0 + 1
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.record_code import comment, key_code
from opchain.compiler.codegen.running_sum import running_sum
from opchain.compiler.codegen.static_types import TupleOf
from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.operators import specs
from opchain.runtime.state.key_identity import key_identity
from opchain.runtime.task.vertex_program import FIRST_OUTPUT

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.running_sum import RunningSum
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.task.vertex_program import KeyProgram, OperatorProgram, OutputProgram


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
        summed = _summed(generator, key_program, _function(operator), place)
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
        selected = key_code(generator, operator, place, 0)
        body.add(depth, f"{key} = {selected}{comment(operator)}", index)
        if has_lifecycle(_function(operator)):
            body.add(depth, f"{names.bind(f'set_key_{index}', 'set_key', index)}({key})", index)
    if is_combined or not _is_plain(generator, key_program, place):
        plain_keys = names.bind(f"plain_keys_{index}", "plain_keys", index)
        body.add(depth, f"if {key}.__class__ not in {plain_keys}:", index)
        identify = names.bind(f"identify_{index}", "identify", index)
        body.add(depth + 1, f"{key} = {identify}({key})", index)
    body.add(depth, f"{previous} = {table}.get({key}, ABSENT)", index)
    expression = generator.expression(_function(operator))
    if expression is not None:
        reduced = expression.applied_to(previous, place.value)
        known = generator.types.get(place.value)
        if generator.type_of(expression, known, known) == known:
            generator.types[result] = known
    else:
        name = names.function(_function(operator), "reduce", index)
        reduced = f"{names.bind(name, 'call', index)}({previous}, {place.value})"
    body.add(depth, f"if {previous} is ABSENT:", index)
    body.add(depth + 1, f"{result} = {place.value}", index)
    body.add(depth, "else:", index)
    body.add(depth + 1, f"{result} = {reduced}", index)
    body.add(depth, f"{table}[{key}] = {result}", index)
    if generator.program.is_batch:
        generator.emit_by_itself(operator)
        return None
    if not (expression is not None and expression.is_fresh and generator.is_harmless(operator)):
        generator.keep_private(body, depth, result, index)
    return replace(place, value=result)


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
    addend = f"{place.value}[{summed.sum_field}]"
    body.add(depth, f"{key} = {place.value}[{summed.key_field}]{comment(operator)}", index)
    body.add(depth, f"{total} = {sums}.get({key})", index)
    body.add(depth, f"if {total} is None:", index)
    body.add(depth + 1, f"{previous} = {table}.get({key})", index)
    earlier = summed.added(f"{previous}[{summed.sum_field}]", addend)
    body.add(depth + 1, f"{total} = {addend} if {previous} is None else {earlier}", index)
    body.add(depth, "else:", index)
    body.add(depth + 1, f"{total} = {summed.added(total, addend)}", index)
    body.add(depth, f"{sums}[{key}] = {total}", index)
    body.add(depth, f"{result} = {summed.pair(key, total)}", index)
    generator.types[result] = generator.types.get(place.value)
    return replace(place, value=result)


def pair_left_apart(
    generator: VertexGenerator, body: SourceText, operator: OperatorProgram, place: Place
) -> Place | None:
    """Writes the two fields of the pair that a map makes, where the pair itself is never seen."""
    number, output = generator.only_output(operator)
    expression = generator.expression(_function(operator))
    if output is None or output.combine is None or output.key is None or expression is None:
        return None
    made = replace(place, value=f"value_{operator.index}")
    if _summed(generator, output.key, output.combine, made) is None:
        return None
    tree = ast.parse(expression.applied_to(place.value), mode="eval").body
    if not isinstance(tree, ast.Tuple):
        return None
    fields = []
    for position, item in enumerate(tree.elts):
        text = ast.unparse(item)
        if not isinstance(item, (ast.Name, ast.Constant)):
            field = f"field_{number}_{position}"
            body.add(place.depth, f"{field} = {text}{comment(operator)}", operator.index)
            text = field
        fields.append(text)
    return replace(made, fields=tuple(fields))


def write_combine(
    generator: VertexGenerator, body: SourceText, number: int, output: OutputProgram, place: Place
) -> None:
    """Folds a record into its key's entry before an exchange."""
    depth, index, names = place.depth, FIRST_OUTPUT - number, generator.names
    key_program = output.key
    assert key_program is not None
    key, total = f"key_{number}", f"sum_{number}"
    summed = _summed(generator, key_program, output.combine, place)
    generator.decide(f"combine {number}", summed)
    where = f"  # -> {output.label}, combined here"
    if summed is not None:
        combined = names.bind(f"combined_{number}", "combined_sums", number, summed.key_field)
        fields = place.fields or tuple(f"{place.value}[{field}]" for field in (0, 1))
        selected, addend = fields[summed.key_field], fields[summed.sum_field]
        if place.fields is None:
            body.add(depth, f"{key} = {selected}{where}", index)
            selected, where = key, ""
        body.add(depth, f"{total} = {combined}.get({selected}){where}", index)
        added = f"{addend} if {total} is None else {summed.added(total, addend)}"
        body.add(depth, f"{combined}[{selected}] = {added}", index)
        return
    combined = names.bind(f"combined_{number}", "combined", number)
    names.bind("ABSENT", "shared")
    body.add(depth, f"{key} = {generator.output_key(number, output, place.value)}{where}", index)
    if not _is_plain(generator, key_program, place):
        plain_keys = names.bind(f"plain_keys_to_{number}", "output_plain_keys", number)
        body.add(depth, f"if {key}.__class__ not in {plain_keys}:", index)
        identify = names.bind(f"identify_to_{number}", "output_identify", number)
        body.add(depth + 1, f"{key} = {identify}({key})", index)
    body.add(depth, f"{total} = {combined}.get({key}, ABSENT)", index)
    expression = generator.expression(output.combine)
    if expression is not None:
        reduced = expression.applied_to(total, place.value)
    else:
        name = names.function(output.combine, "reduce", f"to_{number}")
        names.bind(name, "combine", number)
        reduced = f"{name}({total}, {place.value})"
    body.add(depth, f"{combined}[{key}] = (", index)
    body.add(depth + 1, f"{place.value} if {total} is ABSENT else {reduced}", index)
    body.add(depth, ")", index)


def _summed(
    generator: VertexGenerator, key: KeyProgram, reduce: Any, place: Place
) -> RunningSum | None:
    records = generator.types.get(place.value)
    if not isinstance(records, TupleOf):
        return None
    return running_sum(
        key, generator.expression(key.selector), generator.expression(reduce), records
    )


def _is_plain(generator: VertexGenerator, key: KeyProgram, place: Place) -> bool:
    """Whether keys are known to stand for themselves in tables."""
    expression = generator.expression(key.selector)
    if expression is None:
        return False
    known = generator.type_of(expression, generator.types.get(place.value))
    return known in key_identity(key.hasher).plain


def _function(operator: OperatorProgram) -> Any:
    return operator.spec.function  # type: ignore[attr-defined]
