"""A timestamp that is an item of its record is not sent beside it.

>>> from opchain.common import WatermarkStrategy
>>> from opchain.datastream.window import TumblingEventTimeWindows
>>> strategy = WatermarkStrategy.for_monotonous_timestamps()
>>> strategy = strategy.with_timestamp_assigner(lambda row, _: row[1])
>>> change(
...     "omit_timestamps",
...     lambda numbers: numbers.map(lambda x: (x % 7, x))
...     .assign_timestamps_and_watermarks(strategy)
...     .key_by(lambda row: row[0])
...     .window(TumblingEventTimeWindows.of(1000))
...     .reduce(lambda a, b: (b[0], a[1] * b[1])),
... )
-   timestamps_0.append(timestamp_2)

The receiver takes the timestamp from the record. So the output must be the only input of its only receiver. In batch mode
the timestamp is always sent beside the records, because the receiver sorts by it on arrival.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.displays import display_of
from opchain.compiler.codegen.static_types import SentRecords

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function


def omit_timestamps(form: Form) -> None:
    """Removes these timestamps, if only one statement writes to the output."""
    if form.program.is_batch:
        return
    sends = [
        (function, item)
        for function in form.functions
        for item in f.all_statements(function.body)
        if isinstance(item, f.Send)
    ]
    for function, send in sends:
        number = send.number
        if sum(other.number == number for _, other in sends) > 1 or function.fallback:
            continue
        if send.time is None or number not in form.read_alone or number in form.window_folds:
            continue
        item = _item_of(form, function, send)
        if item is not None:
            send.time = None
            known = form.sent.get(number, SentRecords())
            form.sent[number] = replace(known, time=item)


def _item_of(form: Form, function: Function, send: f.Send) -> str | None:  # noqa: PLR0911 - one for each form
    """The expression over `value` that reads the timestamp from the record."""
    if not isinstance(send.time, ast.Name):
        return None
    settings = [
        statement.value
        for statement in f.all_statements(function.body)
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == send.time.id
        and not f.called(statement.value).startswith("as_timestamp_")
    ]
    if len(settings) != 1:
        return None
    (assigned,) = settings
    record = send.value
    display = display_of(record, form.constants)
    if display is not None:
        for position, element in enumerate(display.elements):
            if isinstance(assigned, ast.Name) and ast.dump(element) == ast.dump(assigned):
                return ast.unparse(display.read(f.name("value"), position))
        return None
    if isinstance(record, ast.Name) and f.item_variable(assigned) == record.id:
        if _may_have_changed(function, record.id):
            return None
        assert isinstance(assigned, ast.Subscript)
        return f"value[{ast.unparse(assigned.slice)}]"
    return None


def _may_have_changed(function: Function, variable: str) -> bool:
    """Whether code that is not written out gets the record, and so its item may be another by now."""
    for statement in f.all_statements(function.body):
        for expression in f.own_expressions(statement):
            for node in ast.walk(expression):
                if (
                    isinstance(node, ast.Call)
                    and any(f.is_load_of(argument, variable) for argument in node.args)
                    and not f.called(node).startswith(("as_timestamp_", "own_copy"))
                ):
                    return True
    return False
