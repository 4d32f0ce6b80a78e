"""Tuples that are made for an exchange are sent field by field, and never made (runtime/records/columns.py).

>>> change("send_fields", lambda lines: lines.map(lambda line: (len(line), 1)).key_by(lambda row: row[0]).sum(1))
-   keys_0.append(item_1_0)
-   values_0.append((item_1_0, 1))
+   column_0_0.append(item_1_0)

A list for each field is filled, routed, pickled and read; the key's list is one of them, and a constant is sent once.
Two lists of ints take half the time of pairs. With more than three fields this is no faster.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.static_types import ColumnsOf, Traveling, TupleOf, type_of

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function

MOST_COLUMNS = 3
_CONSTANTS = (int, bool, float, str, bytes, type(None))


def send_fields(form: Form) -> None:
    """Rewrites the sends of outputs that are written at one place, in a function over batches."""
    for number in range(len(form.program.outputs)):
        places = [
            (function, item)
            for function in form.functions
            for item in f.all_statements(function.body)
            if isinstance(item, f.Send) and item.number == number
        ]
        main = [place for place in places if not place[0].name.startswith("fallback_")]
        if len(main) != 1:
            continue
        ((function, send),) = main
        if function.name.startswith("process_"):
            _send_fields(form, function, send)
    _note_types(form)


def nothing_is_sent_twice(form: Form) -> None:
    """An output is either sent by fields or as records by the functions that are not a fallback."""
    for function in form.functions:
        sent = {item.number for item in f.all_statements(function.body) if isinstance(item, f.Send)}
        columns = {
            int(item.list.split("_")[1])
            for item in f.all_statements(function.body)
            if isinstance(item, f.Append) and item.list.startswith("column_")
        }
        assert not sent & columns, function.name


def _send_fields(form: Form, function: Function, send: f.Send) -> None:
    elements = send.value.elts if isinstance(send.value, ast.Tuple) else []
    constants = [
        element if isinstance(element, ast.Constant) and type(element.value) in _CONSTANTS else None
        for element in elements
    ]
    if not 0 < constants.count(None) <= MOST_COLUMNS:
        return
    key = None
    if send.key is not None:
        same = [
            position
            for position, element in enumerate(elements)
            if ast.dump(element) == ast.dump(send.key) and constants[position] is None
        ]
        if not same:
            return
        key = same[0]
    types = types_of(function, form)
    number, operator = send.number, f.operator_of(send)
    layout = tuple(() if node is None else (node.value,) for node in constants)
    lines: list[ast.stmt] = []
    for position, element in enumerate(elements):
        if constants[position] is None:
            column = form.names.bind(
                f"column_{number}_{position}", "column", number, layout, position, position == key
            )
            lines.append(f.made(f.Append, list=column, value=element))
    comment = (f.comment_of(send) or "").replace(", ->", " ->")
    before, arrow, label = comment.rpartition("-> ")
    lines[-1].comment = f"{before}{arrow}{label}, by fields"  # type: ignore[attr-defined]
    if send.time is not None:
        lines.append(f.made(f.Append, list=f"timestamps_{number}", value=send.time))
    f.marked(lines, operator)
    function.body = f.rewritten(function.body, lambda item: lines if item is send else None)
    kinds = TupleOf(tuple(type_of(element, types) for element in elements))
    texts = tuple(None if node is None else ast.unparse(node) for node in constants)
    time = form.sent.get(number, Traveling()).time
    form.sent[number] = Traveling(
        ColumnsOf(kinds, texts),
        time,
        is_certain=function.fallback is None,
        key_list=None if key is None else constants[:key].count(None),
    )
    form.remark(operator, "sent by fields")


def _note_types(form: Form) -> None:
    """What is known of records that are sent as they are."""
    found: dict[int, list[object]] = {}
    for function in form.functions:
        types = types_of(function, form)
        for item in f.all_statements(function.body):
            if isinstance(item, f.Send):
                found.setdefault(item.number, []).append(type_of(item.value, types))
    for number, kinds in found.items():
        known = form.sent.get(number, Traveling())
        if known.type is None and all(kind == kinds[0] for kind in kinds):
            form.sent[number] = replace(known, type=kinds[0])  # type: ignore[arg-type]
