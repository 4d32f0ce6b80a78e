"""The columns that expressions of the Table API give: their names and trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.table.data_types import data_type_of
from opchain.compiler.table.expression import Expression
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.table.expressions import Column


def named_fields(
    call: str, expressions: Sequence[Expression | str], columns: Sequence[Column], first: int = 0
) -> list[tuple[str, Any]]:
    """The names and trees of the columns that expressions give. A computed column is `_c` and its place, from `first`."""
    found: list[tuple[str, Any]] = []
    for each in expressions:
        if isinstance(each, str):
            raise TypeError(f"{at_call(call)}: {each!r} is a str; pass col({each!r})")
        tree = checked(each, Expression, call, "the column").tree
        if tree.is_star:
            found += [(name, Expression.of_column(name).tree) for name, _ in columns]
        else:
            found.append((_name_of(tree) or f"_c{first + len(found)}", tree))
    return found


def check_names(call: str, fields: Sequence[tuple[str, Any]]) -> None:
    """Checks that each column has a name of its own.

    Raises:
        GraphError: Two columns have the same name.
    """
    names = [name for name, _ in fields]
    for name in names:
        if names.count(name) > 1:
            raise GraphError(
                f"{at_call(call)}: two columns would have the name '{name}'; give one of them another name with "
                ".alias('...')"
            )


def _name_of(tree: Any) -> str | None:
    """The name of a column; None if it is computed. A cast and a field have names made from that of their operand."""
    kind = type(tree).__name__
    if kind in ("Alias", "Column"):
        return str(tree.alias_or_name)
    if kind == "Paren":
        return _name_of(tree.this)
    if kind not in ("Cast", "Dot"):
        return None
    name = _name_of(tree.this)
    if name is None:
        return None
    if kind == "Cast":
        return f"{name}-{data_type_of(tree.to.sql(dialect='flink'))}"
    key = tree.expression
    return f"{name}$_{key.this}" if type(key).__name__ == "Literal" else f"{name}${key.name}"
