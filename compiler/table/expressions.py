"""SQL expressions: parsed by sqlglot, typed, and compiled to the text of Python expressions over a row."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.table.data_types import (
    ArrayType,
    DataType,
    DataTypes,
    MapType,
    RowType,
    data_type_of,
)
from opchain.runtime.errors import GraphError, UnsupportedFeatureError, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NUMBERS = (*_INTEGERS, "DECIMAL", "FLOAT", "DOUBLE")
_UNIT_MS = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
_INT_LIMIT = 2**31
_NOT_READ = {
    "TUMBLE": "key_by(...).window(TumblingEventTimeWindows.of(...))",
    "HOP": "key_by(...).window(SlidingEventTimeWindows.of(...))",
    "CUMULATE": "key_by(...).window(...) with a ContinuousEventTimeTrigger",
    "SESSION": "key_by(...).window(EventTimeSessionWindows.with_gap(...))",
    "MATCH_RECOGNIZE": "key_by(...).process(...) with state",
}
"""Clauses of Flink's SQL that sqlglot cannot read."""
BOOLEAN, STRING, INT = DataTypes.BOOLEAN(), DataTypes.STRING(), DataTypes.INT()


class Column(NamedTuple):
    """A column that expressions can name."""

    name: str
    data_type: DataType


class Typed(NamedTuple):
    """The text of a Python expression, and the type of its value."""

    text: str
    data_type: DataType


def by_position(columns: Sequence[Column]) -> dict[str, Typed]:
    """The columns of a row that has all of them, in order."""
    return {
        name: Typed(f"row[{place}]", data_type) for place, (name, data_type) in enumerate(columns)
    }


@functools.cache
def sqlglot() -> Any:
    """The library sqlglot, with a dialect that has the quotes of Flink's SQL.

    Raises:
        MissingLibraryError: sqlglot is not installed.
    """
    library = imported("sqlglot", "sql", "SQL")
    tokens = imported("sqlglot.tokens", "sql", "SQL")
    dialect: Any = imported("sqlglot.dialects.dialect", "sql", "SQL").Dialect
    tokenizer = type("Tokenizer", (tokens.Tokenizer,), {"IDENTIFIERS": ["`"], "QUOTES": ["'"]})
    type("Flink", (dialect,), {"Tokenizer": tokenizer})
    return library


def parsed(text: str, what: str) -> Any:
    """The tree of an expression or a query.

    Raises:
        GraphError: The text is not SQL.
        UnsupportedFeatureError: It has windows or patterns.
    """
    library = sqlglot()
    try:
        return library.parse_one(text, read="flink")
    except library.errors.SqlglotError as error:
        for name, instead in _NOT_READ.items():
            if re.search(rf"\b{name}\s*\(", text, re.IGNORECASE):
                raise UnsupportedFeatureError(
                    f"{what}: {name} is not supported; convert the table with to_data_stream(), and use {instead} "
                    "of the DataStream API"
                ) from None
        line = str(error).splitlines()[0]
        raise GraphError(f"{what} can't be parsed: {line} in {text!r}; correct the SQL") from error


class Compiler:
    """Compiles expressions over the columns of one table.

    Args:
        columns: The columns by name, each with its text and its type.
        aliases: The names by which columns may be qualified.
        where: The part of the program, for errors.
    """

    def __init__(self, columns: Mapping[str, Typed], aliases: Sequence[str], where: str) -> None:
        self._columns = columns
        self._aliases = set(aliases)
        self._where = where

    def compile(self, tree: Any) -> Typed:
        """The expression as Python.

        Raises:
            GraphError: The expression names an unknown column, or an operand has the wrong type.
            UnsupportedFeatureError: The expression calls a function that is not supported.
        """
        name = type(tree).__name__
        method: Callable[[Any], Typed] | None = getattr(self, f"_{name.lower()}", None)
        if method is not None:
            return method(tree)
        if name in _BINARY:
            return self._arithmetic(tree, _BINARY[name])
        if name in _COMPARISONS:
            return self._call(_COMPARISONS[name], BOOLEAN, tree.left, tree.right)
        if name in _SIMPLE:
            function, data_type = _SIMPLE[name]
            arguments = [
                tree.this,
                *(each for each in tree.expressions or () if each is not tree.this),
            ]
            given = self._call(function, STRING, *arguments)
            return given._replace(data_type=data_type or self.compile(tree.this).data_type)
        raise self._unsupported(tree.sql(dialect="flink"))

    def _unsupported(self, text: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"{self._where}: {text} is not supported on streams; compute it with map() of the DataStream API. Queries "
            "over bounded tables may use all of Spark SQL: sql_query(...) with aggregates or joins runs there"
        )

    def _call(self, function: str, data_type: DataType, *trees: Any) -> Typed:
        return Typed(
            f"{function}({', '.join(self.compile(each).text for each in trees)})", data_type
        )

    def _paren(self, tree: Any) -> Typed:
        return self.compile(tree.this)

    def _alias(self, tree: Any) -> Typed:
        return self.compile(tree.this)

    def _column(self, tree: Any) -> Typed:
        parts = [part.name for part in tree.parts]
        if len(parts) > 1 and parts[0] in self._aliases and parts[0] not in self._columns:
            parts = parts[1:]
        found = self._columns.get(parts[0])
        if found is None:
            known = ", ".join(self._columns)
            raise GraphError(
                f"{self._where}: there is no column '{parts[0]}'; the columns are {known}. Names are case-sensitive"
            )
        typed = found
        for part in parts[1:]:
            typed = self._field(typed, part)
        return typed

    def _field(self, typed: Typed, name: str) -> Typed:
        if isinstance(typed.data_type, RowType):
            for position, each in enumerate(typed.data_type.fields):
                if each.name == name:
                    return Typed(f"field({typed.text}, {position})", each.data_type)
        raise GraphError(f"{self._where}: {typed.data_type} has no field '{name}'")

    def _dot(self, tree: Any) -> Typed:
        return self._field(self.compile(tree.this), tree.expression.name)

    def _bracket(self, tree: Any) -> Typed:
        container = self.compile(tree.this)
        of = container.data_type
        if isinstance(of, ArrayType):
            key = self.compile(tree.expressions[0]).text
            return Typed(f"item({container.text}, {key})", of.element_type)
        if isinstance(of, MapType):
            key = self.compile(tree.expressions[0]).text
            return Typed(f"item({container.text}, {key})", of.value_type)
        raise GraphError(
            f"{self._where}: {tree.sql(dialect='flink')} has no items, because its type is {of}"
        )

    def _literal(self, tree: Any) -> Typed:
        if tree.is_string:
            return Typed(repr(tree.this), DataTypes.STRING(nullable=False))
        text = tree.this
        if text.isdigit():
            number = int(text)
            return Typed(str(number), INT if number < _INT_LIMIT else DataTypes.BIGINT())
        if "e" in text.lower():
            return Typed(repr(float(text)), DataTypes.DOUBLE())
        whole, _, fraction = text.partition(".")
        digits = max(1, len(whole.lstrip("0")) + len(fraction))
        return Typed(f"decimal({text!r})", DataTypes.DECIMAL(digits, len(fraction)))

    def _null(self, _: Any) -> Typed:
        return Typed("None", STRING)

    def _boolean(self, tree: Any) -> Typed:
        return Typed(str(bool(tree.this)), BOOLEAN)

    def _interval(self, tree: Any) -> Typed:
        unit = str(tree.unit).upper().rstrip("S")
        if unit not in _UNIT_MS:
            raise self._unsupported(tree.sql(dialect="flink"))
        return Typed(f"milliseconds({int(tree.this.name) * _UNIT_MS[unit]})", DataType("INTERVAL"))

    def _arithmetic(self, tree: Any, function: str) -> Typed:
        left, right = self.compile(tree.left), self.compile(tree.right)
        data_type = _common(left.data_type, right.data_type)
        if data_type is None:
            raise GraphError(
                f"{self._where}: {tree.sql(dialect='flink')} combines {left.data_type} and {right.data_type}; "
                "CAST one of them"
            )
        text = f"{function}({left.text}, {right.text})"
        bits = _BITS.get(data_type.name)
        return Typed(text if bits is None else f"wrapped({text}, {bits})", data_type)

    def _neg(self, tree: Any) -> Typed:
        typed = self.compile(tree.this)
        return Typed(f"negate({typed.text})", typed.data_type)

    def _and(self, tree: Any) -> Typed:
        return self._call("and_", BOOLEAN, tree.left, tree.right)

    def _or(self, tree: Any) -> Typed:
        return self._call("or_", BOOLEAN, tree.left, tree.right)

    def _not(self, tree: Any) -> Typed:
        return self._call("not_", BOOLEAN, tree.this)

    def _is(self, tree: Any) -> Typed:
        return Typed(
            f"({self.compile(tree.this).text} is {self.compile(tree.expression).text})", BOOLEAN
        )

    def _in(self, tree: Any) -> Typed:
        if not tree.expressions:
            raise self._unsupported(tree.sql(dialect="flink"))
        return self._call("in_", BOOLEAN, tree.this, *tree.expressions)

    def _between(self, tree: Any) -> Typed:
        value, low, high = (self.compile(tree.args[each]).text for each in ("this", "low", "high"))
        return Typed(f"and_(at_least({value}, {low}), at_most({value}, {high}))", BOOLEAN)

    def _escape(self, tree: Any) -> Typed:
        inner = tree.this
        return self._call("like", BOOLEAN, inner.this, inner.expression, tree.expression)

    def _case(self, tree: Any) -> Typed:
        found, data_type = "None", STRING
        if tree.args.get("default") is not None:
            found, data_type = self.compile(tree.args["default"])
        for branch in reversed(tree.args["ifs"]):
            test = self.compile(branch.this).text
            if tree.this is not None:
                test = f"equal({self.compile(tree.this).text}, {test})"
            value = self.compile(branch.args["true"])
            found, data_type = f"({value.text} if {test} is True else {found})", value.data_type
        return Typed(found, data_type)

    def _if(self, tree: Any) -> Typed:
        value = self.compile(tree.args["true"])
        other = self.compile(tree.args["false"]).text if tree.args.get("false") else "None"
        return Typed(
            f"({value.text} if {self.compile(tree.this).text} is True else {other})",
            value.data_type,
        )

    def _coalesce(self, tree: Any) -> Typed:
        first = self.compile(tree.this)
        return self._call("coalesce", first.data_type, tree.this, *tree.expressions)

    def _nullif(self, tree: Any) -> Typed:
        return self._call("nullif", self.compile(tree.this).data_type, tree.this, tree.expression)

    def _dpipe(self, tree: Any) -> Typed:
        return self._call("concat", STRING, tree.left, tree.right)

    def _concat(self, tree: Any) -> Typed:
        return self._call("concat", STRING, *tree.expressions)

    def _substring(self, tree: Any) -> Typed:
        parts = [tree.this, tree.args.get("start"), tree.args.get("length")]
        return self._call("substring", STRING, *(each for each in parts if each is not None))

    def _replace(self, tree: Any) -> Typed:
        return self._call("replace", STRING, tree.this, tree.expression, tree.args["replacement"])

    def _round(self, tree: Any) -> Typed:
        decimals = tree.args.get("decimals")
        arguments = [tree.this] if decimals is None else [tree.this, decimals]
        return self._call("round_", self.compile(tree.this).data_type, *arguments)

    def _extract(self, tree: Any) -> Typed:
        return Typed(
            f"part({tree.this.name.upper()!r}, {self.compile(tree.expression).text})",
            DataTypes.BIGINT(),
        )

    def _cast(self, tree: Any) -> Typed:
        return cast(self.compile(tree.this), data_type_of(tree.to.sql(dialect="flink")))

    def _trycast(self, tree: Any) -> Typed:
        typed = self._cast(tree)
        return Typed(f"attempted(lambda: {typed.text})", typed.data_type)

    def _anonymous(self, tree: Any) -> Typed:
        name = tree.name.upper()
        found = _FUNCTIONS.get(name)
        if found is None:
            raise self._unsupported(f"the function {name}")
        return self._call(found[0], found[1], *tree.expressions)

    def _strtotime(self, tree: Any) -> Typed:
        return self._call("to_timestamp", DataTypes.TIMESTAMP(3), tree.this, tree.args["format"])


def cast(value: Typed, data_type: DataType) -> Typed:
    """A value as another type."""
    if value.data_type.not_null() == data_type.not_null():
        return Typed(value.text, data_type)
    name = data_type.name
    function = _CASTS.get(name)
    if name in _BITS:
        return Typed(f"as_integer({value.text}, {_BITS[name]})", data_type)
    if name == "DECIMAL":
        return Typed(f"as_decimal({value.text}, {data_type.parameters[1]})", data_type)
    if function is None:
        return Typed(value.text, data_type)
    return Typed(f"{function}({value.text})", data_type)


def _common(left: DataType, right: DataType) -> DataType | None:
    """The type of an arithmetic result; None if the types cannot be combined."""
    if left.name in _NUMBERS and right.name in _NUMBERS:
        if "DECIMAL" in (left.name, right.name) and not {"FLOAT", "DOUBLE"} & {
            left.name,
            right.name,
        }:
            scales = [each.parameters[1] if each.parameters else 0 for each in (left, right)]
            return DataTypes.DECIMAL(38, max(scales))
        if "DECIMAL" in (left.name, right.name):
            return DataTypes.DOUBLE()
        widest = max(left.name, right.name, key=_NUMBERS.index)
        return data_type_of(widest)
    for time, interval in ((left, right), (right, left)):
        if time.name.startswith("TIMESTAMP") and interval.name == "INTERVAL":
            return time
    return None


_BINARY = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Mod": "modulo"}
_COMPARISONS = {
    "EQ": "equal",
    "NEQ": "unequal",
    "LT": "less",
    "LTE": "at_most",
    "GT": "greater",
    "GTE": "at_least",
    "Like": "like",
}
_SIMPLE: dict[str, tuple[str, DataType | None]] = {
    "Upper": ("upper", STRING),
    "Lower": ("lower", STRING),
    "Trim": ("trim", STRING),
    "Length": ("length", INT),
    "Abs": ("abs_", None),
    "Floor": ("floor_", None),
    "Ceil": ("ceil_", None),
}
_FUNCTIONS = {
    "TO_TIMESTAMP": ("to_timestamp", DataTypes.TIMESTAMP(3)),
    "TO_TIMESTAMP_LTZ": ("to_timestamp_ltz", DataTypes.TIMESTAMP_LTZ(3)),
    "TO_DATE": ("to_date", DataTypes.DATE()),
    "DATE_FORMAT": ("date_format", STRING),
    "CHARACTER_LENGTH": ("length", INT),
}
_CASTS = {
    **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), "as_text"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "as_double"),
    "BOOLEAN": "as_boolean",
    "TIMESTAMP": "as_timestamp",
    "TIMESTAMP_LTZ": "as_instant",
    "DATE": "as_date",
    "TIME": "as_time",
}
