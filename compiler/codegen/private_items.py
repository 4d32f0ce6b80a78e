"""Records of which only some items are read, at once: these items are kept private, not the whole.

    for value_0 in priced_0(value):  # 0 Flat Map (job.py:12)
        item_0_0 = value_0[0]
        if item_0_0.__class__ not in FROZEN:
            item_0_0 = private(item_0_0)
        value_1 = (item_0_0, 1)  # 1 Map (job.py:13)

Where functions written into the loop only pick items, the record itself goes nowhere, and is gone before the
function that made it could change it. Of a tuple of three ints it takes half the time.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen.inline import item_of
from opchain.compiler.codegen.private_records import keep_private
from opchain.compiler.codegen.static_types import is_frozen
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.codegen.inline import Expression
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram

Items = tuple[tuple[str, str], ...]
"""An item as an expression, and the variable that holds it: `value_0[0]`, `item_0_0`."""

MOST_ITEMS = 4
"""Of more, looking at the record as a whole is as fast."""


def keep_items_private(
    generator: VertexGenerator, body: SourceText, depth: int, name: str, operator: OperatorProgram
) -> Items:
    """Keeps what an operator returned private, as a whole (then no items) or by the items that are read."""
    read = _items_read(generator, name, operator) if generator.is_within(depth) else None
    if read is None:
        keep_private(generator, body, depth, name, operator.index)
        return ()
    items = []
    for number, (item, reader) in enumerate(read.items()):
        variable = f"item_{operator.index}_{number}"
        body.add(depth, f"{variable} = {item}", reader)
        keep_private(generator, body, depth, variable, reader)
        items.append((item, variable))
    return tuple(items)


def with_items(text: str, items: Items) -> str:
    """An expression that reads variables in place of items."""
    if not items:
        return text
    tree = ast.parse(text, mode="eval")
    return ast.unparse(_Picked(dict(items)).visit(tree))


def items_made(name: str, text: str) -> Items:
    """The items of the tuple `name`, which an expression makes, that stand in variables as they are."""
    tree = ast.parse(text, mode="eval").body
    parts = tree.elts if isinstance(tree, ast.Tuple) else []
    return tuple(
        (f"{name}[{number}]", part.id)
        for number, part in enumerate(parts)
        if isinstance(part, ast.Name)
    )


def _items_read(
    generator: VertexGenerator, name: str, operator: OperatorProgram
) -> dict[str, int] | None:
    """The items of a record that its readers read, each with the first reader, if they read no more."""
    readers = generator.tree.children(operator)
    if not generator.copies or is_frozen(generator.types.get(name)):
        return None
    if not readers or generator.tree.outputs(operator) or operator.record_type is not None:
        return None
    read: dict[str, int] = {}
    for reader in readers:
        if not isinstance(reader.spec, specs.MapSpec):
            return None
        expression = generator.expression(reader.spec.function)
        items = None if expression is None else _items_of(expression, name)
        if expression is None or not expression.is_fresh or not items:
            return None
        for item in items:
            read.setdefault(item, reader.index)
    return read if len(read) <= MOST_ITEMS else None


def _items_of(expression: Expression, name: str) -> list[str] | None:
    """The items that an expression is made of, in order; None where it is anything else."""
    tree = ast.parse(expression.applied_to(name), mode="eval").body
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    if not all(isinstance(part, ast.Constant) or item_of(part, name) for part in parts):
        return None
    return [ast.unparse(part) for part in parts if not isinstance(part, ast.Constant)]


class _Picked(ast.NodeTransformer):
    def __init__(self, items: dict[str, str]) -> None:
        self._items = items

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        variable = self._items.get(ast.unparse(node))
        if variable is not None:
            return ast.Name(variable, node.ctx)
        self.generic_visit(node)
        return node
