"""Tuples that are sent field by field, where nobody sees them on the way (runtime/records/columns.py).

    .map(lambda row: (row[0], 1, row[2])).key_by(lambda it: it[0])

    column_0_0.append(item_0_0)
    column_0_2.append(item_0_1)  # -> Keyed Reduce (hash by it[0]), by fields

The sender need not make the tuple, a constant needs no place, and the key is a field anyway. A reader that
looks at items only reads the fields, any other the tuples:

    for field_0, field_2 in values.rows():
    for value in values:
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.codegen.static_types import ColumnsOf, TupleOf, is_frozen
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.codegen.static_types import StaticType
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.records.columns import Layout

MOST_COLUMNS = 3
"""Of more fields a tuple is sent as fast."""

_CONSTANTS = (int, bool, float, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class SentColumns:
    """How what a map makes is sent: `key` is the field that is the key, None where there is no key."""

    number: int
    layout: Layout
    known: ColumnsOf
    key: int | None

    def names(self, generator: VertexGenerator) -> dict[int, str]:
        """The lists, by the position of their field."""
        bind, number, layout = generator.names.bind, self.number, self.layout
        return {
            position: bind(
                f"column_{number}_{position}",
                "column",
                number,
                layout,
                position,
                position == self.key,
            )
            for position, constant in enumerate(layout)
            if not constant
        }


def columns_sent(
    generator: VertexGenerator, operator: OperatorProgram, made: StaticType | None
) -> SentColumns | None:
    """How the tuples that a map makes, of type `made`, are sent field by field; None where they are not."""
    number, output = generator.tree.only_output(operator)
    if output is None or output.combine is not None or generator.program.is_batch:
        return None
    tree = tuple_made(generator, operator, made)
    if tree is None:
        return None
    constants = [_constant(item) for item in tree.elts]
    if not 0 < constants.count(None) <= MOST_COLUMNS:
        return None
    key = None
    if output.key is not None:
        selector = generator.expression(output.key.selector)
        key = None if selector is None else selector.position_given()
        if key is None or key >= len(constants) or constants[key] is not None:
            return None
    record = made if isinstance(made, TupleOf) else TupleOf((None,) * len(constants))
    return SentColumns(
        number,
        tuple(() if node is None else (node.value,) for node in constants),
        ColumnsOf(record, tuple(None if node is None else ast.unparse(node) for node in constants)),
        key,
    )


def tuple_made(
    generator: VertexGenerator, operator: OperatorProgram, made: StaticType | None
) -> ast.Tuple | None:
    """The tuple, over its parameter, that a map is; nobody else may hold a field that could change."""
    if not isinstance(operator.spec, specs.MapSpec) or operator.record_type is not None:
        return None
    expression = generator.expression(operator.spec.function)
    if expression is None:
        return None
    if generator.copies and not expression.is_fresh and not is_frozen(made):
        return None
    tree = ast.parse(expression.text, mode="eval").body
    return tree if isinstance(tree, ast.Tuple) else None


def tuple_of(fields: Sequence[str]) -> str:
    """The expression of a tuple."""
    return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"


def _constant(node: ast.expr) -> ast.Constant | None:
    return node if isinstance(node, ast.Constant) and type(node.value) in _CONSTANTS else None
