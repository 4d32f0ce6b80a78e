r"""Splits the text of a whole batch into words at once, without cutting it into lines.

>>> change("split_whole_text", lambda lines: lines.flat_map(lambda line: line.lower().split()))
- for value in values:
-   values_0.extend(value.lower().split())
+ values_0.extend(whole_text(values).lower().split())

White space separates words, and a line end is white space. So the words of texts with a line end between each two
are those of the texts, one after the other. How a letter is spelled in lower or upper case depends on the letters
of its word alone. None of these operations raises.
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
            not isinstance(loop, ast.For)
            or len(loop.body) != 1
            or f.reads(loop.iter, "values") != 1
        ):
            continue
        (statement,) = loop.body
        if not isinstance(statement, ast.Expr) or not isinstance(loop.target, ast.Name):
            continue
        call = statement.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        if call.func.attr == "extend" and len(call.args) == 1 and _are_words(call.args[0]):
            form.names.bind("whole_text", "shared")
            text = f.expression("whole_text(values)")
            call.args = [f.replaced(call.args[0], {"value": text})]
            function.body = [statement]


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
