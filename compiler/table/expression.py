"""Expressions of the Table API. An expression is a tree of sqlglot, which the compiler of SQL reads."""

from __future__ import annotations

import functools
import math
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.compiler.dsl.argument_checks import at_call, checked, refused
from opchain.compiler.table.data_types import DataType
from opchain.compiler.table.expressions import parsed, sqlglot
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

_INSTEAD = (
    "write the query as SQL with sql_query(), which may aggregate bounded tables, or use the DataStream API with "
    "to_data_stream()"
)
_COMPOUND = ("Binary", "Unary", "In", "Between", "Predicate", "Alias")


class TimeIntervalUnit(Enum):
    """Units of `extract`, `floor` and `ceil`."""

    YEAR = 0
    YEAR_TO_MONTH = 1
    QUARTER = 2
    MONTH = 3
    WEEK = 4
    DAY = 5
    DAY_TO_HOUR = 6
    DAY_TO_MINUTE = 7
    DAY_TO_SECOND = 8
    HOUR = 9
    SECOND = 10
    HOUR_TO_MINUTE = 11
    HOUR_TO_SECOND = 12
    MINUTE = 13
    MINUTE_TO_SECOND = 14


class TimePointUnit(Enum):
    """Units of `timestamp_diff`."""

    YEAR = 0
    MONTH = 1
    DAY = 2
    HOUR = 3
    MINUTE = 4
    SECOND = 5
    QUARTER = 6
    WEEK = 7
    MILLISECOND = 8
    MICROSECOND = 9


@functools.cache
def _template(text: str) -> Any:
    return parsed(text, "an expression")


def sql_of(template: str, *operands: Any) -> Expression:
    """The expression of a SQL text, in which `0`, `1` and so on stand for the operands.

    >>> print(sql_of("`0` IS NULL", Expression.of_column("a") + 1))
    (a + 1) IS NULL
    """
    exp = sqlglot().exp
    whole = _template(template).copy()
    for each in list(whole.find_all(exp.Column)):
        if each.name.isdigit():
            each.replace(_enclosed(tree_of(operands[int(each.name)])))
    return Expression(whole)


def function_of(name: str, *operands: Any) -> Expression:
    """A call of a SQL function. Operands at the end that are None are left out."""
    count = len(operands)
    while count and operands[count - 1] is None:
        count -= 1
    return function_of_values(f"{name}({{}})", operands[:count])


def tree_of(value: Any) -> Any:
    """The tree of an expression, or of a literal.

    Raises:
        TypeError: The value is neither an expression nor of a class that literals have.
    """
    if isinstance(value, Expression):
        return value.tree.copy()
    for classes, make in _LITERALS:
        if isinstance(value, classes):
            return make(value)
    raise TypeError(
        f"{value!r} is neither an expression nor a literal; pass col('name'), a number, a text, a bool or None"
    )


def _tree_of_number(text: str) -> Any:
    exp = sqlglot().exp
    number = exp.Literal.number(text.removeprefix("-"))
    return exp.Neg(this=number) if text.startswith("-") else number


def _tree_of_float(value: float) -> Any:
    if not math.isfinite(value):
        return sql_of("CAST(`0` AS DOUBLE)", str(value)).tree
    return _tree_of_number(f"{value!r}" if "e" in f"{value!r}" else f"{value!r}e0")


def _tree_of_time(value: Any) -> Any:
    of = {datetime: "TIMESTAMP(6)", date: "DATE", time: "TIME"}[type(value)]
    return sql_of(f"CAST(`0` AS {of})", str(value)).tree


_LITERALS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (type(None), lambda _: sqlglot().exp.Null()),
    (bool, lambda value: sqlglot().exp.Boolean(this=value)),
    (str, lambda value: sqlglot().exp.Literal(this=value, is_string=True)),
    (int, lambda value: _tree_of_number(str(value))),
    (Decimal, lambda value: _tree_of_number(f"{value:f}")),
    (float, _tree_of_float),
    ((date, time), _tree_of_time),
    ((list, tuple), lambda values: function_of_values("ARRAY[{}]", values).tree),
)


def function_of_values(form: str, values: Any) -> Expression:
    """An expression with any number of operands, such as `ROW({})`."""
    return sql_of(form.format(", ".join(f"`{place}`" for place in range(len(values)))), *values)


def _enclosed(tree: Any) -> Any:
    """An operand, in parentheses if its text needs them."""
    exp = sqlglot().exp
    kinds = tuple(getattr(exp, name) for name in _COMPOUND)
    is_path = isinstance(tree, exp.Dot)
    return exp.Paren(this=tree) if isinstance(tree, kinds) and not is_path else tree


def _of_operand(template: str) -> property:
    def get(self: Expression) -> Expression:
        return sql_of(template, self)

    return property(get, doc=f"SQL: `{template.replace('`0`', 'x')}`.")


def _binary(template: str) -> Callable[[Expression, Any], Expression]:
    def apply(self: Expression, other: Any) -> Expression:
        return sql_of(template, self, other)

    return apply


def _interval(unit: str, count: int = 1) -> property:
    def get(self: Expression) -> Expression:
        exp = sqlglot().exp
        if not isinstance(self.tree, exp.Literal) or not self.tree.this.isdigit():
            raise GraphError(
                f"{self}: an interval is a whole number, such as lit(5).minutes; call_sql() takes other intervals"
            )
        number = exp.Literal.string(str(int(self.tree.this) * count))
        return Expression(exp.Interval(this=number, unit=exp.Var(this=unit)))

    return property(get, doc=f"An interval of a number of {unit.lower()}s.")


def _refused(name: str) -> property:
    def get(_self: Expression) -> Expression:
        raise refused(f"Expression.{name}", _INSTEAD)

    return property(get, doc="Is refused.")


class Expression:
    """A column, a literal, or a computation of these. Flink: Expression.

    >>> print(Expression.of_column("price") * 2 > 10)
    (price * 2) > 10
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # `==` makes an expression

    def __init__(self, tree: Any) -> None:
        self.tree: Any = tree

    @staticmethod
    def of_column(name: str) -> Expression:
        """A column by its name."""
        exp = sqlglot().exp
        if name == "*":
            return Expression(exp.Star())
        return Expression(exp.column(exp.to_identifier(name, quoted=not name.isidentifier())))

    def __str__(self) -> str:
        return str(self.tree.sql(dialect="flink"))

    __repr__ = __str__

    def __getattr__(self, name: str) -> Expression:
        """A field of a row: `col("address").city`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)

    __add__ = _binary("`0` + `1`")
    __radd__ = _binary("`1` + `0`")
    __sub__ = _binary("`0` - `1`")
    __rsub__ = _binary("`1` - `0`")
    __mul__ = _binary("`0` * `1`")
    __rmul__ = _binary("`1` * `0`")
    __truediv__ = _binary("`0` / `1`")
    __rtruediv__ = _binary("`1` / `0`")
    __mod__ = _binary("`0` % `1`")
    __rmod__ = _binary("`1` % `0`")
    __pow__ = _binary("POWER(`0`, `1`)")
    __rpow__ = _binary("POWER(`1`, `0`)")
    __lt__ = _binary("`0` < `1`")
    __le__ = _binary("`0` <= `1`")
    __gt__ = _binary("`0` > `1`")
    __ge__ = _binary("`0` >= `1`")
    __eq__ = _binary("`0` = `1`")  # type: ignore[assignment]  # an expression, no bool
    __ne__ = _binary("`0` <> `1`")  # type: ignore[assignment]
    __and__ = _binary("`0` AND `1`")
    __rand__ = _binary("`1` AND `0`")
    __or__ = _binary("`0` OR `1`")
    __ror__ = _binary("`1` OR `0`")

    def __neg__(self) -> Expression:
        return sql_of("- `0`", self)

    def __invert__(self) -> Expression:
        return sql_of("`0` IS NOT TRUE", self)

    def __abs__(self) -> Expression:
        return sql_of("ABS(`0`)", self)

    def __getitem__(self, index: Any) -> Expression:
        return self.at(index)

    # Conditions

    is_null = _of_operand("`0` IS NULL")
    is_not_null = _of_operand("`0` IS NOT NULL")
    is_true = _of_operand("`0` IS TRUE")
    is_false = _of_operand("`0` IS FALSE")
    is_not_true = _of_operand("`0` IS NOT TRUE")
    is_not_false = _of_operand("`0` IS NOT FALSE")

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Whether the value is at least the one bound and at most the other."""
        return sql_of("`0` BETWEEN `1` AND `2`", self, lower_bound, upper_bound)

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Whether the value is outside of the bounds."""
        return sql_of("`0` NOT BETWEEN `1` AND `2`", self, lower_bound, upper_bound)

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression:
        """Whether the value equals one of the elements."""
        from opchain.compiler.table.table import Table  # noqa: PLC0415 - a table has expressions

        if isinstance(first_element_or_table, Table):
            raise refused("Expression.in_ of a table", _INSTEAD)
        elements = (first_element_or_table, *remaining_elements)
        places = ", ".join(f"`{place}`" for place in range(1, len(elements) + 1))
        return sql_of(f"`0` IN ({places})", self, *elements)

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """The one value if the condition is true, else the other."""
        return sql_of("CASE WHEN `0` THEN `1` ELSE `2` END", self, if_true, if_false)

    def if_null(self, null_replacement: Any) -> Expression:
        """The value, or the replacement of NULL."""
        return function_of("COALESCE", self, null_replacement)

    def like(self, pattern: Any = None, escape: Any = None) -> Expression:
        """Whether the text has the pattern of LIKE."""
        if escape is not None:
            return sql_of("`0` LIKE `1` ESCAPE `2`", self, pattern, escape)
        return sql_of("`0` LIKE `1`", self, pattern)

    def similar(self, pattern: Any = None) -> Expression:
        """Whether the text has the pattern of SIMILAR TO."""
        return sql_of("`0` SIMILAR TO `1`", self, pattern)

    def starts_with(self, start_expr: Any) -> Expression:
        """Whether the text starts with another."""
        return function_of("STARTSWITH", self, start_expr)

    def ends_with(self, end_expr: Any) -> Expression:
        """Whether the text ends with another."""
        return function_of("ENDSWITH", self, end_expr)

    def regexp(self, regex: Any) -> Expression:
        """Whether a part of the text matches."""
        return function_of("REGEXP", self, regex)

    # Names, types and parts

    def alias(self, name: str, *extra_names: str) -> Expression:
        """The expression as a column of this name. A call of a table function has a name for each of its columns."""
        exp = sqlglot().exp
        if extra_names:
            if not isinstance(self.tree, exp.Anonymous):
                raise refused("Expression.alias with several names", _INSTEAD)
            names = [exp.to_identifier(each, quoted=True) for each in (name, *extra_names)]
            return Expression(exp.Aliases(this=self.tree.copy(), expressions=names))
        tree = self.tree.this if isinstance(self.tree, exp.Alias) else self.tree
        quoted = exp.to_identifier(checked(name, str, "Expression.alias", "the name"), quoted=True)
        return Expression(exp.Alias(this=tree.copy(), alias=quoted))

    def cast(self, data_type: DataType) -> Expression:
        """The value as another type."""
        of = checked(data_type, DataType, "Expression.cast", "the type")
        return sql_of(f"CAST(`0` AS {of.nullable()})", self)

    def try_cast(self, data_type: DataType) -> Expression:
        """The value as another type, or NULL if it cannot be converted."""
        of = checked(data_type, DataType, "Expression.try_cast", "the type")
        return sql_of(f"TRY_CAST(`0` AS {of.nullable()})", self)

    def get(self, name_or_index: str | int) -> Expression:
        """A field of a row, by its name or number."""
        exp = sqlglot().exp
        field = checked(name_or_index, (str, int), "Expression.get", "the field")
        key = (
            exp.to_identifier(field, quoted=not field.isidentifier())
            if isinstance(field, str)
            else exp.Literal.number(field)
        )
        return Expression(exp.Dot(this=_enclosed(self.tree.copy()), expression=key))

    def at(self, index: Any) -> Expression:
        """An item of an array, counted from 1, or the value of a key of a map."""
        return sql_of("`0`[`1`]", self, index)

    # Aggregates and order

    sum = _of_operand("SUM(`0`)")
    min = _of_operand("MIN(`0`)")
    max = _of_operand("MAX(`0`)")
    count = _of_operand("COUNT(`0`)")
    avg = _of_operand("AVG(`0`)")
    stddev_pop = _of_operand("STDDEV_POP(`0`)")
    stddev_samp = _of_operand("STDDEV_SAMP(`0`)")
    var_pop = _of_operand("VAR_POP(`0`)")
    var_samp = _of_operand("VAR_SAMP(`0`)")
    sum0 = _of_operand("COALESCE(SUM(`0`), 0)")
    first_value = _of_operand("FIRST_VALUE(`0`)")
    last_value = _of_operand("LAST_VALUE(`0`)")
    array_agg = _of_operand("ARRAY_AGG(`0`)")
    collect = _of_operand("COLLECT(`0`)")

    def list_agg(self, separator: str | None = None) -> Expression:
        """The texts as one, with a separator between them; by default a comma."""
        return function_of("LISTAGG", self, separator)

    @property
    def distinct(self) -> Expression:
        """The aggregate over different values: `col("a").count.distinct`.

        Raises:
            GraphError: It is no aggregate.
        """
        exp = sqlglot().exp
        if not isinstance(self.tree, exp.AggFunc):
            raise GraphError(
                f"{self}: distinct follows an aggregate, as in col('a').count.distinct"
            )
        tree = self.tree.copy()
        tree.set("this", exp.Distinct(expressions=[tree.this]))
        return Expression(tree)

    @property
    def asc(self) -> Expression:
        """Ascending order, for `Table.order_by`. NULL is last."""
        return Expression(sqlglot().exp.Ordered(this=self.tree, desc=False, nulls_first=False))

    @property
    def desc(self) -> Expression:
        """Descending order, for `Table.order_by`. NULL is first."""
        return Expression(sqlglot().exp.Ordered(this=self.tree, desc=True, nulls_first=True))

    # Windows, and columns of from_data_stream

    start = _of_operand("WINDOW_START(`0`)")
    end = _of_operand("WINDOW_END(`0`)")
    rowtime = _of_operand("ROWTIME(`0`)")
    proctime = _of_operand("PROCTIME(`0`)")

    # Numbers

    abs = _of_operand("ABS(`0`)")
    sign = _of_operand("SIGN(`0`)")
    exp = _of_operand("EXP(`0`)")
    ln = _of_operand("LN(`0`)")
    log10 = _of_operand("LOG10(`0`)")
    log2 = _of_operand("LOG2(`0`)")
    sqrt = _of_operand("SQRT(`0`)")
    sin = _of_operand("SIN(`0`)")
    cos = _of_operand("COS(`0`)")
    tan = _of_operand("TAN(`0`)")
    asin = _of_operand("ASIN(`0`)")
    acos = _of_operand("ACOS(`0`)")
    atan = _of_operand("ATAN(`0`)")
    degrees = _of_operand("DEGREES(`0`)")
    radians = _of_operand("RADIANS(`0`)")
    bin = _of_operand("BIN(`0`)")
    hex = _of_operand("HEX(`0`)")

    def log(self, base: Any = None) -> Expression:
        """The logarithm, by default the natural one."""
        return sql_of("LN(`0`)", self) if base is None else function_of("LOG", base, self)

    def round(self, places: Any) -> Expression:
        """The number, rounded to a number of places."""
        return function_of("ROUND", self, places)

    def truncate(self, n: Any = 0) -> Expression:
        """The number, cut to a number of places."""
        return function_of("TRUNCATE", self, n)

    # Texts

    char_length = _of_operand("CHAR_LENGTH(`0`)")
    upper_case = _of_operand("UPPER(`0`)")
    lower_case = _of_operand("LOWER(`0`)")
    init_cap = _of_operand("INITCAP(`0`)")
    reverse = _of_operand("REVERSE(`0`)")
    ascii = _of_operand("ASCII(`0`)")
    chr = _of_operand("CHR(`0`)")
    from_base64 = _of_operand("FROM_BASE64(`0`)")
    to_base64 = _of_operand("TO_BASE64(`0`)")
    md5 = _of_operand("MD5(`0`)")
    sha1 = _of_operand("SHA1(`0`)")
    sha224 = _of_operand("SHA224(`0`)")
    sha256 = _of_operand("SHA256(`0`)")
    sha384 = _of_operand("SHA384(`0`)")
    sha512 = _of_operand("SHA512(`0`)")

    def concat(self, other: Any) -> Expression:
        """This text and another."""
        return function_of("CONCAT", self, other)

    def substring(self, begin_index: Any, length: Any = None) -> Expression:
        """The part of the text from an index, counted from 1."""
        return function_of("SUBSTRING", self, begin_index, length)

    substr = substring

    def trim(self, character: Any = None) -> Expression:
        """The text without blanks, or the characters of a text, at both ends."""
        return self._trimmed("BOTH", character)

    def trim_leading(self, character: Any = None) -> Expression:
        """The text without blanks, or the characters of a text, at its start."""
        return self._trimmed("LEADING", character)

    def trim_trailing(self, character: Any = None) -> Expression:
        """The text without blanks, or the characters of a text, at its end."""
        return self._trimmed("TRAILING", character)

    def _trimmed(self, side: str, character: Any) -> Expression:
        return sql_of(f"TRIM({side} `1` FROM `0`)", self, " " if character is None else character)

    def ltrim(self, trim_str: Any = None) -> Expression:
        """As `trim_leading`."""
        return self.trim_leading(trim_str)

    def rtrim(self, trim_str: Any = None) -> Expression:
        """As `trim_trailing`."""
        return self.trim_trailing(trim_str)

    def btrim(self, trim_str: Any = None) -> Expression:
        """As `trim`."""
        return self.trim(trim_str)

    def replace(self, search: Any = None, replacement: Any = None) -> Expression:
        """The text with a part replaced."""
        return function_of("REPLACE", self, search, replacement)

    def position(self, haystack: Any = None) -> Expression:
        """The place of this text in another, counted from 1, or 0."""
        return sql_of("POSITION(`0` IN `1`)", self, haystack)

    def instr(self, s: Any) -> Expression:
        """The place of another text in this one, counted from 1, or 0."""
        return function_of("INSTR", self, s)

    def locate(self, s: Any, pos: Any = None) -> Expression:
        """The place of this text in another, from a place on."""
        return function_of("LOCATE", self, s, pos)

    def left(self, length: Any) -> Expression:
        """The first characters."""
        return function_of("LEFT", self, length)

    def right(self, length: Any) -> Expression:
        """The last characters."""
        return function_of("RIGHT", self, length)

    def lpad(self, length: Any, pad: Any) -> Expression:
        """The text, filled on the left to a length."""
        return function_of("LPAD", self, length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression:
        """The text, filled on the right to a length."""
        return function_of("RPAD", self, length, pad)

    def repeat(self, n: Any) -> Expression:
        """The text several times."""
        return function_of("REPEAT", self, n)

    def split_index(self, separator: Any, index: Any) -> Expression:
        """A part between separators, counted from 0."""
        return function_of("SPLIT_INDEX", self, separator, index)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression:
        """The text with the parts that match replaced."""
        return function_of("REGEXP_REPLACE", self, regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression:
        """The part that matches, or a group of it."""
        return function_of("REGEXP_EXTRACT", self, regex, extract_index)

    def is_json(self, json_type: Any = None) -> Expression:
        """Whether the text is JSON."""
        if json_type is not None:
            raise refused("Expression.is_json of a type", "call_sql('x IS JSON OBJECT')")
        return sql_of("`0` IS JSON", self)

    def json_exists(self, path: str, on_error: Any = None) -> Expression:
        """Whether the JSON has something at a path."""
        if on_error is not None:
            raise refused("Expression.json_exists with on_error", _INSTEAD)
        return function_of("JSON_EXISTS", self, path)

    def json_value(
        self,
        path: str,
        returning_type: DataType | None = None,
        on_empty: Any = None,
        default_on_empty: Any = None,
        on_error: Any = None,
        default_on_error: Any = None,
    ) -> Expression:
        """The value at a path of the JSON, as a text or another type."""
        if any((on_empty, default_on_empty, on_error, default_on_error)):
            raise refused("Expression.json_value with on_empty or on_error", _INSTEAD)
        made = function_of("JSON_VALUE", self, path)
        return made if returning_type is None else made.cast(returning_type)

    # Times

    to_date = _of_operand("CAST(`0` AS DATE)")
    to_time = _of_operand("CAST(`0` AS TIME)")
    to_timestamp = _of_operand("CAST(`0` AS TIMESTAMP(3))")
    year = years = _interval("YEAR")
    quarter = quarters = _interval("MONTH", 3)
    month = months = _interval("MONTH")
    week = weeks = _interval("DAY", 7)
    day = days = _interval("DAY")
    hour = hours = _interval("HOUR")
    minute = minutes = _interval("MINUTE")
    second = seconds = _interval("SECOND")
    milli = millis = _interval("MILLISECOND")

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """A part of a time."""
        return sql_of(f"EXTRACT({_unit(time_interval_unit, 'extract')} FROM `0`)", self)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The number or time, rounded down."""
        if time_interval_unit is None:
            return function_of("FLOOR", self)
        return sql_of(f"FLOOR(`0` TO {_unit(time_interval_unit, 'floor')})", self)

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The number or time, rounded up."""
        if time_interval_unit is None:
            return function_of("CEIL", self)
        return sql_of(f"CEIL(`0` TO {_unit(time_interval_unit, 'ceil')})", self)

    # Collections

    cardinality = _of_operand("CARDINALITY(`0`)")
    element = _of_operand("ELEMENT(`0`)")

    def array_contains(self, needle: Any) -> Expression:
        """Whether the array has the item."""
        return function_of("ARRAY_CONTAINS", self, needle)


def _unit(unit: TimeIntervalUnit, call: str) -> str:
    name: str = checked(unit, TimeIntervalUnit, f"Expression.{call}", "the unit").name
    if "_" in name:
        raise GraphError(
            f"{at_call(f'Expression.{call}')}: {name} is an interval of several units; pass one unit, such as "
            f"TimeIntervalUnit.{name.split('_', maxsplit=1)[0]}"
        )
    return name


for _name in (
    *("percentile", "as_argument", "over"),
    *("cot", "sinh", "cosh", "tanh", "unhex", "translate", "overlay", "regexp_count", "elt"),
    *("regexp_extract_all", "regexp_instr", "regexp_substr", "decode", "encode", "url_decode"),
    *("url_encode", "inet_aton", "inet_ntoa", "parse_url", "printf", "str_to_map", "sha2"),
    *("flatten", "array_append", "array_distinct", "array_position", "array_prepend"),
    *("array_remove", "array_reverse", "array_slice", "array_sort", "array_union"),
    *("array_concat", "array_max", "array_join", "array_min", "array_except", "array_intersect"),
    *("split", "map_keys", "map_union", "map_values", "map_entries", "json_query"),
    *("json_quote", "json_unquote", "object_update", "bitmap_and", "bitmap_andnot", "bitmap_or"),
    *("bitmap_and_agg", "bitmap_and_cardinality_agg", "bitmap_build", "bitmap_build_agg"),
    *("bitmap_build_cardinality_agg", "bitmap_cardinality", "bitmap_from_bytes"),
    *("bitmap_or_agg", "bitmap_or_cardinality_agg", "bitmap_to_array", "bitmap_to_bytes"),
    *("bitmap_to_string", "bitmap_xor", "bitmap_xor_agg", "bitmap_xor_cardinality_agg"),
):
    setattr(Expression, _name, _refused(_name))
