"""Rewrites a query so that Spark SQL computes what Flink computes.

Spark divides two INTs into a DOUBLE, counts items of an array from 0, and ignores NULL in GREATEST. Each rewrite replaces
one kind of expression. sqlglot finds the types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.table.expressions import sqlglot
from opchain.runtime.errors import GraphError, UnsupportedFeatureError, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIALECT = "spark, normalization_strategy = case_sensitive"
"""Otherwise names lose their capitals."""


def for_spark(tree: Any, schema: Mapping[str, Mapping[str, str]], where: str) -> Any:
    """The query for Spark.

    Args:
        tree: The query. Its tables are named as in `schema`.
        schema: The columns of each table with their Spark types.
        where: The part of the program, for errors.

    Raises:
        GraphError: The query names an unknown column.
        UnsupportedFeatureError: The query has an expression that Spark computes differently, and that is not rewritten.
    """
    library = sqlglot()
    qualify = imported("sqlglot.optimizer.qualify", "sql", "SQL").qualify
    annotate = imported("sqlglot.optimizer.annotate_types", "sql", "SQL").annotate_types
    tree = tree.copy()
    for name in tree.find_all(library.exp.Identifier):
        name.set("quoted", True)
    _name_columns(tree)
    known = library.MappingSchema(schema, dialect=_DIALECT, normalize=False)
    options = {"identify": False, "quote_identifiers": False, "expand_stars": False}
    try:
        tree = qualify(
            tree, schema=known, dialect=_DIALECT, validate_qualify_columns=False, **options
        )
        tree = annotate(tree, schema=known, dialect=_DIALECT)
    except library.errors.SqlglotError as error:
        raise GraphError(f"{where}: {str(error).splitlines()[0]}; correct the SQL") from None
    for node in reversed(list(tree.walk())):
        rewrite = _REWRITES.get(type(node).__name__)
        new = node if rewrite is None else rewrite(node)
        if new is None:
            raise UnsupportedFeatureError(
                f"{where}: {node.sql(dialect='flink')} is not supported in queries that run in Spark SQL; compute it in "
                "a query without GROUP BY, JOIN and ORDER BY, whose result is a view"
            )
        if new is not node:
            new.type = new.type or node.type
            node.replace(new)
    return tree


def _name_columns(tree: Any) -> None:
    """Gives columns without a name Flink's names: EXPR$0."""
    exp = sqlglot().exp
    for select in tree.find_all(exp.Select):
        for number, each in enumerate(select.expressions):
            if not isinstance(each, (exp.Alias, exp.Column, exp.Star)):
                select.expressions[number] = exp.alias_(each, f"EXPR${number}", quoted=True)
                select.expressions[number].parent = select
        select.set("expressions", select.expressions)


def _is(node: Any, *names: str) -> bool:
    types = sqlglot().exp.DataType.Type
    return node.type is not None and node.type.this in {getattr(types, name) for name in names}


_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_OF_NUMBERS = ("Avg", "Sum", "Stddev", "StddevPop", "StddevSamp", "Variance", "VariancePop")


def _cast(node: Any, data_type: Any) -> Any:
    """A CAST that is not rewritten again."""
    exp = sqlglot().exp
    made = exp.Cast(this=node.copy(), to=data_type.copy())
    made.type = data_type
    return made


def _call(name: str, *arguments: Any) -> Any:
    exp = sqlglot().exp
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])


def _division(node: Any) -> Any:
    """Of two whole numbers, it is a whole number."""
    if not (_is(node.left, *_INTEGERS) and _is(node.right, *_INTEGERS)):
        return node
    wider = max(node.left.type, node.right.type, key=lambda of: _INTEGERS.index(of.this.name))
    exp = sqlglot().exp
    return _cast(exp.IntDiv(this=node.left.copy(), expression=node.right.copy()), wider)


def _aggregate(node: Any) -> Any:
    """AVG, SUM and the like of whole numbers have the type of the numbers, also over a window."""
    exp = sqlglot().exp
    aggregate = node.this if isinstance(node, exp.Window) else node
    is_number = type(aggregate).__name__ in _OF_NUMBERS
    if isinstance(node.parent, exp.Window) or not is_number:
        return node
    is_distinct = isinstance(aggregate.this, exp.Distinct)
    values = aggregate.this.expressions[0] if is_distinct else aggregate.this
    return _cast(node, values.type) if _is(values, *_INTEGERS) else node


def _extreme(node: Any) -> Any:
    """NULL if an argument is NULL."""
    exp = sqlglot().exp
    values = [node.this, *node.expressions]
    no_nulls = exp.and_(
        *(exp.not_(exp.Is(this=each.copy(), expression=exp.Null())) for each in values)
    )
    return exp.Case(ifs=[exp.If(this=no_nulls, true=node.copy())])


def _converted(node: Any) -> Any:
    """Booleans are written in capitals. Texts have the length of their type."""
    exp = sqlglot().exp
    kind, of = node.to.this, exp.DataType.Type
    if kind not in (of.TEXT, of.VARCHAR, of.CHAR, of.NCHAR):
        return node
    text = _cast(node.this, exp.DataType.build("STRING", dialect="spark"))
    if _is(node.this, "BOOLEAN"):
        text = exp.Upper(this=text)
    length = node.to.expressions
    if not length or kind == of.TEXT:
        return text
    if kind == of.VARCHAR:
        return _call("substring", text, exp.Literal.number(1), length[0].this)
    return _call("rpad", text, length[0].this, exp.Literal.string(" "))


def _item(node: Any) -> Any:
    """Counts from 1. NULL for an item that is missing."""
    return _call("try_element_at", node.this, node.expressions[0])


def _joined(node: Any) -> Any:
    """Leaves NULLs out."""
    return _call("concat_ws", *node.expressions)


def _extracted(node: Any) -> Any:
    """NULL if nothing matches."""
    exp = sqlglot().exp
    group = node.args.get("group") or node.args.get("position") or exp.Literal.number(0)
    matches = _call("regexp_like", node.this, node.expression)
    found = _call("regexp_extract", node.this, node.expression, group)
    return exp.Case(ifs=[exp.If(this=matches, true=found)])


def _replaced(node: Any) -> Any:
    """The replacement has no groups such as $1."""
    exp = sqlglot().exp
    new = node.args["replacement"]
    if not (isinstance(new, exp.Literal) and new.is_string):
        return None
    quoted = new.this.replace("\\", "\\\\").replace("$", "\\$")
    return _call("regexp_replace", node.this, node.expression, exp.Literal.string(quoted))


def _part(node: Any) -> Any:
    """A whole number, also for SECOND."""
    return _cast(node, sqlglot().exp.DataType.build("BIGINT"))


def _rounded(node: Any) -> Any:
    """CEIL and FLOOR keep the type of a DOUBLE and of a FLOAT. Of times, Spark has other names for them."""
    if node.args.get("to") is not None:
        return None
    return _cast(node, node.this.type) if _is(node.this, "DOUBLE", "FLOAT") else node


def _unsupported(_: Any) -> Any:
    return None


_REWRITES: dict[str, Callable[[Any], Any]] = {
    "Div": _division,
    **dict.fromkeys((*_OF_NUMBERS, "Window"), _aggregate),
    "Greatest": _extreme,
    "Least": _extreme,
    "Cast": _converted,
    "Bracket": _item,
    "ConcatWs": _joined,
    "RegexpExtract": _extracted,
    "RegexpReplace": _replaced,
    "Extract": _part,
    "Ceil": _rounded,
    "Floor": _rounded,
    "Trunc": _unsupported,
}
"""By class of sqlglot."""
