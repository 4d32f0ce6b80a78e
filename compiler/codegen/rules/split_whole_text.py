r"""Splits the text of a whole batch into words at once, without cutting it into lines.

>>> change("split_whole_text", lambda lines: lines.flat_map(lambda line: line.lower().split()))
- for value in values:
-   values_0.extend(value.lower().split())
+ values_0.extend(whole_text(values).lower().split())

A filter of the words (extend_lists.py) also gets them all at once. White space separates words, and a line end is white
space. So the words of texts with a line end between each two are those of the texts, one after the other. How a letter
is spelled in lower or upper case depends on the letters of its word alone. None of these operations raises.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form

_KEEPS_WORDS = frozenset({"casefold", "lower", "strip", "upper"})


def split_whole_text(form: Form) -> None:
    """Rewrites loops over texts that only collect their words."""
    for function in form.batch_functions():
        if function.types.get("value") is not str or len(function.body) != 1:
            continue
        loop = function.body[0]
        if (
            isinstance(loop, ast.For)
            and isinstance(loop.target, ast.Name)
            and f.reads(loop.iter, "values") == 1
            and loop.body
            and _collects_words(loop.body)
        ):
            form.names.bind("whole_text", "shared")
            text = f.expression("whole_text(values)")
            function.body = [f.replaced(item, {"value": text}) for item in loop.body]


def _collects_words(block: list[ast.stmt]) -> bool:
    """Whether a block only appends words to a list, all of them or some."""
    *before, last = block
    match last:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="extend"), args=[words])):
            pass
        case _:
            return False
    if isinstance(words, ast.ListComp) and len(words.generators) == 1:
        words = words.generators[0].iter
    if before:
        named, *counts = before
        is_named = isinstance(words, ast.Name) and f.variable_set(named) == words.id
        if not is_named or not all(isinstance(item, ast.AugAssign) for item in counts):
            return False
        words = named.value  # type: ignore[attr-defined]
    return _are_words(words) and f.reads(block, "value") == 1


def _are_words(node: ast.expr) -> bool:
    """Whether an expression is `value.lower().split()` or similar."""
    last = "split"
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.args or node.keywords:
            return False
        attribute = node.func.attr
        if attribute != last if last else attribute not in _KEEPS_WORDS:
            return False
        last, node = "", node.func.value
    return not last and f.is_load_of(node, "value")
