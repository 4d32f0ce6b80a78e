"""The lines that hand a record to an exchange.

    keys_0.append(user_0(value_1))
    values_0.append(value_1)  # -> Keyed Process (hash by user)

Before a reduce in batch mode records of one key are folded into one first:

    key_0 = user_0(value_1)  # -> Keyed Reduce (hash by user), combined here
    sum_0 = combined_0.get(key_0, ABSENT)
    combined_0[key_0] = (
        value_1 if sum_0 is ABSENT else largest_to_0(sum_0, value_1)
    )

A map that makes tuples need not make them: they are sent field by field (columns.py), and where pairs are
summed up (running_sum.py) their fields are, and of (word, 1) only the word is counted.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen.columns import columns_sent, tuple_made
from opchain.compiler.codegen.declared import keeps_form
from opchain.compiler.codegen.private_items import with_items
from opchain.compiler.codegen.record_code import comment, is_plain_key
from opchain.compiler.codegen.running_sum import summed_pairs
from opchain.compiler.codegen.static_types import Traveling
from opchain.runtime.errors import one_line_name
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import FIRST_OUTPUT

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.running_sum import RunningSum
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.static_types import StaticType
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram, OutputProgram


def write_append(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    number: int,
    output: OutputProgram,
    place: Place,
) -> Traveling:
    """Hands a record to output `number`; gives what is known of what is sent."""
    depth, value, index, names = place.depth, place.value, operator.index, generator.names
    known = generator.types.get(value)
    if output.combine is not None:
        _write_combine(generator, body, number, output, place)
        return Traveling()
    if place.fields is not None:
        sent = columns_sent(generator, operator, known)
        assert sent is not None
        known = sent.known
        columns = sent.names(generator)
        is_named = any(field.startswith(f"field_{number}_") for field in place.fields)
        where = f"{'  #' if is_named else comment(operator)} -> {one_line_name(output.label)}, by fields"
        for position, column in columns.items():
            is_last = position == max(columns)
            body.add(depth, f"{column}.append({place.fields[position]}){where * is_last}", index)
    else:
        if output.key is not None:
            key = with_items(_key_of_output(generator, number, output, value), place.items)
            keys = names.bind(f"keys_{number}", "keys", number)
            body.add(depth, f"{keys}.append({key})", FIRST_OUTPUT - number)
        values = names.bind(f"values_{number}", "values", number)
        body.add(depth, f"{values}.append({value})  # -> {one_line_name(output.label)}", index)
    time = _time_within(generator, number, place)
    if output.carries_timestamps and time is None:
        timestamps = names.bind(f"timestamps_{number}", "timestamps", number)
        body.add(depth, f"{timestamps}.append({place.timestamp})", index)
    return Traveling(known, time if output.carries_timestamps else None)


def _time_within(generator: VertexGenerator, number: int, place: Place) -> str | None:
    """The item of a record that is its timestamp, where the only reader can take it from there again."""
    if place.time_of is None or place.fields is not None or not generator.knows_types:
        return None
    if number not in generator.read_alone or generator.program.is_batch:  # which sorts by timestamp
        return None
    variable, item = place.time_of
    return item if variable == place.value else None


def fields_left_apart(
    generator: VertexGenerator, body: SourceText, operator: OperatorProgram, place: Place
) -> Place | None:
    """Writes the fields of the tuple that a map makes, where the tuple itself is never seen."""
    made = replace(place, value=f"value_{operator.index}")
    known = generator.types.get(made.value)
    if not keeps_form(operator, known):
        return None
    sent = _pairs_of(generator, operator, known) or columns_sent(generator, operator, known)
    if sent is None:
        return None
    expression = generator.expression(operator.spec.function)  # type: ignore[attr-defined]
    assert expression is not None
    applied_text = with_items(expression.applied_to(place.value), place.items)
    applied = ast.parse(applied_text, mode="eval").body
    assert isinstance(applied, ast.Tuple)
    fields = []
    for position, item in enumerate(applied.elts):
        text = ast.unparse(item)
        if not isinstance(item, (ast.Name, ast.Constant)):
            field = f"field_{sent.number}_{position}"
            body.add(place.depth, f"{field} = {text}{comment(operator)}", operator.index)
            text = field
        fields.append(text)
    return replace(made, fields=tuple(fields))


def list_behind(
    generator: VertexGenerator, operator: OperatorProgram, known: StaticType | None
) -> str | None:
    """A list that grows by one for each record, of type `known`, that an operator lets through, if there is one."""
    names = generator.names
    while True:
        if not keeps_form(operator, known):
            return None
        sent = columns_sent(generator, operator, known)
        if sent is not None:
            return next(iter(sent.names(generator).values()))
        for number, output in generator.tree.outputs(operator):
            if output.combine is None:
                return names.bind(f"values_{number}", "values", number)
        readers = generator.tree.children(operator)
        sinks = [child for child in readers if child.spec.takes_batches]
        if sinks:
            index = sinks[0].index
            return names.bind(f"values_of_{index}", "sink_values", index)
        one_to_one = [child for child in readers if isinstance(child.spec, specs.MapSpec)]
        if not one_to_one:
            return None
        operator = one_to_one[0]
        expression = generator.expression(operator.spec.function)  # type: ignore[attr-defined]
        known = None if expression is None else generator.type_of(expression, known)
        keys = _keys_counted(generator, operator, known)
        if keys is not None:
            return keys


def _keys_counted(
    generator: VertexGenerator, operator: OperatorProgram, made: StaticType | None
) -> str | None:
    """The list that gets a key for each record, of type `made`, that a map makes to be counted."""
    pairs = _pairs_of(generator, operator, made)
    if pairs is None or pairs.constant is None:
        return None
    if not pairs.summed.counts(pairs.constant):
        return None
    generator.decide(f"combine {pairs.number}", pairs.summed)
    return _counted_keys(generator, pairs.number, pairs.summed)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs that a map makes for output `number` alone, where they are summed up by key before they are sent.

    `tree` is the map's expression, over its parameter.
    """

    number: int
    summed: RunningSum
    tree: ast.Tuple

    @property
    def constant(self) -> str | None:
        """The field that is summed up, where it is the same in all pairs."""
        item = self.tree.elts[self.summed.sum_field]
        return ast.unparse(item) if isinstance(item, ast.Constant) else None


def _pairs_of(
    generator: VertexGenerator, operator: OperatorProgram, made: StaticType | None
) -> _Pairs | None:
    """What a map makes, of type `made`, where nobody sees the pairs themselves."""
    number, output = generator.tree.only_output(operator)
    if output is None or output.key is None or output.combine is None:
        return None
    tree = tuple_made(generator, operator, made)
    summed = summed_pairs(generator, output.key, output.combine, made)
    return None if tree is None or summed is None else _Pairs(number, summed, tree)


def _write_combine(
    generator: VertexGenerator, body: SourceText, number: int, output: OutputProgram, place: Place
) -> None:
    """Folds a record into its key's entry before an exchange."""
    depth, index, names = place.depth, FIRST_OUTPUT - number, generator.names
    assert output.key is not None
    key, total = f"key_{number}", f"sum_{number}"
    summed = summed_pairs(generator, output.key, output.combine, generator.types.get(place.value))
    generator.decide(f"combine {number}", summed)
    where = f"  # -> {one_line_name(output.label)}, combined here"
    if summed is not None:
        _write_sum(generator, body, number, place, summed, where)
        return
    combined = names.bind(f"combined_{number}", "combined", number)
    names.bind("ABSENT", "shared")
    selected = _key_of_output(generator, number, output, place.value)
    body.add(depth, f"{key} = {selected}{where}", index)
    if not is_plain_key(generator, output.key, place):
        plain_keys = names.bind(f"plain_keys_to_{number}", "output_plain_keys", number)
        body.add(depth, f"if {key}.__class__ not in {plain_keys}:", index)
        identify = names.bind(f"identify_to_{number}", "output_identify", number)
        body.add(depth + 1, f"{key} = {identify}({key})", index)
    body.add(depth, f"{total} = {combined}.get({key}, ABSENT)", index)
    expression = generator.expression(output.combine)
    if expression is not None:
        reduced = expression.applied_to(total, place.value)
    else:
        name = names.bind_function(output.combine, "reduce", f"to_{number}", "combine", number)
        reduced = f"{name}({total}, {place.value})"
    body.add(depth, f"{combined}[{key}] = (", index)
    body.add(depth + 1, f"{place.value} if {total} is ABSENT else {reduced}", index)
    body.add(depth, ")", index)


def _write_sum(
    generator: VertexGenerator,
    body: SourceText,
    number: int,
    place: Place,
    summed: RunningSum,
    where: str,
) -> None:
    """Adds a pair's field to its key's sum, or notes the key where sums are counts."""
    depth, index, names = place.depth, FIRST_OUTPUT - number, generator.names
    key, total = f"key_{number}", f"sum_{number}"
    if place.fields is not None and summed.counts(place.fields[summed.sum_field]):
        keys = _counted_keys(generator, number, summed)
        where = where.replace("combined", "counted")
        body.add(depth, f"{keys}.append({place.fields[summed.key_field]}){where}", index)
        return
    combined = names.bind(f"combined_{number}", "combined_sums", number, summed.key_field)
    fields = place.fields or tuple(f"{place.value}[{field}]" for field in (0, 1))
    selected, addend = fields[summed.key_field], fields[summed.sum_field]
    if place.fields is None:
        body.add(depth, f"{key} = {selected}{where}", index)
        selected, where = key, ""
    body.add(depth, f"{total} = {combined}.get({selected}){where}", index)
    added = f"{addend} if {total} is None else {summed.added(total, addend)}"
    body.add(depth, f"{combined}[{selected}] = {added}", index)


def _counted_keys(generator: VertexGenerator, number: int, summed: RunningSum) -> str:
    return generator.names.bind(f"keys_{number}", "counted_keys", number, summed.key_field)


def _key_of_output(
    generator: VertexGenerator, number: int, output: OutputProgram, value: str
) -> str:
    """The expression for the key of a record of an output."""
    assert output.key is not None
    expression = generator.expression(output.key.selector)
    if expression is not None:
        return expression.applied_to(value)
    selector = output.key.selector
    name = generator.names.bind_function(selector, "key", f"to_{number}", "output_key", number)
    return f"{name}({value})"
