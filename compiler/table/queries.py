"""Parts of parsed queries: tables, columns, values, and whether a stream can compute a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.table.expressions import Compiler, sqlglot
from opchain.compiler.table.sql import plain_path
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.sql import RowProjection

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from opchain.compiler.table.expressions import Column, Typed

_MORE_THAN_SCALAR = (
    *("joins", "laterals", "group", "having", "qualify", "windows", "distinct", "order", "sort"),
    *("limit", "offset", "cluster", "distribute", "match", "pivots"),
)
_INSTEAD = {
    "group": "key_by(...).window(...).aggregate(...), or key_by(...).reduce(...)",
    "joins": "stream.join(...).where(...).equal_to(...).window(...), or interval_join",
    "laterals": "flat_map(...)",
    "distinct": "key_by(...).process(...) with a ValueState that remembers the key",
    "order": "key_by(...).process(...) with event-time timers",
    "limit": "a bounded source, or filter(...)",
    "offset": "a bounded source, or filter(...)",
}


def is_named(table: Any) -> bool:
    """Whether a table in a query is a name. A table function is also a table to sqlglot."""
    return isinstance(table.this, sqlglot().exp.Identifier)


def named_tables(tree: Any) -> list[Any]:
    """The tables that a query names."""
    return list(filter(is_named, tree.find_all(sqlglot().exp.Table)))


def path_of(table: Any) -> str:
    """The name of a table in a query, without the default catalog and database."""
    return plain_path(".".join(part.name for part in table.parts))


def without_ctes(tree: Any) -> Any:
    """A query with each name of its WITH replaced by the query that has this name."""
    clause = tree.args.get("with_") or tree.args.get("with")
    if clause is None or clause.args.get("recursive"):
        return tree
    plain = tree.copy()
    clause = clause.copy()
    for key in ("with_", "with"):
        plain.args.pop(key, None)
    defined: dict[str, Any] = {}
    for each in clause.expressions:
        _with_queries(each, defined)
        defined[each.alias] = each
    return _with_queries(plain, defined)


def _with_queries(tree: Any, defined: Mapping[str, Any]) -> Any:
    for table in named_tables(tree):
        found = defined.get(table.name) if len(table.parts) == 1 else None
        if found is not None:
            query = found.this.copy().subquery(table.alias_or_name)
            names = names_of_columns(table) or names_of_columns(found)
            query.args["alias"].set("columns", [each.copy() for each in names])
            table.replace(query)
    return tree


def names_of_columns(tree: Any) -> list[Any]:
    """The names of columns in `AS t(x, y)` or `WITH t(x, y) AS`."""
    alias = tree.args.get("alias")
    return [] if alias is None else alias.args.get("columns") or []


def renamed(source: Any, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a source in FROM, which `AS t(x, y)` may rename.

    Raises:
        GraphError: There are more or fewer names than columns.
    """
    names = [each.name for each in names_of_columns(source)]
    if names and len(names) != len(columns):
        raise GraphError(
            f"{source.sql(dialect='flink')} names {len(names)} columns, and the query has {len(columns)} "
            f"({', '.join(each.name for each in columns)}): name each of them, or none"
        )
    return tuple(
        each._replace(name=name)
        for name, each in zip(names or [each.name for each in columns], columns, strict=True)
    )


def source_of(tree: Any) -> Any:
    """The table or query in FROM; None without FROM."""
    found = tree.args.get("from_") or tree.args.get("from")
    return None if found is None else found.this


def _is_plain(tree: Any, *allowed: str) -> bool:
    """Whether a query is a SELECT whose only clauses are FROM, WHERE and those in `allowed`."""
    if type(tree).__name__ != "Select" or tree.args.get("with_") or tree.args.get("with"):
        return False
    return not any(tree.args.get(each) for each in _MORE_THAN_SCALAR if each not in allowed)


def is_grouped(tree: Any) -> bool:
    """Whether a query is a SELECT with GROUP BY expressions, and no other clauses than WHERE and HAVING."""
    exp, group = sqlglot().exp, tree.args.get("group")
    return (
        group is not None
        and _is_plain(tree, "group", "having")
        and not any(value for key, value in group.args.items() if key != "expressions")
        and not group.find(exp.GroupingSets, exp.Rollup, exp.Cube)
        and tree.find(exp.Window) is None
    )


def is_scalar(tree: Any) -> bool:
    """Whether a query is a SELECT of scalar expressions with WHERE, which a stream can compute."""
    sql = sqlglot().exp
    if not _is_plain(tree):
        return False
    return not any(
        each.find(sql.AggFunc, sql.Window, sql.Subquery, sql.Select, sql.Explode)
        for each in [
            *tree.expressions,
            *([tree.args["where"].this] if tree.args.get("where") else []),
        ]
    )


def lateral_call(join: Any, functions: Container[str]) -> Any:
    """The call of a function of the user in `LATERAL TABLE(...)`; None for another join."""
    sql, lateral = sqlglot().exp, join.this
    on = join.args.get("on")
    if not isinstance(lateral, sql.Lateral) or not (on is None or on == sql.true()):
        return None
    calls = lateral.this.expressions if lateral.this.name.upper() == "TABLE" else []
    return calls[0] if calls and calls[0].name.lower() in functions else None


def expanded(tree: Any, columns_of: Callable[[str], Sequence[str]]) -> str:
    """The text of a query with the full names of tables and columns, as Flink shows it for a view.

    A query that Spark SQL runs keeps its names.
    """
    kind = type(tree).__name__
    if kind == "Union" and not tree.args.get("distinct") and not tree.args.get("order"):
        return f"{expanded(tree.left, columns_of)}\nUNION ALL\n{expanded(tree.right, columns_of)}"
    source = source_of(tree) if is_scalar(tree) else None
    if source is None or (isinstance(source, sqlglot().exp.Table) and not is_named(source)):
        return str(tree.sql(dialect="flink", identify=True, pretty=True))
    alias, known = _source_columns(source, columns_of)
    texts = []
    for each in tree.expressions:
        found = [sqlglot().exp.column(name) for name in known] if each.is_star else [each]
        texts += [_qualified(one, alias, known) for one in found]
    if type(source).__name__ == "Table":
        origin = f"`default_catalog`.`default_database`.`{path_of(source)}`"
    else:
        origin = f"({expanded(source.this, columns_of)})"
    named = source.args.get("alias")
    if named is not None and named.args.get("columns"):
        alias_columns = f" ({', '.join(f'`{name}`' for name in known)})"
    else:
        alias_columns = ""
    where = tree.args.get("where")
    condition = "" if where is None else f"\nWHERE {_qualified(where.this, alias, known)}"
    return f"SELECT {', '.join(texts)}\nFROM {origin} AS `{alias}`{alias_columns}{condition}"


def _source_columns(
    source: Any, columns_of: Callable[[str], Sequence[str]]
) -> tuple[str, Sequence[str]]:
    """The name of a source in FROM, and the names of its columns."""
    alias = source.args.get("alias")
    names = [] if alias is None else [each.name for each in alias.args.get("columns") or ()]
    if type(source).__name__ == "Table":
        return source.alias_or_name, names or columns_of(path_of(source))
    return source.alias_or_name or "EXPR$0", names or _names_of(source.this, columns_of)


def _names_of(tree: Any, columns_of: Callable[[str], Sequence[str]]) -> list[str]:
    """The names of the columns of a query."""
    select = tree.find(sqlglot().exp.Select) or tree
    source = source_of(select)
    names: list[str] = []
    for number, each in enumerate(select.expressions):
        if each.is_star and source is not None:
            names += _source_columns(source, columns_of)[1]
        else:
            names.append(_column_name(each, number))
    return names


def _qualified(tree: Any, alias: str, known: Sequence[str]) -> str:
    """The text of an expression whose columns have the name of their table."""
    sql, whole = sqlglot().exp, tree.copy()
    for column in list(whole.find_all(sql.Column)):
        names = [part.name for part in column.parts]
        if names[0] in known and not (len(names) > 1 and names[0] == alias):
            longer = sql.column(*reversed([alias, *names]))
            if column is whole:
                whole = longer
            else:
                column.replace(longer)
    return str(whole.sql(dialect="flink", identify=True))


def unqualified(tree: Any, aliases: Sequence[str]) -> Any:
    """An expression whose columns have no name of their table, and whose names are all quoted.

    So equal expressions of a query are equal trees.
    """
    exp, tree = sqlglot().exp, tree.copy()
    for column in tree.find_all(exp.Column):
        if column.table in aliases:
            column.set("table", None)
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", True)
    return tree


def unbounded_part(tree: Any) -> tuple[str, str]:
    """The part of a query that a stream cannot compute, and the part of the DataStream API to use instead."""
    sql = sqlglot().exp
    for name, instead in _INSTEAD.items():
        if any(select.args.get(name) for select in tree.find_all(sql.Select)):
            return {"group": "GROUP BY", "joins": "JOIN", "order": "ORDER BY"}.get(
                name, name.upper()
            ), instead
    if tree.find(sql.AggFunc):
        return "aggregation", _INSTEAD["group"]
    part = tree.key.upper() if isinstance(tree, sql.SetOperation) else "this query"
    return part, "map(), filter() and process()"


def selected(tree: Any, columns: Sequence[str]) -> list[tuple[str, Any]]:
    """The columns of a SELECT: their names and the trees of their expressions."""
    found: list[tuple[str, Any]] = []
    for number, each in enumerate(tree.expressions):
        if each.is_star:
            found += [(name, sqlglot().exp.column(name, quoted=True)) for name in columns]
        else:
            found.append((_column_name(each, number), each))
    return _distinct(found)


_WITHOUT_PARENTHESES = {
    "CurrentDate": "CURRENT_DATE",
    "CurrentTimestamp": "CURRENT_TIMESTAMP",
    "CurrentTime": "CURRENT_TIME",
    "Localtime": "LOCALTIME",
    "Localtimestamp": "LOCALTIMESTAMP",
}
"""Functions that are called without parentheses. Their columns have their names."""


def _column_name(tree: Any, number: int) -> str:
    """The name of a column in SELECT: an alias, the name of a column or of a field of a row, or else a number."""
    kind = type(tree).__name__
    if kind == "Paren":
        return _column_name(tree.this, number)
    if kind == "Dot":
        return str(tree.expression.name)
    if kind in _WITHOUT_PARENTHESES:
        return _WITHOUT_PARENTHESES[kind]
    return str(tree.alias_or_name) if kind in {"Alias", "Column"} else f"EXPR${number}"


def _distinct(selected: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Appends a number to repeated names, as Flink does."""
    used: set[str] = set()
    found = []
    for name, tree in selected:
        numbered, number = name, 0
        while numbered in used:
            numbered, number = f"{name}{number}", number + 1
        used.add(numbered)
        found.append((numbered, tree))
    return found


def values_of(tree: Any) -> list[list[tuple[str, Typed]]]:
    """The rows of VALUES."""
    compiler = Compiler({}, (), "VALUES")
    return [
        [
            (f"EXPR${number}", compiler.compile(each))
            for number, each in enumerate(
                row.expressions if type(row).__name__ == "Tuple" else [row.this]
            )
        ]
        for row in tree.expressions
    ]


def projection(
    columns: Sequence[Column], values: Sequence[Typed], shown: str | None = None
) -> RowProjection:
    """The function that computes a row; plans show the names of its columns, or another text."""
    texts = "".join(f"{each.text}, " for each in values)
    names = [each.name for each in columns]
    return RowProjection(f"({texts})", shown or ", ".join(names), names)
