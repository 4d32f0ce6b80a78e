"""What is special about expressions of the Table API: names of columns, `col("*")`, and `+` of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.table.calculation import Calculation
from opchain.compiler.table.data_types import DataTypes, RowField, RowType, data_type_of
from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import STRING, Column, Compiler, Typed, by_position
from opchain.compiler.table.user_functions import with_functions
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.compiler.table.user_functions import UserDefinedScalarFunctionWrapper

_TEXTS = ("CHAR", "VARCHAR", "STRING")


class TableCompiler(Compiler):
    """Compiles expressions of the Table API. Beyond SQL, `+` joins texts, `get` takes the number of a field, and `row` has fields f0, f1, ..."""

    _name_of_field = "f{}"

    def _star(self, _: Any) -> Typed:
        """The whole row, which the function of `Table.map` gets."""
        fields = [RowField(name, each.data_type) for name, each in self._columns.items()]
        names = tuple(self._columns)
        values = "".join(f"{each.text}, " for each in self._columns.values())
        return Typed(f"as_row(row, {names!r}, lambda row: ({values}))", DataTypes.ROW(fields))

    def _add(self, tree: Any) -> Typed:
        if self.compile(tree.left).data_type.name in _TEXTS:
            return self._call("concat", STRING, tree.left, tree.right)
        return self._arithmetic(tree, "add")

    def _dot(self, tree: Any) -> Typed:
        key, row = tree.expression, self.compile(tree.this)
        if type(key).__name__ == "Literal" and isinstance(row.data_type, RowType):
            fields = row.data_type.fields
            if int(key.this) < len(fields):
                return self._field(row, fields[int(key.this)].name)
        return self._field(row, key.name)


def calculation_of(
    call: str,
    columns: Sequence[Column],
    functions: Mapping[str, UserDefinedScalarFunctionWrapper],
    fields: Sequence[tuple[str, Any]] | None,
    condition: Any = None,
) -> Calculation:
    """The calculation of a call such as `Table.select`, with the user's functions by name."""
    where = at_call(call)
    if fields is not None:
        fields = [(name, with_functions(tree.copy(), functions)) for name, tree in fields]
    if condition is not None:
        condition = with_functions(condition.copy(), functions)
    return Calculation(
        columns,
        lambda _, calls: TableCompiler(by_position(columns), (), where, calls),
        fields,
        condition,
    )


def named_fields(
    call: str, expressions: Sequence[Expression], columns: Sequence[Column], first: int = 0
) -> list[tuple[str, Any]]:
    """The names and trees of the columns that expressions give. A computed column is `_c` and its place, from `first`."""
    found: list[tuple[str, Any]] = []
    for each in expressions:
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
