"""Reduces of pairs that only ever change one field: what is kept per key is that field alone.

    (word, 1), (word, 1), ...  by word, (a[0], a[1] + b[1])  ->  {word: 2, ...}

A pair per key is an object more per record to make, to find and to drop: with 100,000 keys in no order
most of the time went into it. It is left out where nobody can tell:

- the records are pairs, one field of which is the key, an int or a str by itself, and stays as it is;
- the other field is an int, a float or a str, and stays one;
- the expression reads the other fields only, and cannot raise: no error will want to show the pair.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.inline import position_of
from opchain.compiler.codegen.static_types import TupleOf, never_raises, type_of
from opchain.runtime.state.keys.key_identity import key_identity

if TYPE_CHECKING:
    from opchain.compiler.codegen.inline import Expression
    from opchain.compiler.codegen.static_types import StaticType
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import KeyProgram

_FIELDS = 2


@dataclass(frozen=True, slots=True)
class RunningSum:
    """Which field of a pair is the key, and how the other one is reduced."""

    key_field: int
    reduce: Expression

    @property
    def sum_field(self) -> int:
        """The field that changes."""
        return 1 - self.key_field

    def added(self, total: str, addend: str) -> str:
        """The new sum, as an expression."""
        first, second = self.reduce.parameters
        tree = ast.parse(self.reduce.text, mode="eval").body
        assert isinstance(tree, ast.Tuple)
        return ast.unparse(_Fields({first: total, second: addend}).visit(tree.elts[self.sum_field]))

    def counts(self, addend: str) -> bool:
        """Whether adding the expression `addend` is counting, from the first record on."""
        return addend == "1" and self.added("n", addend) in ("n + 1", "1 + n")

    def pair(self, key: str, total: str) -> str:
        """The pair again, as an expression."""
        return f"({key}, {total})" if self.key_field == 0 else f"({total}, {key})"


def running_sum(
    key: KeyProgram,
    selector: Expression | None,
    reduce: Expression | None,
    records: StaticType | None,
) -> RunningSum | None:
    """How records of a known type are reduced field by field, if all of the above holds.

    `selector` and `reduce` are the expressions of the key selector and the reduce function.
    """
    if selector is None or reduce is None:
        return None
    if not isinstance(records, TupleOf) or len(records.items) != _FIELDS:
        return None
    place = selector.position_given()
    if place is None or place >= _FIELDS or records.items[place] not in (int, str):
        return None
    if records.items[place] not in key_identity(key.hasher).plain:
        return None
    tree = ast.parse(reduce.text, mode="eval").body
    if not isinstance(tree, ast.Tuple) or len(tree.elts) != _FIELDS:
        return None
    found = RunningSum(place, reduce)
    first, second = reduce.parameters
    kept = _field(tree.elts[place], first)
    kind = records.items[found.sum_field]
    fields = _Fields({first: "total", second: "addend"}, found.sum_field)
    changed = fields.visit(tree.elts[found.sum_field])
    names = {"total": kind, "addend": kind}
    is_safe = (
        kept == place
        and not fields.has_others
        and kind in (int, float, str)
        and type_of(changed, names) is kind
        and never_raises(changed, names)
    )
    return found if is_safe else None


def summed_pairs(
    generator: VertexGenerator, key: KeyProgram, reduce: Any, records: StaticType | None
) -> RunningSum | None:
    """How `reduce` sums up records of a known type by key, if it does."""
    if not isinstance(records, TupleOf):
        return None
    return running_sum(
        key, generator.expression(key.selector), generator.expression(reduce), records
    )


def _field(node: ast.expr, parameter: str) -> int | None:
    """The n of `parameter[n]`, a field of a pair."""
    position = position_of(node, parameter)
    return position if position in (0, 1) else None


class _Fields(ast.NodeTransformer):
    """Puts expressions in place of one field of each parameter; notes whether anything else is read."""

    def __init__(self, texts: dict[str, str], field: int | None = None) -> None:
        self._texts = texts
        self._field = field
        self.has_others = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`a[1]` is the sum so far."""
        if isinstance(node.value, ast.Name) and node.value.id in self._texts:
            place = _field(node, node.value.id)
            if place is not None and self._field in (None, place):
                return ast.parse(self._texts[node.value.id], mode="eval").body
        self.has_others = True
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A pair as a whole, or a name that is none of ours."""
        self.has_others = True
        return node
