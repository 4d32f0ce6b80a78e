"""Prints syntax trees: the same text on every version of Python, unlike `ast.unparse`.

Python 3.10 puts parentheses around tuples that are set, as in `(a, b) = pair`. The quotes of f-strings, and what they
may contain, differ between 3.11 and 3.12.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def text_of(node: ast.AST) -> str:
    """The source of a node.

    >>> print(text_of(ast.parse("for (a, b) in x: c, d = b, f'{a[0]}'")))
    for a, b in x:
        c, d = (b, f'{a[0]}')
    """
    if any(_is_printed_here(item) for item in ast.walk(node)):
        node = _Printed().visit(copy.deepcopy(node))
    return ast.unparse(ast.fix_missing_locations(node))


def text_of_target(node: ast.expr) -> str:
    """The source of what an assignment or a loop sets: a tuple has no parentheses."""
    is_tuple = isinstance(node, ast.Tuple) and len(node.elts) > 0
    return text_of(node)[1:-1] if is_tuple else text_of(node)


def _is_printed_here(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, (ast.Assign, ast.For, ast.comprehension))
        and any(isinstance(target, ast.Tuple) for target in _targets(node))
    )


def _targets(node: ast.Assign | ast.For | ast.comprehension) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


class _Printed(ast.NodeTransformer):
    """Replaces targets and f-strings by names that are their source."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        node.targets = [ast.Name(text_of_target(target), ast.Store()) for target in node.targets]
        return node

    def visit_For(self, node: ast.For | ast.comprehension) -> ast.For | ast.comprehension:
        self.generic_visit(node)
        node.target = ast.Name(text_of_target(node.target), ast.Store())
        return node

    visit_comprehension = visit_For

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Name:
        return ast.Name(_f_string(node), ast.Load())


def _f_string(node: ast.JoinedStr) -> str:
    r"""The source of an f-string.

    Before Python 3.12, an expression within an f-string has no backslash and not the f-string's quotes. If this is not
    possible, a call of `format` does the same.

    >>> print(_f_string(ast.parse("f'{x:.2f} {y}'").body[0].value))
    f'{x:.2f} {y}'
    >>> print(_f_string(ast.parse(r'''f"{f'{x}'}'{y!r}\n"''').body[0].value))
    f"{f'{x}'}'{y!r}\n"
    """
    pieces = list(_pieces(node))
    template = "".join(text for text, is_expression in pieces if not is_expression)
    expressions = [text for text, is_expression in pieces if is_expression]
    quotes = [quote for quote in "'\"" if not any(quote in text for text in expressions)]
    if not quotes or any("\\" in text for text in expressions):
        return f"{template!r}.format({', '.join(expressions)})"
    quote = min(quotes, key=template.count)
    written = (text if is_expression else _escaped(text, quote) for text, is_expression in pieces)
    return f"f{quote}{''.join(written)}{quote}"


def _pieces(node: ast.JoinedStr) -> Iterator[tuple[str, bool]]:
    """The parts of an f-string, each with whether it is an expression."""
    for item in node.values:
        if isinstance(item, ast.Constant):
            yield str(item.value).replace("{", "{{").replace("}", "}}"), False
        elif isinstance(item, ast.FormattedValue):
            text = text_of(item.value)
            if isinstance(item.value, (ast.IfExp, ast.Lambda)):
                text = f"({text})"
            yield "{", False
            yield f" {text}" if text.startswith("{") else text, True
            yield "" if item.conversion == -1 else f"!{chr(item.conversion)}", False
            if isinstance(item.format_spec, ast.JoinedStr):
                yield ":", False
                yield from _pieces(item.format_spec)
            yield "}", False


def _escaped(text: str, quote: str) -> str:
    return "".join(
        letter.encode("unicode_escape").decode() if not letter.isprintable() else letter
        for letter in text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    )
