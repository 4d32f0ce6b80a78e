"""Records that are created for an exchange are sent field by field, and not built (runtime/records/columns.py).

>>> change("send_fields", lambda lines: lines.map(lambda line: (len(line), 1)).key_by(lambda row: row[0]).sum(1))
-   keys_0.append(item_1_0)
-   values_0.append((item_1_0, 1))
+   column_0_0.append(item_1_0)

There is one list per field, which is filled, routed, pickled and read as a whole. A constant is sent once. A field that the
receiver does not read is left out (fields_read.py). If the key is a field, the list of this field has the keys. Otherwise the
keys have a separate list, which is not sent. Two lists of ints take half the time of pairs. With more than three fields this is
not faster for tuples, but it is for Rows, named tuples and dictionaries.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.displays import display_of
from opchain.compiler.codegen.fields_read import (
    MOST_COLUMNS,
    MOST_COLUMNS_OF_OTHERS,
    positions_read,
)
from opchain.compiler.codegen.names import stem
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import (
    ColumnsOf,
    SentRecords,
    StaticType,
    TupleOf,
    type_of,
)
from opchain.runtime.program.vertex_program import FIRST_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.codegen.form import Form, Function
    from opchain.runtime.records.columns import Shape

_CONSTANTS = (int, bool, float, str, bytes, type(None), type(...))


def send_fields(form: Form) -> None:
    """Rewrites the sends of outputs whose statements in functions over batches all send the same fields."""
    for number in range(len(form.program.outputs)):
        sends = form.sends(number)
        main = [place for place in sends if place[0].kind == "process"]
        others = [place for place in sends if place not in main]
        if main and all(_is_apart(function, form) for function, _ in others):
            _send_fields(form, main, others)
    _note_types(form)


def _is_apart(function: Function, form: Form) -> bool:
    """Whether a function never sends records between two records of one batch that another function sends by fields.

    A fallback processes whole batches. An `emit_I` that only fallbacks and operators call is never called within a batch of
    other code: a function whose timers emit calls its `emit_I` for the results of records, too.
    """
    if function.kind == "fallback":
        return True
    if function.kind != "emit":
        return False
    index = function.name.split("_")[1]
    callers = (each for each in form.functions if each.kind != "fallback")
    called = {name for caller in callers for name in f.names_in(caller.body)}
    return called.isdisjoint({f"emit_{index}", f"emit_side_{index}", function.name})


def nothing_is_sent_twice(form: Form) -> None:
    """Each function sends an output either by fields or as records."""
    for function in form.functions:
        sent = {item.number for item in f.all_statements(function.body) if isinstance(item, f.Send)}
        columns = {
            int(item.list.split("_")[1])
            for item in f.all_statements(function.body)
            if isinstance(item, f.Append) and stem(item.list) == "column"
        }
        assert not sent & columns, function.name


@dataclass(frozen=True, slots=True)
class _Fields:
    """How records are sent: their shape, their constant fields, and the field that is their key, if one is."""

    shape: Shape | None
    constants: tuple[tuple[Any, ...], ...]
    key: int | None

    @property
    def sent(self) -> list[int]:
        """The fields that are sent as separate lists."""
        return [position for position, constant in enumerate(self.constants) if not constant]

    def columns(self, types: Sequence[StaticType | None]) -> ColumnsOf:
        """How the reader gets the records, whose fields have these types."""
        texts = (text_of(ast.Constant(*item)) if item else None for item in self.constants)
        return ColumnsOf(TupleOf(tuple(types)), tuple(texts), self.shape)


def _fields_of(form: Form, sends: Sequence[f.Send]) -> _Fields | None:
    """How the records of an output can be sent, if all statements send similar records."""
    displays = [display_of(send.value, form.constants) for send in sends]
    shapes = {display and (display.shape, len(display.elements)) for display in displays}
    if None in displays or len(shapes) != 1:
        return None
    rows = [display.elements for display in displays if display is not None]
    constants = tuple(map(_constant_of, zip(*rows, strict=True)))
    assert displays[0] is not None
    found = _Fields(displays[0].shape, constants, _key_field(sends, rows, constants))
    if sends[0].key is not None and found.key is None and form.program.is_batch:
        return None  # in batch mode the reader gets its keys from the records
    if displays[0].names is None:
        found = _without_unread(form, sends[0].number, found)
    most = MOST_COLUMNS if found.shape is None else MOST_COLUMNS_OF_OTHERS
    return found if 0 < len(found.sent) <= most else None


def _key_field(
    sends: Sequence[f.Send],
    rows: Sequence[Sequence[ast.expr]],
    constants: Sequence[tuple[Any, ...]],
) -> int | None:
    """The first field that is the key of all records, and no constant."""
    keys = [ast.dump(send.key) for send in sends if send.key is not None]
    for position, constant in enumerate(constants):
        if not constant and keys == [ast.dump(row[position]) for row in rows]:
            return position
    return None


def _without_unread(form: Form, number: int, fields: _Fields) -> _Fields:
    """Leaves out the fields that the reader does not read. The key remains, and one field of records that are only counted."""
    columns = fields.columns([None] * len(fields.constants))
    if columns.lacks_fields and fields.shape is not None:
        return fields  # a dictionary of JSON
    read = {*positions_read(form, number, columns), fields.key}
    if read.isdisjoint(fields.sent):
        read.update(fields.sent[:1])
    constants = (
        item if item or place in read else (...,) for place, item in enumerate(fields.constants)
    )
    return replace(fields, constants=tuple(constants))


def _constant_of(elements: tuple[ast.expr, ...]) -> tuple[Any, ...]:
    """The value of a field, if it is the same constant in all records.

    Constants are compared by their repr, because 1 equals True.
    """
    values = {repr(item.value) for item in elements if isinstance(item, ast.Constant)}
    first = elements[0]
    if not all(isinstance(item, ast.Constant) for item in elements) or len(values) != 1:
        return ()
    assert isinstance(first, ast.Constant)
    return (first.value,) if type(first.value) in _CONSTANTS else ()


def _send_fields(
    form: Form, places: list[tuple[Function, f.Send]], others: list[tuple[Function, f.Send]]
) -> None:
    fields = _fields_of(form, [send for _, send in places])
    if fields is None:
        return
    number, key = places[0][1].number, fields.key
    kinds: list[list[StaticType | None]] = []
    for function, send in places:
        display = display_of(send.value, form.constants)
        assert display is not None
        types, operator = types_of(function, form), notes.operator(send)
        kinds.append([type_of(element, types) for element in display.elements])
        lines: list[ast.stmt] = []
        if send.key is not None and key is None:
            append = f.made(f.Append, list=f"keys_{number}", value=send.key)
            lines += f.marked([append], FIRST_OUTPUT - number)
        for position in fields.sent:
            column = form.names.bind(
                f"column_{number}_{position}",
                *("column", number, fields.constants, position, position == key, fields.shape),
            )
            value = display.elements[position]
            lines.append(f.made(f.Append, list=column, value=value))
        comment = (notes.comment(send) or "").replace(", ->", " ->")
        before, arrow, label = comment.rpartition("-> ")
        notes.comment.set(lines[-1], f"{before}{arrow}{label}, by fields")
        if send.time is not None:
            lines.append(f.made(f.Append, list=f"timestamps_{number}", value=send.time))
        f.marked(lines, operator)
        function.body = f.replaced_by(function.body, send, lines)
        form.remark(operator, "sent by fields")
    columns = fields.columns(
        [kind[0] if len(set(kind)) == 1 else None for kind in zip(*kinds, strict=True)]
    )
    form.sent[number] = SentRecords(
        columns,
        is_certain=not others and all(function.fallback is None for function, _ in places),
        is_typed=all(
            type_of(send.value, types_of(function, form)) == columns.record
            for function, send in others
        ),
        key_list=None if key is None else fields.sent.index(key),
    )


def _note_types(form: Form) -> None:
    """Records the known types of records that are sent unchanged."""
    found: dict[int, list[object]] = {}
    for function in form.functions:
        types = types_of(function, form)
        for item in f.all_statements(function.body):
            if isinstance(item, f.Send):
                found.setdefault(item.number, []).append(type_of(item.value, types))
    for number, kinds in found.items():
        known = form.sent.get(number, SentRecords())
        if known.type is None and all(kind == kinds[0] for kind in kinds):
            form.sent[number] = replace(known, type=kinds[0])  # type: ignore[arg-type]
