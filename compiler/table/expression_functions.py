"""Functions that make expressions: `col`, `lit` and others, with PyFlink's names."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import checked
from opchain.compiler.table.expression import (
    Expression,
    TimePointUnit,
    function_of,
    function_of_values,
    sql_of,
    tree_of,
)
from opchain.compiler.table.expressions import parsed

if TYPE_CHECKING:
    from opchain.compiler.table.data_types import DataType
    from opchain.compiler.table.user_functions import UserDefinedScalarFunctionWrapper


def col(name: str) -> Expression:
    """A column; `col("*")` is every column."""
    return Expression.of_column(checked(name, str, "col", "the name"))


def lit(v: Any, data_type: DataType | None = None) -> Expression:
    """A literal. Without a type, an int is an INT or a BIGINT, and a float a DOUBLE."""
    made = Expression(tree_of(v))
    return made if data_type is None else made.cast(data_type)


def null_of(data_type: DataType) -> Expression:
    """NULL of a type."""
    return lit(None, data_type)


def call_sql(sql_expression: str) -> Expression:
    """An expression of SQL."""
    text = checked(sql_expression, str, "call_sql", "the expression")
    return Expression(parsed(text, "call_sql()"))


def call(f: str | UserDefinedScalarFunctionWrapper, *args: Any) -> Expression:
    """A call of a function: of SQL, of `create_temporary_function`, or one that `udf` returned."""
    if not isinstance(f, str):
        return f(*args)
    return function_of_values(f"{f}({{}})", args)


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Whether all predicates are true."""
    joined = partial(sql_of, "`0` AND `1`")
    return reduce(joined, predicates, joined(predicate0, predicate1))


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Whether one of the predicates is true."""
    joined = partial(sql_of, "`0` OR `1`")
    return reduce(joined, predicates, joined(predicate0, predicate1))


def not_(expression: Any) -> Expression:
    """TRUE for FALSE, FALSE for TRUE, and NULL for NULL."""
    return sql_of("NOT `0`", expression)


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression:
    """The one value if the condition is true, else the other."""
    return Expression(tree_of(condition)).then(if_true, if_false)


def coalesce(*args: Any) -> Expression:
    """The first value that is not NULL."""
    return function_of_values("COALESCE({})", args)


def concat(first: Any, *others: Any) -> Expression:
    """The texts, one after the other; NULL if one of them is NULL."""
    return function_of_values("CONCAT({})", (first, *others))


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression:
    """The texts that are not NULL, with a separator between them."""
    return function_of_values("CONCAT_WS({})", (separator, first, *others))


def array(head: Any, *tail: Any) -> Expression:
    """An array."""
    return function_of_values("ARRAY[{}]", (head, *tail))


def row(head: Any, *tail: Any) -> Expression:
    """A row."""
    return function_of_values("ROW({})", (head, *tail))


def map_(key: Any, value: Any, *tail: Any) -> Expression:
    """A map of keys and values."""
    return function_of_values("MAP[{}]", (key, value, *tail))


def pi() -> Expression:
    """The number pi."""
    return sql_of("PI()")


def e() -> Expression:
    """Euler's number."""
    return sql_of("E()")


def rand(seed: Any = None) -> Expression:
    """A random number from 0 to 1."""
    return function_of("RAND", seed)


def atan2(y: Any, x: Any) -> Expression:
    """The angle of a point."""
    return function_of("ATAN2", y, x)


def negative(v: Any) -> Expression:
    """The number with the other sign."""
    return -Expression(tree_of(v))


def log(v: Any, base: Any = None) -> Expression:
    """The logarithm, by default the natural one."""
    return Expression(tree_of(v)).log(base)


def uuid() -> Expression:
    """A random UUID."""
    return sql_of("UUID()")


def current_date() -> Expression:
    """Today."""
    return sql_of("CURRENT_DATE")


def current_timestamp() -> Expression:
    """The current time, as a TIMESTAMP_LTZ."""
    return sql_of("CURRENT_TIMESTAMP")


def local_timestamp() -> Expression:
    """The current time, as a TIMESTAMP."""
    return sql_of("LOCALTIMESTAMP()")


def to_date(date_str: Any, format: Any = None) -> Expression:  # noqa: A002 - PyFlink's name
    """The date of a text."""
    return function_of("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression:  # noqa: A002 - PyFlink's name
    """The TIMESTAMP of a text."""
    return function_of("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: Any) -> Expression:
    """The TIMESTAMP_LTZ of a number of seconds or milliseconds."""
    return function_of_values("TO_TIMESTAMP_LTZ({})", args)


def date_format(timestamp: Any, format: Any) -> Expression:  # noqa: A002 - PyFlink's name
    """A time as a text."""
    return function_of("DATE_FORMAT", timestamp, format)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression:  # noqa: A002 - PyFlink's name
    """The text of a number of seconds since 1970."""
    return function_of("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression:  # noqa: A002 - PyFlink's name
    """The seconds since 1970 of a text, or of now."""
    return function_of("UNIX_TIMESTAMP", date_str, format)


def timestamp_diff(
    time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any
) -> Expression:
    """The number of whole units from one time to another."""
    unit = checked(time_point_unit, TimePointUnit, "timestamp_diff", "the unit").name
    return sql_of(f"TIMESTAMPDIFF({unit}, `0`, `1`)", time_point1, time_point2)
