"""Aggregates of a query: found in its expressions, and compiled to the functions of a window operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.data_types import DataType, DataTypes
from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import STRING, Column, Typed, by_position, sqlglot
from opchain.compiler.table.user_functions import function_of
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.sql_windows import RowAggregate

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

_INSTEAD = (
    "write the query as SQL with sql_query(), or use the DataStream API with to_data_stream()"
)
IN_SPARK = frozenset(
    {"Sum", "Avg", "Count", "Min", "Max", "StddevPop", "StddevSamp", "VariancePop", "Variance"}
)
"""The aggregates of the Table API that Spark SQL computes."""


def _kind_of(tree: Any) -> str:
    """The name of an aggregate: its class of sqlglot, or its name if sqlglot reads it as any function."""
    return str(tree.name.upper() if type(tree).__name__ == "Anonymous" else type(tree).__name__)


def is_aggregate(tree: Any) -> bool:
    """Whether a tree is an aggregate, such as `SUM(a)` or `COUNT(*) FILTER (WHERE b)`."""
    exp = sqlglot().exp
    if isinstance(tree, exp.Filter):
        return is_aggregate(tree.this)
    if isinstance(tree, exp.Anonymous):
        return _kind_of(tree) in _CALLS and function_of(tree) is None
    return isinstance(tree, exp.AggFunc)


def has_aggregates(tree: Any) -> bool:
    """Whether an expression has an aggregate."""
    return any(map(is_aggregate, tree.walk()))


def _operands(tree: Any) -> tuple[Any, list[Any], bool]:
    """The call of an aggregate, the trees of its arguments, and whether it has DISTINCT."""
    exp = sqlglot().exp
    call = tree.this if isinstance(tree, exp.Filter) else tree
    is_call = isinstance(call, exp.Anonymous)
    arguments = [*([] if is_call else [call.this]), *call.expressions]
    is_distinct = isinstance(arguments[0], exp.Distinct) if arguments else False
    if is_distinct:
        arguments = arguments[0].expressions
    return call, arguments, is_distinct


class Aggregates:
    """The aggregates of a query: equal ones once, with the columns of their arguments.

    Args:
        where: The user's line, which is unknown when sqlglot calls `column_of`.
        allowed: The aggregates that are supported. By default those that windows compute.
    """

    def __init__(self, where: str, allowed: Container[str] | None = None) -> None:
        self._where = where
        self._allowed = _KINDS if allowed is None else allowed
        self._names: dict[Any, str] = {}
        self.made: list[tuple[str, Any]] = []
        self.arguments: list[tuple[str, Any]] = []

    def column_of(self, tree: Any) -> Any:
        """The column of an aggregate's result. Other trees are returned as they are."""
        if not is_aggregate(tree):
            return tree
        call, arguments, _ = _operands(tree)
        if _kind_of(call) not in self._allowed:
            raise self._unsupported(tree)
        if any(map(has_aggregates, arguments)):
            raise GraphError(
                f"{self._where}: {tree.sql(dialect='flink')} has an aggregate within an aggregate; compute "
                "them in two queries"
            )
        # Two functions may have the same name.
        functions = (id(function_of(each)) for each in tree.walk() if function_of(each))
        key = tree.sql(), *functions
        is_new = key not in self._names
        name = self.name_of(key)
        if is_new:
            self.made.append((name, self._of_columns(tree.copy())))
        return Expression.of_column(name).tree

    def name_of(self, key: Any) -> str:
        """The name of an aggregate, or of a time of the window: EXPR$0, EXPR$1, ..."""
        return self._names.setdefault(key, f"EXPR${len(self._names)}")

    def _unsupported(self, tree: Any) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"{self._where}: the aggregate {tree.sql(dialect='flink')} is not supported; {_INSTEAD}"
        )

    def _of_columns(self, tree: Any) -> Any:
        """The aggregate over columns that have its arguments, and the condition of its FILTER."""
        exp = sqlglot().exp
        call, arguments, _ = _operands(tree)
        for each in arguments[:1] if _kind_of(call) == "LISTAGG" else arguments:
            if not isinstance(each, exp.Star):
                each.replace(self._argument(each))
        if call is not tree:
            tree.expression.set("this", self._argument(tree.expression.this))
        return tree

    def _argument(self, tree: Any) -> Any:
        name = f"argument${len(self.arguments)}"
        self.arguments.append((name, tree.copy()))
        return Expression.of_column(name).tree

    def compiled(self, columns: Sequence[Column]) -> tuple[list[Column], RowAggregate]:
        """The columns of the results, and the function that computes them from rows with the arguments.

        Raises:
            GraphError: An argument has the wrong type.
            UnsupportedFeatureError: The aggregate is not supported.
        """
        slots: list[_Slot] = []
        results, texts = [], []
        for name, tree in self.made:
            parts = self._parts(tree, by_position(columns))
            places = range(len(slots), len(slots) + len(parts.slots))
            slots += parts.slots
            texts.append(parts.result.format(*(f"acc[{place}]" for place in places)))
            results.append(Column(name, parts.data_type))
        function = RowAggregate(
            _tuple([each.created for each in slots]),
            _tuple([each.added.format(a=f"acc[{n}]") for n, each in enumerate(slots)]),
            _tuple(
                [each.merged.format(a=f"acc[{n}]", b=f"other[{n}]") for n, each in enumerate(slots)]
            ),
            _tuple(texts),
            ", ".join(self._shown(tree) for _, tree in self.made),
        )
        return results, function

    def _shown(self, tree: Any) -> str:
        arguments = dict(self.arguments)
        whole = tree.transform(lambda each: arguments.get(each.name, each))
        return str(whole.sql(dialect="flink"))

    def _parts(self, tree: Any, columns: dict[str, Typed]) -> _Parts:
        """How an aggregate is computed."""
        call, arguments, is_distinct = _operands(tree)
        exp, where = sqlglot().exp, f"{self._where}: {self._shown(tree)}"
        is_column = [isinstance(each, exp.Column) for each in arguments]
        values = [columns[each.name] for each in arguments if isinstance(each, exp.Column)]
        kind = _kind_of(call)
        make = _KINDS[kind]
        if kind == "LISTAGG" and len(arguments) > 1:
            make = partial(_list_agg, separator=arguments[1].name)
        elif not all(is_column) and not isinstance(arguments[0], exp.Star):
            raise self._unsupported(tree)
        if len(values) > 1 and kind != "Count":
            raise self._unsupported(tree)
        if not is_distinct:
            parts = make(values, where)
        else:
            _plain(values, where)
            value = Typed("value", values[0].data_type)
            parts = _of_different(make([value], where), [each.text for each in values])
        if call is not tree:
            condition = columns[tree.expression.this.name].text
            slots = tuple(
                replace(each, added=f"({each.added} if {condition} is True else {{a}})")
                for each in parts.slots
            )
            parts = replace(parts, slots=slots)
        return parts


def _escaped(text: str) -> str:
    """A text that `format` changes back: texts of queries may contain braces."""
    return text.replace("{", "{{").replace("}", "}}")


def _tuple(texts: Sequence[str]) -> str:
    return f"({''.join(f'{each}, ' for each in texts)})"


@dataclass(frozen=True)
class _Slot:
    """A value of the accumulator, as texts of Python.

    Attributes:
        created: The first value.
        added: The value `{a}` with a row added.
        merged: The value of `{a}` and `{b}`, the later one.
    """

    created: str
    added: str
    merged: str


@dataclass(frozen=True)
class _Parts:
    """How an aggregate is computed: its slots, the text of its result over the slots, and its type."""

    slots: tuple[_Slot, ...]
    result: str
    data_type: DataType


def _folding(value: str, combined: str) -> _Slot:
    """A slot that combines `{a}` and `{b}`. NULL changes nothing."""

    def text(other: str) -> str:
        both = combined.replace("{b}", other)
        return f"({{a}} if {other} is None else {other} if {{a}} is None else {both})"

    return _Slot("None", text(value), text("{b}"))


def _counting(values: Sequence[Typed]) -> _Slot:
    tests = " and ".join(
        f"{each.text} is not None" for each in values if each.data_type.is_nullable
    )
    return _Slot("0", f"{{a}} + ({tests})" if tests else "{a} + 1", "{a} + {b}")


def _of_different(parts: _Parts, values: Sequence[str]) -> _Parts:
    """An aggregate over `value`, for the different values that are not NULL."""
    value = values[0] if len(values) == 1 else f"({', '.join(values)})"
    has_null = " or ".join(f"{each} is None" for each in values)
    noted = _Slot("dict()", f"({{a}} if {has_null} else noted({{a}}, {value}))", "{a} | {b}")
    inner = [f"acc[{place}]" for place in range(len(parts.slots))]
    added = _tuple([each.added.format(a=at) for each, at in zip(parts.slots, inner, strict=True)])
    created = _tuple([each.created for each in parts.slots])
    result = _escaped(parts.result.format(*inner))
    folded = f"folded(lambda acc, value: {added}, {{0}}, {created})"
    return _Parts((noted,), f"(lambda acc: {result})({folded})", parts.data_type)


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def _number(values: Sequence[Typed], where: str) -> Typed:
    (value,) = values
    if value.data_type.name not in (*_BITS, "DECIMAL", "FLOAT", "DOUBLE"):
        raise GraphError(f"{where} takes a number, and its argument is {value.data_type}; CAST it")
    return value


def _summing(value: Typed) -> _Slot:
    """The sum as a whole number of any size, a double, or a DECIMAL of any digits."""
    both = "add({a}, {b})" if value.data_type.name == "DECIMAL" else "{a} + {b}"
    return _folding(value.text, both)


def _count(values: Sequence[Typed], _: str) -> _Parts:
    return _Parts((_counting(values),), "{0}", DataTypes.BIGINT(nullable=False))


def _sum(values: Sequence[Typed], where: str) -> _Parts:
    value = _number(values, where)
    of = value.data_type.nullable()
    if of.name == "FLOAT":
        return _Parts((_folding(value.text, "as_float({a} + {b})"),), "{0}", of)
    if of.name == "DECIMAL":
        return _Parts((_summing(value),), *_decimal("{0}", of.parameters[1]))
    shown = _escaped(repr(where.rpartition(": ")[2]))
    result = f"fitting({{0}}, {_BITS[of.name]}, {shown})" if of.name in _BITS else "{0}"
    return _Parts((_summing(value),), result, of)


def _decimal(text: str, scale: int) -> tuple[str, DataType]:
    return f"as_decimal({text}, 38, {scale})", DataTypes.DECIMAL(38, scale)


def _quotient(text: str, of: DataType) -> tuple[str, DataType]:
    """The text of a mean or a variance in the type that Flink gives it, and the type."""
    if of.name == "DECIMAL":
        return _decimal(text, max(6, of.parameters[1]))
    if of.name in _BITS:
        return f"as_integer({text}, {_BITS[of.name]})", of.nullable()
    return (f"as_float({text})" if of.name == "FLOAT" else text), of.nullable()


def _avg(values: Sequence[Typed], where: str) -> _Parts:
    value = _number(values, where)
    slots = _summing(value), _counting([value])
    return _Parts(slots, *_quotient("divide({0}, {1})", value.data_type))


def _of_moments(result: str) -> Callable[[Sequence[Typed], str], _Parts]:
    def make(values: Sequence[Typed], where: str) -> _Parts:
        value = _number(values, where)
        added = f"({{a}} if {value.text} is None else {{a}}.added({value.text}))"
        slot = _Slot("moments()", added, "{a}.merged({b})")
        return _Parts((slot,), *_quotient(result, value.data_type))

    return make


def _plain(values: Sequence[Typed], where: str) -> None:
    """Refuses values that cannot be compared."""
    for of in (each.data_type for each in values):
        if of.name in ("ARRAY", "MAP", "ROW", "RAW"):
            raise GraphError(
                f"{where} takes values that can be compared, and got {of}; pick a field or an item"
            )


def _extreme(comparison: str) -> Callable[[Sequence[Typed], str], _Parts]:
    def make(values: Sequence[Typed], where: str) -> _Parts:
        _plain(values, where)
        slot = _folding(values[0].text, f"({{a}} if {{a}} {comparison} {{b}} else {{b}})")
        return _Parts((slot,), "{0}", values[0].data_type.nullable())

    return make


def _first(values: Sequence[Typed], _: str) -> _Parts:
    return _Parts((_folding(values[0].text, "{a}"),), "{0}", values[0].data_type.nullable())


def _last(values: Sequence[Typed], _: str) -> _Parts:
    return _Parts((_folding(values[0].text, "{b}"),), "{0}", values[0].data_type.nullable())


def _list_agg(values: Sequence[Typed], where: str, separator: str = ",") -> _Parts:
    (value,) = values
    if value.data_type.name not in ("CHAR", "VARCHAR", "STRING"):
        raise GraphError(f"{where} takes a text, and its argument is {value.data_type}; CAST it")
    added = f"({{a}} if {value.text} is None else appended({{a}}, {value.text}))"
    result = f"listed({{0}}, {_escaped(repr(separator))})"
    return _Parts((_Slot("[]", added, "{a} + {b}"),), result, STRING)


def _array_agg(values: Sequence[Typed], _: str) -> _Parts:
    (value,) = values
    slot = _Slot("[]", f"appended({{a}}, {value.text})", "{a} + {b}")
    return _Parts((slot,), "({0} or None)", DataTypes.ARRAY(value.data_type))


def _collect(values: Sequence[Typed], where: str) -> _Parts:
    (value,) = values
    _plain(values, where)
    added = f"({{a}} if {value.text} is None else counted({{a}}, {value.text}))"
    of = DataTypes.MAP(value.data_type, DataTypes.INT(nullable=False))
    return _Parts((_Slot("dict()", added, "of_both({a}, {b})"),), "dict({0})", of)


_KINDS: dict[str, Callable[[Sequence[Typed], str], _Parts]] = {
    "Count": _count,
    "Sum": _sum,
    "Avg": _avg,
    "Min": _extreme("<="),
    "Max": _extreme(">="),
    **dict.fromkeys(("Stddev", "StddevSamp"), _of_moments("root({0}.variance(1))")),
    "StddevPop": _of_moments("root({0}.variance(0))"),
    "Variance": _of_moments("{0}.variance(1)"),
    "VariancePop": _of_moments("{0}.variance(0)"),
    "FirstValue": _first,
    "LastValue": _last,
    "ArrayAgg": _array_agg,
    "LISTAGG": _list_agg,
    "COLLECT": _collect,
}
"""How each aggregate is computed, for the values of its arguments and the part of the program for errors."""
_CALLS = ("LISTAGG", "COLLECT")
