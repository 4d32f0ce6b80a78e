"""SQL expressions: parsed by sqlglot, typed, and compiled to the text of Python expressions over a row."""

from __future__ import annotations

import functools
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.table.data_types import (
    INTERVAL,
    ArrayType,
    DataType,
    DataTypes,
    MapType,
    RawType,
    RowField,
    RowType,
    data_type_of,
)
from opchain.compiler.table.window_syntax import PARSERS, WindowParser, text_of_table
from opchain.runtime.errors import GraphError, UnsupportedFeatureError, imported
from opchain.runtime.functions.date_patterns import date_pattern
from opchain.runtime.functions.scalar_functions import PARTS, UNITS, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opchain.compiler.table.user_functions import UserCalls

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NUMBERS = (*_INTEGERS, "DECIMAL", "FLOAT", "DOUBLE")
_TEXTS = ("CHAR", "VARCHAR", "STRING")
_TIMES = ("TIME", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_KINDS = {
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys(_TEXTS, "text"),
    **dict.fromkeys(_TIMES, "time"),
}
_MOST_DIGITS = 38
_UNIT_MS = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}
_UNIT_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_INT_LIMIT = 2**31
_NOT_READ = {
    "MATCH_RECOGNIZE": "key_by(...).process(...) with state",
}
"""Clauses of Flink's SQL that sqlglot cannot read, or reads as calls of unknown functions."""
PROCTIME = "proctime()"
"""The text of a processing time."""
BOOLEAN, STRING, INT = DataTypes.BOOLEAN(), DataTypes.STRING(), DataTypes.INT()


class Column(NamedTuple):
    """A column that expressions can name."""

    name: str
    data_type: DataType


class EventTimeColumn(Column):
    """The event time of the rows. Flink: a time attribute of the kind ROWTIME."""

    __slots__ = ()


class ProcessingTimeColumn(Column):
    """The processing time. Flink: a time attribute of the kind PROCTIME."""

    __slots__ = ()


class WindowTimeColumn(EventTimeColumn):
    """The last millisecond of the window of a row, which is its event time."""

    __slots__ = ()


class WindowStartColumn(Column):
    """The start of the window of a row."""

    __slots__ = ()


class WindowEndColumn(Column):
    """The end of the window of a row."""

    __slots__ = ()


class Typed(NamedTuple):
    """The text of a Python expression, and the type of its value."""

    text: str
    data_type: DataType


def are_comparable(one: DataType, other: DataType) -> bool:
    """Whether values are compared without a cast: they are numbers, texts, or of the same type."""
    kinds = [_KINDS.get(each.name) for each in (one, other)]
    return one.name == other.name or (kinds[0] == kinds[1] and kinds[0] in ("number", "text"))


def by_position(columns: Sequence[Column]) -> dict[str, Typed]:
    """The columns of a row that has all of them, in order."""
    return {
        name: Typed(f"row[{place}]", data_type) for place, (name, data_type) in enumerate(columns)
    }


def column_of(name: str, value: Typed, given: Sequence[Column] = ()) -> Column:
    """The column that has this value. It is of the same kind as the given column that the value is read from."""
    if value.text == PROCTIME:
        return ProcessingTimeColumn(name, value.data_type)
    kinds = (type(each) for place, each in enumerate(given) if value.text == f"row[{place}]")
    return next(kinds, Column)(name, value.data_type)


@functools.cache
def sqlglot() -> Any:
    """The library sqlglot, with a dialect that has the quotes of Flink's SQL.

    Raises:
        MissingLibraryError: sqlglot is not installed.
    """
    library = imported("sqlglot", "sql", "SQL")
    tokens = imported("sqlglot.tokens", "sql", "SQL")
    dialect: Any = imported("sqlglot.dialects.dialect", "sql", "SQL").Dialect
    marks: dict[str, Any] = {"IDENTIFIERS": ["`"], "QUOTES": ["'"]}
    marks["HEX_STRINGS"] = [("X'", "'"), ("x'", "'")]
    # sqlglot's name of the type ROW<a INT> is STRUCT.
    words = {**tokens.Tokenizer.KEYWORDS, "ROW": tokens.TokenType.STRUCT}
    words.pop("SESSION")  # the window SESSION is a function
    tokenizer = type("Tokenizer", (tokens.Tokenizer,), {**marks, "KEYWORDS": words})
    parser: Any = imported("sqlglot.parser", "sql", "SQL").Parser
    # sqlglot would take the last argument of TIMESTAMPDIFF for a unit.
    functions = {name: of for name, of in parser.FUNCTIONS.items() if name != "TIMESTAMPDIFF"}
    dtype = imported("sqlglot.expressions", "sql", "SQL").DataType.Type
    times = dict.fromkeys((dtype.TIMESTAMP, dtype.TIME), _literal_of_time)
    literals = {**parser.TYPE_LITERAL_PARSERS, **times}
    without_parentheses = {
        **parser.NO_PAREN_FUNCTIONS,
        tokens.TokenType.LOCALTIME: library.exp.Localtime,
        tokens.TokenType.LOCALTIMESTAMP: library.exp.Localtimestamp,
    }
    arguments = {"this": True, "partition": False}
    table = type("TableArgument", (library.exp.Expression,), {"arg_types": arguments})
    parts = {
        "FUNCTIONS": functions,
        "FUNCTION_PARSERS": {**parser.FUNCTION_PARSERS, **PARSERS},
        "table_argument": table,
        "NO_PAREN_FUNCTIONS": without_parentheses,
        "TYPE_LITERAL_PARSERS": literals,
    }
    parser = type("Parser", (WindowParser, parser), parts)
    generator = imported("sqlglot.generator", "sql", "SQL").Generator
    names = {**generator.TYPE_MAPPING, dtype.STRUCT: "ROW"}
    texts = {**generator.TRANSFORMS, table: text_of_table}
    generator = type("Generator", (generator,), {"TYPE_MAPPING": names, "TRANSFORMS": texts})
    classes = {"Tokenizer": tokenizer, "Parser": parser, "Generator": generator}
    type("Flink", (dialect,), classes)
    return library


def _literal_of_time(_parser: Any, literal: Any, of: Any) -> Any:
    """`TIMESTAMP '2020-01-02 03:04:05.120'` has the digits that it is written with."""
    expressions = imported("sqlglot.expressions", "sql", "SQL")
    digits = len(literal.this.rpartition(".")[2]) if "." in literal.this else 0
    return expressions.cast(literal, f"{of.this.value}({digits})")


@functools.cache
def _dialect(functions: frozenset[str]) -> Any:
    """The dialect of Flink's SQL in which these names are functions of the user, not of sqlglot."""
    base = sqlglot().Dialect["flink"]
    tables = {
        table: {
            name: of for name, of in getattr(base.Parser, table).items() if name not in functions
        }
        for table in ("FUNCTIONS", "FUNCTION_PARSERS")
    }
    return type("FlinkOfUser", (base,), {"Parser": type("Parser", (base.Parser,), tables)})


def parsed(text: str, what: str, functions: frozenset[str] = frozenset()) -> Any:
    """The tree of an expression or a query.

    Args:
        text: The SQL text.
        what: The part of the program, for errors.
        functions: The names of the user's functions, in capitals.

    Raises:
        GraphError: The text is not SQL.
        UnsupportedFeatureError: It has windows, patterns or temporal joins.
    """
    library = sqlglot()
    try:
        tree = library.parse_one(text, read=_dialect(functions) if functions else "flink")
    except library.errors.SqlglotError as error:
        for name, instead in _NOT_READ.items():
            if re.search(rf"\b{name}\s*\(", text, re.IGNORECASE):
                raise _not_read(what, name, instead) from None
        line = str(error).splitlines()[0]
        raise GraphError(f"{what} can't be parsed: {line} in {text!r}; correct the SQL") from error
    for call in tree.find_all(library.exp.Anonymous):
        name = call.name.upper()
        if name in _NOT_READ and name not in functions:
            raise _not_read(what, name, _NOT_READ[name])
    if tree.find(library.exp.Version) is not None:
        raise _not_read(what, "FOR SYSTEM_TIME AS OF", "AsyncDataStream or broadcast state")
    return tree


def _not_read(what: str, clause: str, instead: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{what}: {clause} is not supported; convert the table with to_data_stream(), and use {instead} of the "
        "DataStream API"
    )


class Compiler:
    """Compiles expressions over the columns of one table.

    Args:
        columns: The columns by name, each with its text and its type.
        aliases: The names by which columns may be qualified.
        where: The part of the program, for errors.
        calls: Takes the calls of the user's functions; None where they are not supported.
    """

    _name_of_field = "EXPR${}"

    def __init__(
        self,
        columns: Mapping[str, Typed],
        aliases: Sequence[str],
        where: str,
        calls: UserCalls | None = None,
    ) -> None:
        self._columns = columns
        self._aliases = set(aliases)
        self._where = where
        self._calls = calls

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
            texts = self._comparable(tree.left, tree.right)
            return Typed(f"{_COMPARISONS[name]}({', '.join(texts)})", BOOLEAN)
        if name in _PARTS:
            return Typed(
                f"part({_PARTS[name]!r}, {self.compile(tree.this).text})", DataTypes.BIGINT()
            )
        if name in _NODES:
            return self._node(tree, *_NODES[name])
        raise self._unsupported(tree.sql(dialect="flink"))

    def condition(self, tree: Any) -> Typed:
        """The expression of WHERE.

        Raises:
            GraphError: It is not a BOOLEAN.
        """
        typed = self.compile(tree)
        if typed.data_type.name != "BOOLEAN" and typed.text != "None":
            raise GraphError(
                f"{self._where}: {tree.sql(dialect='flink')} is {typed.data_type}; a condition is a BOOLEAN, such as a "
                "comparison"
            )
        return typed

    def _node(
        self, tree: Any, function: str, names: Sequence[str], data_type: DataType | None
    ) -> Typed:
        """A function that sqlglot knows: its arguments are attributes of the tree."""
        given = [tree.args.get(each) for each in names]
        unknown = {key for key, value in tree.args.items() if value} - {*names, *_NO_ARGUMENTS}
        if unknown:
            raise self._unsupported(tree.sql(dialect="flink"))
        found = self._call(function, STRING, *(each for each in given if each is not None))
        return found._replace(data_type=data_type or self.compile(given[0]).data_type)

    def _extremes(self, function: str, tree: Any) -> Typed:
        texts, data_type = self._of_one_type(
            *(self.compile(each) for each in (tree.this, *tree.expressions))
        )
        return Typed(f"{function}({', '.join(texts)})", data_type)

    def _greatest(self, tree: Any) -> Typed:
        return self._extremes("greatest", tree)

    def _least(self, tree: Any) -> Typed:
        return self._extremes("least", tree)

    def _concatws(self, tree: Any) -> Typed:
        return self._call("concat_ws", STRING, *tree.expressions)

    def _chr(self, tree: Any) -> Typed:
        return self._call("chr_", STRING, *tree.expressions)

    def _pad(self, tree: Any) -> Typed:
        pad = tree.args.get("fill_pattern")
        function = "lpad" if tree.args.get("is_left") else "rpad"
        return self._call(
            function, STRING, tree.this, tree.expression, *([] if pad is None else [pad])
        )

    def _nullsafeneq(self, tree: Any) -> Typed:
        return Typed(f"distinct({', '.join(self._comparable(tree.left, tree.right))})", BOOLEAN)

    def _nullsafeeq(self, tree: Any) -> Typed:
        return Typed(f"not_({self._nullsafeneq(tree).text})", BOOLEAN)

    def _array(self, tree: Any) -> Typed:
        texts, data_type = self._of_one_type(*map(self.compile, tree.expressions))
        return Typed(f"array({', '.join(texts)})", DataTypes.ARRAY(data_type))

    def _map_of(self, trees: Sequence[Any]) -> Typed:
        keys, key_type = self._of_one_type(*map(self.compile, trees[::2]))
        values, value_type = self._of_one_type(*map(self.compile, trees[1::2]))
        pairs = zip(keys, values, strict=True)
        texts = ", ".join(f"{key}, {value}" for key, value in pairs)
        return Typed(f"map_of({texts})", DataTypes.MAP(key_type, value_type))

    def _row_of(self, trees: Sequence[Any]) -> Typed:
        values = list(map(self.compile, trees))
        fields = [
            RowField(self._name_of_field.format(n), each.data_type) for n, each in enumerate(values)
        ]
        names = tuple(each.name for each in fields)
        texts = "".join(f", {each.text}" for each in values)
        return Typed(f"row_of({names!r}{texts})", DataTypes.ROW(fields))

    def _tuple(self, tree: Any) -> Typed:
        return self._row_of(tree.expressions)

    def _unit(self, tree: Any) -> str:
        unit = str(tree.name).upper().removesuffix("S").removeprefix("SQL_TSI_")
        if unit not in UNITS:
            raise self._unsupported(f"the unit {tree.name}")
        return unit

    def _of_time(self, function: str, tree: Any) -> Typed:
        value = self.compile(tree.this)
        unit = self._unit(tree.args["to"])
        return Typed(f"{function}_of_time({unit!r}, {value.text})", value.data_type)

    def _timestampadd(self, trees: Sequence[Any]) -> Typed:
        unit, count, value = self._unit(trees[0]), *map(self.compile, trees[1:])
        of = value.data_type
        if of.name == "DATE" and unit in ("SECOND", "MINUTE", "HOUR"):
            of = DataTypes.TIMESTAMP(3)
        return Typed(f"timestamp_add({unit!r}, {count.text}, {value.text})", of)

    def _timestampdiff(self, trees: Sequence[Any]) -> Typed:
        unit, first, last = self._unit(trees[0]), *map(self.compile, trees[1:])
        return Typed(f"wrapped(timestamp_diff({unit!r}, {first.text}, {last.text}), 32)", INT)

    def _unsupported(self, text: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"{self._where}: {text} is not supported on streams; compute it with map() of the DataStream API. Queries "
            "over bounded tables may use all of Spark SQL: sql_query(...) with aggregates or joins runs there"
        )

    def _call(self, function: str, data_type: DataType, *trees: Any) -> Typed:
        return Typed(
            f"{function}({', '.join(self.compile(each).text for each in trees)})", data_type
        )

    def _comparable(self, *trees: Any) -> list[str]:
        """Values that can be compared: texts beside times are cast, as in Flink.

        Raises:
            GraphError: They cannot be compared.
        """
        values = [self.compile(each) for each in trees]
        known = [each for each in values if each.text != "None"]
        kinds = {_KINDS.get(each.data_type.name, each.data_type.name) for each in known}
        if "time" in kinds and kinds <= {"time", "text"}:
            times = [each.data_type for each in known if each.data_type.name not in _TEXTS]
            widest = max(times, key=lambda each: _TIMES.index(each.name))
            return [each.text if each not in known else cast(each, widest).text for each in values]
        names = {each.data_type.name for each in known}
        if "DECIMAL" in names and not names.isdisjoint({"FLOAT", "DOUBLE"}):
            # In Python, the float 0.1 is not the decimal 0.1.
            return [fitted(each, DataTypes.DOUBLE()).text for each in values]
        if len(kinds) > 1:
            compared = " and ".join(dict.fromkeys(str(each.data_type.nullable()) for each in known))
            raise GraphError(f"{self._where}: {compared} are compared; CAST one of them")
        return [each.text for each in values]

    def _of_one_type(self, *values: Typed) -> tuple[list[str], DataType]:
        """Values of branches, in the type that all of them fit into.

        Raises:
            GraphError: There is none.
        """
        known = [each.data_type for each in values if each.text != "None"]
        of = common_type(known or [STRING], f"{self._where}: the branches are")
        return [fitted(each, of).text for each in values], of

    def _like(self, tree: Any, *escape: Any) -> Typed:
        found = self._call("like", BOOLEAN, tree.this, tree.expression, *escape)
        return Typed(f"not_({found.text})", BOOLEAN) if tree.args.get("negate") else found

    def _trim(self, tree: Any) -> Typed:
        sides = {"LEADING": "trim_start", "TRAILING": "trim_end"}
        function = sides.get(str(tree.args.get("position")).upper(), "trim")
        characters = tree.args.get("expression")
        return self._call(
            function, STRING, tree.this, *([] if characters is None else [characters])
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
        if tree.this.name.upper() == "MAP" and "MAP" not in self._columns:
            return self._map_of(tree.expressions)
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
        digits = max(1, len(whole.lstrip("0"))) + len(fraction)
        return Typed(f"decimal({text!r})", DataTypes.DECIMAL(digits, len(fraction)))

    def _hexstring(self, tree: Any) -> Typed:
        try:
            value = bytes.fromhex(tree.this)
        except ValueError:
            raise GraphError(
                f"{self._where}: X'{tree.this}' has an odd number of digits; a byte has two"
            ) from None
        return Typed(repr(value), DataTypes.BYTES(nullable=False))

    def _null(self, _: Any) -> Typed:
        return Typed("None", STRING)

    def _boolean(self, tree: Any) -> Typed:
        return Typed(str(bool(tree.this)), BOOLEAN)

    def _interval(self, tree: Any) -> Typed:
        unit = str(tree.unit).upper().rstrip("S")
        try:
            count = Decimal(tree.this.name)
        except InvalidOperation:
            raise self._unsupported(tree.sql(dialect="flink")) from None
        if unit in _UNIT_MONTHS:
            return Typed(f"months({int(count * _UNIT_MONTHS[unit])})", INTERVAL)
        if unit not in _UNIT_MS:
            raise self._unsupported(tree.sql(dialect="flink"))
        return Typed(f"milliseconds({int(count * _UNIT_MS[unit])})", INTERVAL)

    def _arithmetic(self, tree: Any, function: str) -> Typed:
        left, right = self.compile(tree.left), self.compile(tree.right)
        data_type = _common(left.data_type, right.data_type)
        if data_type is None:
            raise GraphError(
                f"{self._where}: {tree.sql(dialect='flink')} combines {left.data_type} and {right.data_type}; "
                "CAST one of them"
            )
        text = f"{function}({left.text}, {right.text})"
        if data_type.name == "TIME":
            time, interval = (left, right) if left.data_type.name == "TIME" else (right, left)
            of = interval.text if function == "add" else f"negate({interval.text})"
            return Typed(f"moved({time.text}, {of})", data_type)
        if data_type.name == "DECIMAL":
            return _as_decimal(text, _decimal_of(function, left.data_type, right.data_type))
        if data_type.name == "FLOAT":
            text = f"as_float({text})"
        bits = _BITS.get(data_type.name)
        return Typed(text if bits is None else f"wrapped({text}, {bits})", data_type)

    def _neg(self, tree: Any) -> Typed:
        typed = self.compile(tree.this)
        return Typed(f"negate({typed.text})", typed.data_type)

    def _and(self, tree: Any) -> Typed:
        return self._connected("and_", tree)

    def _or(self, tree: Any) -> Typed:
        return self._connected("or_", tree)

    def _connected(self, function: str, tree: Any) -> Typed:
        """The right condition is a function, which is only called if the left one does not decide the result."""
        left, right = self.compile(tree.left), self.compile(tree.right)
        return Typed(f"{function}({left.text}, lambda: {right.text})", BOOLEAN)

    def _not(self, tree: Any) -> Typed:
        return self._call("not_", BOOLEAN, tree.this)

    def _is(self, tree: Any) -> Typed:
        if type(tree.expression).__name__ == "JSON":
            kind = tree.expression.args.get("this") or "VALUE"
            text = f"is_json({self.compile(tree.this).text}, {kind!r})"
            if tree.expression.args.get("with_") or tree.expression.args.get("unique"):
                raise self._unsupported(tree.sql(dialect="flink"))
            return Typed(text, BOOLEAN)
        return Typed(
            f"({self.compile(tree.this).text} is {self.compile(tree.expression).text})", BOOLEAN
        )

    def _in(self, tree: Any) -> Typed:
        if not tree.expressions:
            raise self._unsupported(tree.sql(dialect="flink"))
        return Typed(f"in_({', '.join(self._comparable(tree.this, *tree.expressions))})", BOOLEAN)

    def _between(self, tree: Any) -> Typed:
        value, low, high = self._comparable(*(tree.args[each] for each in ("this", "low", "high")))
        text, reverse = (
            f"and_(at_least({value}, {one}), lambda: at_most({value}, {other}))"
            for one, other in ((low, high), (high, low))
        )
        return Typed(
            f"or_({text}, lambda: {reverse})" if tree.args.get("symmetric") else text, BOOLEAN
        )

    def _escape(self, tree: Any) -> Typed:
        return self._like(tree.this, tree.expression)

    def _case(self, tree: Any) -> Typed:
        branches, default = tree.args["ifs"], tree.args.get("default")
        values = [self.compile(each.args["true"]) for each in branches]
        values.append(Typed("None", STRING) if default is None else self.compile(default))
        (*texts, found), data_type = self._of_one_type(*values)
        for branch, text in zip(reversed(branches), reversed(texts), strict=True):
            test = self.compile(branch.this).text
            if tree.this is not None:
                test = f"equal({', '.join(self._comparable(tree.this, branch.this))})"
            found = f"({text} if {test} is True else {found})"
        return Typed(found, data_type)

    def _if(self, tree: Any) -> Typed:
        other = tree.args.get("false")
        (value, default), data_type = self._of_one_type(
            self.compile(tree.args["true"]),
            Typed("None", STRING) if other is None else self.compile(other),
        )
        return Typed(
            f"({value} if {self.compile(tree.this).text} is True else {default})", data_type
        )

    def _coalesce(self, tree: Any) -> Typed:
        texts, data_type = self._of_one_type(
            *(self.compile(each) for each in (tree.this, *tree.expressions))
        )
        return Typed(f"coalesce({', '.join(texts)})", data_type)

    def _nullif(self, tree: Any) -> Typed:
        texts = self._comparable(tree.this, tree.expression)
        return Typed(f"nullif({', '.join(texts)})", self.compile(tree.this).data_type)

    def _dpipe(self, tree: Any) -> Typed:
        return self._call("concat", STRING, tree.left, tree.right)

    def _concat(self, tree: Any) -> Typed:
        return self._call("concat", STRING, *tree.expressions)

    def _substring(self, tree: Any) -> Typed:
        parts = [tree.this, tree.args.get("start"), tree.args.get("length")]
        return self._call("substring", STRING, *(each for each in parts if each is not None))

    def _replace(self, tree: Any) -> Typed:
        return self._call("replace", STRING, tree.this, tree.expression, tree.args["replacement"])

    def _floor(self, tree: Any) -> Typed:
        return self._integral("floor", tree)

    def _ceil(self, tree: Any) -> Typed:
        return self._integral("ceil", tree)

    def _integral(self, function: str, tree: Any) -> Typed:
        if tree.args.get("to") is not None:
            return self._of_time(function, tree)
        value = self.compile(tree.this)
        found = value._replace(text=f"{function}_({value.text})")
        if value.data_type.name != "DECIMAL":
            return found
        return _as_decimal(found.text, DataTypes.DECIMAL(value.data_type.parameters[0], 0))

    def _initcap(self, tree: Any) -> Typed:
        return self._call("initcap", STRING, tree.this)

    def _round(self, tree: Any) -> Typed:
        return self._to_digits("round_", tree)

    def _trunc(self, tree: Any) -> Typed:
        return self._to_digits("truncate", tree)

    def _to_digits(self, function: str, tree: Any) -> Typed:
        decimals = tree.args.get("decimals")
        of = self.compile(tree.this).data_type
        found = self._call(function, of, tree.this, *([] if decimals is None else [decimals]))
        if of.name == "DECIMAL":
            digits = "0" if decimals is None else decimals.sql(dialect="flink")
            is_known = re.fullmatch(r"-?\d+", digits) is not None
            return _as_decimal(found.text, _of_digits(of, int(digits))) if is_known else found
        bits = _BITS.get(of.name)
        return found if bits is None else Typed(f"wrapped({found.text}, {bits})", of)

    def _extract(self, tree: Any) -> Typed:
        part = tree.this.name.upper()
        if part not in _EXTRACTED:
            raise self._unsupported(f"EXTRACT({part} FROM ...)")
        return Typed(f"part({part!r}, {self.compile(tree.expression).text})", DataTypes.BIGINT())

    def _cast(self, tree: Any) -> Typed:
        return cast(self.compile(tree.this), data_type_of(tree.to.sql(dialect="flink")))

    def _trycast(self, tree: Any) -> Typed:
        typed = self._cast(tree)
        return Typed(f"attempted(lambda: {typed.text})", typed.data_type)

    def _anonymous(self, tree: Any) -> Typed:
        name = tree.name.upper()
        if self._calls is not None and self._calls.takes(tree):
            arguments = [self.compile(each) for each in tree.expressions]
            return self._calls.result(tree, arguments, self._where)
        special = {
            "ROW": self._row_of,
            "TIMESTAMPADD": self._timestampadd,
            "TIMESTAMPDIFF": self._timestampdiff,
        }.get(name)
        if special is not None:
            return special(tree.expressions)
        if name == "UNIX_TIMESTAMP" and not tree.expressions:
            return Typed("unix_now()", DataTypes.BIGINT())
        if name == "ELEMENT":
            values = self.compile(tree.expressions[0])
            of = getattr(values.data_type, "element_type", STRING)
            return Typed(f"element({values.text})", of)
        found = _FUNCTIONS.get(name)
        if found is None:
            raise self._unsupported(f"the function {name}")
        if name in _WITH_PATTERN and len(tree.expressions) > 1:
            self._check_pattern(tree.expressions[1])
        if name.startswith("JSON_") and tree.expressions[-1].is_string:
            try:
                steps_of(tree.expressions[-1].this)
            except ValueError as error:
                raise self._unsupported(str(error)) from None
        return self._call(found[0], found[1], *tree.expressions)

    def _check_pattern(self, pattern: Any) -> None:
        if pattern.is_string:
            try:
                date_pattern(pattern.this)
            except ValueError as error:
                raise self._unsupported(str(error)) from None

    def _strtotime(self, tree: Any) -> Typed:
        self._check_pattern(tree.args["format"])
        return self._call("to_timestamp", DataTypes.TIMESTAMP(3), tree.this, tree.args["format"])


def cast(value: Typed, data_type: DataType) -> Typed:
    """A value as another type.

    Raises:
        UnsupportedFeatureError: It is a list, a map, a row or a Python object, and the type is another one.
    """
    given, name = value.data_type, data_type.name
    if given.not_null() == data_type.not_null():
        return Typed(value.text, data_type)
    if isinstance(given, RawType):
        raise UnsupportedFeatureError(
            f"the type RAW can't be cast to {data_type}: its values are Python objects; declare output_type=... on the "
            "operator before from_data_stream()"
        )
    if isinstance(given, (ArrayType, MapType, RowType)):
        return Typed(_nested(value.text, given, data_type), data_type)
    function = _CASTS.get(name)
    if name in _BITS:
        text = f"as_integer({value.text}, {_BITS[name]})"
    elif name == "DECIMAL":
        return _as_decimal(value.text, data_type)
    elif name in _TEXTS:
        text = _text_of(value, data_type)
    elif function is None:
        text = value.text
    else:
        text = f"{function}({value.text})"
        if data_type.parameters:
            text = f"cut({text}, {data_type.parameters[0]})"
    return Typed(text, data_type)


def _nested(text: str, given: DataType, wanted: DataType) -> str:
    """The expression that casts the elements, or the fields by their position."""
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return f"as_array({text}, {_cast_of(given.element_type, wanted.element_type)})"
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        key = _cast_of(given.key_type, wanted.key_type)
        return f"as_map({text}, {key}, {_cast_of(given.value_type, wanted.value_type)})"
    if (
        isinstance(given, RowType)
        and isinstance(wanted, RowType)
        and len(given.fields) == len(wanted.fields)
    ):
        pairs = zip(given.fields, wanted.fields, strict=True)
        fields = "".join(
            f"{cast(Typed(f'row[{place}]', old.data_type), new.data_type).text}, "
            for place, (old, new) in enumerate(pairs)
        )
        names = tuple(each.name for each in wanted.fields)
        return f"as_row({text}, {names!r}, lambda row: ({fields}))"
    raise UnsupportedFeatureError(
        f"CAST of {given} AS {wanted} is not supported; compute it with map() of the DataStream API"
    )


def _cast_of(given: DataType, wanted: DataType) -> str:
    """A function that casts one value."""
    return f"lambda row: {cast(Typed('row', given), wanted).text}"


def _as_decimal(text: str, data_type: DataType) -> Typed:
    precision, scale = data_type.parameters
    return Typed(f"as_decimal({text}, {precision}, {scale})", data_type)


def _text_of(value: Typed, data_type: DataType) -> str:
    text = f"as_text({value.text})"
    if value.data_type.name == "FLOAT":
        text = f"text_of_float({value.text})"
    if value.data_type.name == "BYTES":
        text = f"text_of_bytes({value.text})"
    if value.data_type.name.startswith("TIMESTAMP"):
        text = f"timestamp_as_text({value.text}, {value.data_type.parameters[0]})"
    if data_type.name == "VARCHAR":
        return f"substring({text}, 1, {data_type.parameters[0]})"
    return text if data_type.name == "STRING" else f"as_char({text}, {data_type.parameters[0]})"


def common_type(types: Sequence[DataType], what: str) -> DataType:
    """The type that values of all these types fit into. `what` begins the error: `CASE: the branches are`.

    A FLOAT and a DOUBLE become a DOUBLE. Flink has a FLOAT in a UNION ALL of them, and loses digits.

    Raises:
        GraphError: The types have nothing in common.
    """
    of = types[0]
    for each in types[1:]:
        wider = _branch_type(of, each)
        if wider is None:
            raise GraphError(f"{what} {of} and {each}; CAST one of them")
        of = wider
    return of


def fitted(value: Typed, data_type: DataType) -> Typed:
    """A value as another type. NULL has any type."""
    return value if value.text == "None" else cast(value, data_type)


def _branch_type(left: DataType, right: DataType) -> DataType | None:
    """The type of a value that has one of two types, or None."""
    if left.not_null() == right.not_null():
        return left
    if left.name in _TEXTS and right.name in _TEXTS:
        return STRING
    if left.name in _NUMBERS and right.name in _NUMBERS:
        found = _common(left, right)
        if found is None or found.name != "DECIMAL":
            return found
        (p1, s1), (p2, s2) = _digits(left), _digits(right)
        scale = max(s1, s2)
        return DataTypes.DECIMAL(min(_MOST_DIGITS, max(p1 - s1, p2 - s2) + scale), scale)
    if left.name in _TIMES and right.name == left.name:
        return max(left, right, key=lambda each: each.parameters)
    return None


def _digits(of: DataType) -> tuple[int, int]:
    """Precision and scale of a DECIMAL, or of a whole number."""
    if of.name == "DECIMAL":
        precision, scale = of.parameters
        return precision, scale
    return {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}[of.name], 0


def _of_digits(of: DataType, digits: int) -> DataType:
    """The type of a DECIMAL rounded to some digits. Flink: LogicalTypeMerging.findRoundDecimalType."""
    precision, scale = of.parameters
    if digits >= scale:
        return of
    kept = max(0, digits)
    return DataTypes.DECIMAL(min(_MOST_DIGITS, 1 + precision - scale + kept), kept)


def _decimal_of(function: str, left: DataType, right: DataType) -> DataType:
    """The type of a result. Flink: LogicalTypeMerging."""
    (p1, s1), (p2, s2) = _digits(left), _digits(right)
    scale = max(s1, s2)
    if function == "multiply":
        precision, scale = p1 + p2 + 1, s1 + s2
    elif function == "divide":
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    elif function == "modulo":
        precision = min(p1 - s1, p2 - s2) + scale
    else:
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > _MOST_DIGITS:
        scale = max(_MOST_DIGITS - (precision - scale), min(scale, 6))
        precision = _MOST_DIGITS
    return DataTypes.DECIMAL(precision, scale)


def _common(left: DataType, right: DataType) -> DataType | None:
    """The type of an arithmetic result; None if the types cannot be combined."""
    if left.name in _NUMBERS and right.name in _NUMBERS:
        if "DECIMAL" in (left.name, right.name) and not {"FLOAT", "DOUBLE"} & {
            left.name,
            right.name,
        }:
            return DataTypes.DECIMAL(_MOST_DIGITS, 0)
        if "DECIMAL" in (left.name, right.name):
            return DataTypes.DOUBLE()
        widest = max(left.name, right.name, key=_NUMBERS.index)
        return data_type_of(widest)
    for time, interval in ((left, right), (right, left)):
        if time.name in _TIMES and interval.name == "INTERVAL":
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
}
_DOUBLE = DataTypes.DOUBLE()
_ONE, _TWO = ("this",), ("this", "expression")
_NODES: dict[str, tuple[str, Sequence[str], DataType | None]] = {
    "Upper": ("upper", _ONE, STRING),
    "Lower": ("lower", _ONE, STRING),
    "Length": ("length", _ONE, INT),
    "Left": ("left", _TWO, STRING),
    "Right": ("right", _TWO, STRING),
    "Abs": ("abs_", _ONE, None),
    "StrPosition": ("position", ("this", "substr", "position"), INT),
    "Repeat": ("repeat", ("this", "times"), STRING),
    "Reverse": ("reverse", _ONE, STRING),
    "RegexpReplace": ("regexp_replace", ("this", "expression", "replacement"), STRING),
    "RegexpExtract": ("regexp_extract", ("this", "expression", "position"), STRING),
    "Ascii": ("ascii_", _ONE, INT),
    "MD5": ("md5", _ONE, STRING),
    "SHA": ("sha1", _ONE, STRING),
    "ToBase64": ("to_base64", _ONE, STRING),
    "FromBase64": ("from_base64", _ONE, STRING),
    "Hex": ("hex_", _ONE, STRING),
    "StartsWith": ("starts_with", _TWO, BOOLEAN),
    "EndsWith": ("ends_with", _TWO, BOOLEAN),
    "SimilarTo": ("similar_to", _TWO, BOOLEAN),
    "Sign": ("sign", _ONE, None),
    "Pow": ("power", _TWO, _DOUBLE),
    "Log": ("log", _TWO, _DOUBLE),
    "Ln": ("log", _ONE, _DOUBLE),
    "Pi": ("pi", (), _DOUBLE),
    "Atan2": ("atan2", _TWO, _DOUBLE),
    **{
        name: (name.lower(), _ONE, _DOUBLE)
        for name in (
            "Sqrt",
            "Exp",
            "Sin",
            "Cos",
            "Tan",
            "Asin",
            "Acos",
            "Atan",
            "Degrees",
            "Radians",
        )
    },
    "ArrayContains": ("array_contains", _TWO, BOOLEAN),
    "CurrentTimestamp": ("now", (), DataTypes.TIMESTAMP_LTZ(3)),
    "Localtimestamp": ("local_now", (), DataTypes.TIMESTAMP(3)),
    "CurrentTime": ("time_of_day", (), DataTypes.TIME()),
    "Localtime": ("time_of_day", (), DataTypes.TIME()),
    "CurrentDate": ("today", (), DataTypes.DATE()),
    "Uuid": ("uuid", (), STRING),
    "Rand": ("rand", (), _DOUBLE),
}
"""For each class of sqlglot: the function, the attributes of the arguments, and the type (that of the first if None)."""
_NO_ARGUMENTS = ("ignore_nulls", "safe")
_PARTS = {
    **{name: name.upper() for name in ("Year", "Quarter", "Month", "Hour", "Minute", "Second")},
    "DayOfMonth": "DAY",
    "DayOfWeek": "DOW",
    "DayOfYear": "DOY",
    "Week": "WEEK",
}
_EXTRACTED = frozenset(_PARTS.values()).union(PARTS)
_WITH_PATTERN = ("DATE_FORMAT", "TO_DATE", "FROM_UNIXTIME", "UNIX_TIMESTAMP")
_FUNCTIONS = {
    "FROM_UNIXTIME": ("from_unixtime", STRING),
    "UNIX_TIMESTAMP": ("unix_timestamp", DataTypes.BIGINT()),
    "SPLIT_INDEX": ("split_index", STRING),
    "TO_TIMESTAMP": ("to_timestamp", DataTypes.TIMESTAMP(3)),
    "TO_TIMESTAMP_LTZ": ("to_timestamp_ltz", DataTypes.TIMESTAMP_LTZ(3)),
    "TO_DATE": ("to_date", DataTypes.DATE()),
    "DATE_FORMAT": ("date_format", STRING),
    "CHARACTER_LENGTH": ("length", INT),
    "REGEXP": ("regexp", BOOLEAN),
    **{f"SHA{bits}": (f"sha{bits}", STRING) for bits in (224, 256, 384, 512)},
    "BIN": ("bin_", STRING),
    "E": ("e", _DOUBLE),
    "CARDINALITY": ("cardinality", INT),
    "JSON_VALUE": ("json_value", STRING),
    "JSON_QUERY": ("json_query", STRING),
    "JSON_EXISTS": ("json_exists", BOOLEAN),
    "PROCTIME": ("proctime", DataTypes.TIMESTAMP_LTZ(3)),
    "NOW": ("now", DataTypes.TIMESTAMP_LTZ(3)),
    "BTRIM": ("trim", STRING),
}
_CASTS = {
    "FLOAT": "as_float",
    "DOUBLE": "as_double",
    "BOOLEAN": "as_boolean",
    "TIMESTAMP": "as_timestamp",
    "TIMESTAMP_LTZ": "as_instant",
    "BYTES": "as_bytes",
    "DATE": "as_date",
    "TIME": "as_time",
}
