"""A filter of None moves to the branch that sets a record.

>>> def parsed(text):
...     try:
...         number = int(text)
...     except ValueError:
...         return None
...     return (number % 7, number)
>>> change(
...     "decide_in_branches",
...     lambda numbers: numbers.map(lambda x: f"{x}").map(parsed).filter(lambda pair: pair is not None),
... )
- before_values_0 = len(values_0)
+ before_column_0_0 = len(column_0_0)
-     value_2 = None
+     pass
-     value_2 = (number_2 % 7, number_2)
-   if value_2 is None:
-     continue
-   values_0.append(value_2)
+     item_2_0 = number_2 % 7
+     column_0_0.append(item_2_0)
+     column_0_1.append(number_2)

Other rules then see which record passes the filter, and need not build it. If a record is created at the end of a `try`, only
the values of its fields are computed there. The record is created after it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import pairwise

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.displays import display_of


def decide_in_branches(form: f.Form) -> None:
    """Moves the code after each filter of None."""
    for function in form.functions:
        for block in f.all_blocks(function.body):
            _decide(form, function.body, block)


def _decide(form: f.Form, body: f.Lines, block: f.Lines) -> None:
    places = [place for place, item in enumerate(block) if not isinstance(item, f.Count)]
    for place, later in pairwise(places):
        test, branches = block[later], block[place]
        if not (isinstance(test, ast.If) and isinstance(branches, (ast.If, ast.Try))):
            continue
        tested = _not_none_test(test.test)
        if tested is None or test.orelse:
            continue
        variable, more = tested
        if isinstance(branches, ast.Try):
            _move_after_try(form, branches, variable)
        ends = _ends([branches], variable)
        known = [end for end in ends or () if not _sets_none(end[-1])]
        if ends is None or len(known) != 1:
            continue
        (end,) = known
        if display_of(end[-1].value, form.constants) is None:  # type: ignore[attr-defined]
            continue
        if f.reads(body, variable) != f.reads(test, variable):
            continue  # None is read elsewhere
        for other in ends:
            if other is not end:
                other[-1:] = [] if other[1:] else f.marked([ast.Pass()], notes.operator(other[0]))
        kept = (
            test.body
            if more is None
            else f.marked([ast.If(more, test.body, [])], notes.operator(test))
        )
        end += f.with_comment(kept, notes.comment(test))
        block.pop(later)
        _decide(form, body, block)
        return


def _move_after_try(form: f.Form, block: ast.Try, variable: str) -> None:
    """Creates a record after a `try` instead of at its end. The values of its fields, which may raise, are still computed there."""
    last = block.body[-1]
    display = display_of(getattr(last, "value", None), form.constants)
    handled = [_ends(handler.body, variable) for handler in block.handlers]
    is_none = all(ends and all(_sets_none(end[-1]) for end in ends) for ends in handled)
    is_last = f.variable_set(last) == variable and not (block.orelse or block.finalbody)
    if display is None or not (is_last and is_none):
        return
    operator = notes.operator(last)
    parts = [f"part_{f.suffix_of(operator)}_{number}" for number in range(len(display.elements))]
    fields = [f.let(*each, operator) for each in zip(parts, display.elements, strict=True)]
    block.body[-1:] = f.with_comment(fields, notes.comment(last))
    made = replace(display, elements=[*map(f.name, parts)]).expression(form)
    block.orelse = [f.let(variable, made, operator)]


def _not_none_test(test: ast.expr) -> tuple[str, ast.expr | None] | None:
    """The variable of the test `variable is not None`, and the rest of the test."""
    first, more = test, None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        first, *others = test.values
        more = others[0] if len(others) == 1 else ast.BoolOp(ast.And(), others)
    match first:
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]
        ):
            return name, more
    return None


def _ends(block: f.Lines, variable: str) -> list[f.Lines] | None:
    """The blocks whose last statement sets the variable, one of which always runs last. None if there may be others.

    Handlers of exceptions set the variable to None, because the code after the `try` must not run in them.
    """
    if not block:
        return None
    last = block[-1]
    if f.variable_set(last) == variable:
        return [block]
    handled: list[f.Lines] = []
    if isinstance(last, ast.If):
        inner = [last.body, last.orelse]
    elif isinstance(last, ast.Try) and not last.finalbody:
        inner, handled = [last.orelse], [handler.body for handler in last.handlers]
    else:
        return None
    found: list[f.Lines] = []
    for each in (*inner, *handled):
        ends = _ends(each, variable)
        if ends is None or (
            any(each is one for one in handled) and not all(_sets_none(end[-1]) for end in ends)
        ):
            return None
        found += ends
    return found


def _sets_none(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Constant) and value.value is None
