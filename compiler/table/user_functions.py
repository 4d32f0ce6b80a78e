"""`udf` and `udtf`: scalar and table functions of users for SQL and the Table API, their calls in a query, and the names that SQL has taken."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call
from opchain.compiler.table.connectors.row_types import type_information_of
from opchain.compiler.table.data_types import DataType, DataTypes, RowField, RowType, data_type_of
from opchain.compiler.table.expression import Expression, tree_of
from opchain.compiler.table.expressions import Typed, cast, sqlglot
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.callables import name_of
from opchain.runtime.functions.sql import RowExpression
from opchain.runtime.functions.user_defined_functions import (
    DelegatingScalarFunction,
    RowsOfTableFunction,
    ScalarFunction,
    UserCall,
    UserDefinedFunction,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FUNCTION = "function"
_UNNESTED = "unnested"
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")


class UserDefinedScalarFunctionWrapper:
    """A scalar function with its types, which `udf` returns. A call makes an expression."""

    _made_by = "udf"

    def __init__(
        self,
        func: Any,
        input_types: Any,
        result_type: DataType | str,
        func_type: str,
        deterministic: bool | None,
        name: str | None,
    ) -> None:
        where = at_call(self._made_by)
        _check_function(func, func_type, where)
        self.function: ScalarFunction = (
            func if isinstance(func, ScalarFunction) else DelegatingScalarFunction(func)
        )
        self.name = name or name_of(func)
        self.result_type = _type_of(result_type, where)
        self.input_types = _types_of(input_types, where)
        own = self.function.is_deterministic()
        if deterministic is not None and func is self.function and deterministic != own:
            raise ValueError(
                f"{where}: deterministic is {deterministic}, and is_deterministic() of {self.name} returns {own}"
            )
        self.is_deterministic = own if deterministic is None else deterministic

    def __call__(self, *args: Any) -> Expression:
        """A call with columns, expressions or literals."""
        exp = sqlglot().exp
        tree = exp.Anonymous(this=self.name, expressions=[tree_of(each) for each in args])
        return Expression(called(tree, self))

    def of_row(self) -> Any:
        """The tree of a call with the whole row, for `Table.map`."""
        exp = sqlglot().exp
        return called(exp.Anonymous(this=self.name, expressions=[exp.Star()]), self)

    def __deepcopy__(self, _: Any) -> UserDefinedScalarFunctionWrapper:
        return self  # trees are copied, and their functions are not


class UserDefinedTableFunctionWrapper(UserDefinedScalarFunctionWrapper):
    """A table function with its types, which `udtf` returns. To the compiler, its result is an array of rows."""

    _made_by = "udtf"

    def __init__(
        self,
        func: Any,
        input_types: Any,
        result_types: Any,
        deterministic: bool | None,
        name: str | None,
    ) -> None:
        where = at_call(self._made_by)
        _check_function(func, "general", where)
        is_text = isinstance(result_types, str)
        given = data_type_of(result_types) if is_text else result_types
        if is_text and isinstance(given, RowType):
            row = given
        else:
            types = _types_of(given, where) or [_type_of(given, where)]
            row = DataTypes.ROW([RowField(f"f{n}", each) for n, each in enumerate(types)])
        rows = RowsOfTableFunction(func, len(row.fields))
        of = DataTypes.ARRAY(row)
        super().__init__(rows, input_types, of, "general", deterministic, name or name_of(func))
        self.fields = row.fields

    def alias(self, *alias_names: str) -> Expression:
        """A call with the whole row, and names for the columns of the results."""
        return Expression(self.of_row()).alias(*alias_names)


def table_call(
    func: Any, functions: Mapping[str, UserDefinedScalarFunctionWrapper], where: str
) -> tuple[Any, UserDefinedTableFunctionWrapper, list[str]]:
    """The tree of a call of a table function, the function, and the names that `alias` gave to its columns.

    Raises:
        GraphError: It is not a call of a table function, or there are more or fewer names than columns.
    """
    exp = sqlglot().exp
    tree = func.tree.copy() if isinstance(func, Expression) else func.of_row()
    names = [tree.alias] if isinstance(tree, exp.Alias) else []
    if isinstance(tree, exp.Aliases):
        names = [each.name for each in tree.expressions]
    tree = with_functions(tree.this if names else tree, functions)
    function = function_of(tree)
    if not isinstance(function, UserDefinedTableFunctionWrapper):
        raise GraphError(f"{where} takes a call of a function that udtf() returned, and got {func}")
    if names and len(names) != len(function.fields):
        raise GraphError(
            f"{where}: {function.name} has {len(function.fields)} columns, and alias() gives {len(names)} names; "
            "name each column"
        )
    tree.meta[_UNNESTED] = True
    return tree, function, names


def _check_function(func: Any, func_type: str, where: str) -> None:
    if func_type not in ("general", "pandas"):
        raise ValueError(f"{where}: func_type is {func_type!r}; it must be 'general'")
    if func_type == "pandas":
        raise UnsupportedFeatureError(
            f"{where}: func_type='pandas' is not supported; write a function of single values, or use map_batches() of "
            "the DataStream API"
        )
    if inspect.isclass(func) or not (isinstance(func, UserDefinedFunction) or callable(func)):
        raise TypeError(
            f"{where} got {func!r}; it takes a function or an object of a ScalarFunction"
        )
    if inspect.iscoroutinefunction(getattr(func, "eval", func)):
        raise UnsupportedFeatureError(
            f"{where}: async functions are not supported; use AsyncDataStream of the DataStream API"
        )


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A scalar function of Python, for SQL and the Table API. Without `f`, a decorator.

    Args:
        f: The function, or an object of a ScalarFunction. It gets the values of its arguments; NULL is None.
        input_types: The types of the arguments. They are not needed.
        result_type: The type of the results, such as DataTypes.INT() or "INT".
        deterministic: Whether equal arguments give equal results. Default: True, or as the ScalarFunction says.
        name: The name in plans and errors.
        func_type: Only "general" is supported.

    Raises:
        TypeError: There is no result type, or `f` is not a function.
        UnsupportedFeatureError: The function is async or takes pandas Series.
    """
    made = partial(
        UserDefinedScalarFunctionWrapper,
        input_types=input_types,
        result_type=result_type,  # type: ignore[arg-type]  # checked there
        func_type=func_type,
        deterministic=deterministic,
        name=name,
    )
    return made if f is None else made(f)


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """A table function of Python: it returns or yields any number of rows. Without `f`, a decorator.

    Args:
        f: The function, or an object of a TableFunction. A row is a tuple, a Row or, with one column, a value.
        input_types: The types of the arguments. They are not needed.
        result_types: The types of the columns f0, f1, ..., or a text such as "ROW<a INT, b STRING>" with their names.
        deterministic: Whether equal arguments give equal results. Default: True, or as the TableFunction says.
        name: The name in plans and errors.

    Raises:
        TypeError: There are no result types, or `f` is not a function.
    """
    made = partial(
        UserDefinedTableFunctionWrapper,
        input_types=input_types,
        result_types=result_types,
        deterministic=deterministic,
        name=name,
    )
    return made if f is None else made(f)


def _type_of(of: Any, where: str) -> DataType:
    if isinstance(of, str):
        return data_type_of(of)
    if not isinstance(of, DataType):
        raise TypeError(
            f"{where}: the type is {of!r}; pass a type such as DataTypes.INT() or 'INT' as result_type"
        )
    return of


def _types_of(given: Any, where: str) -> list[DataType] | None:
    if given is None:
        return None
    if isinstance(given, RowType):
        return [each.data_type for each in given.fields]
    each_of = [given] if isinstance(given, (DataType, str)) else given
    return [_type_of(each, where) for each in each_of]


def called(tree: Any, function: UserDefinedScalarFunctionWrapper) -> Any:
    """The tree of a call, as a call of this function."""
    tree.meta[_FUNCTION] = function
    return tree


def function_of(tree: Any) -> UserDefinedScalarFunctionWrapper | None:
    """The function that a tree calls; None if it is none of the user's."""
    found: UserDefinedScalarFunctionWrapper | None = tree.meta.get(_FUNCTION)
    return found


def with_functions(tree: Any, functions: Mapping[str, UserDefinedScalarFunctionWrapper]) -> Any:
    """The same tree, in which calls by name are calls of the functions that have these names."""
    for each in tree.find_all(sqlglot().exp.Anonymous):
        function = functions.get(each.name.lower())
        if function is not None and function_of(each) is None:
            called(each, function)
    return tree


class UserCalls:
    """The calls of functions that one operator makes. Their results follow the values of its rows. Flink: PythonCalc.

    As in Flink, all calls are made for each row, also in a branch of CASE that is not taken.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._places: dict[Any, int] = {}
        self.made: list[UserCall] = []

    def takes(self, tree: Any) -> bool:
        """Whether a tree is a call of a user's function."""
        return function_of(tree) is not None

    def result(self, tree: Any, arguments: Sequence[Typed], where: str) -> Typed:
        """The result of a call. Equal calls of a deterministic function are one call.

        Raises:
            GraphError: The function takes another number of arguments.
        """
        function = function_of(tree)
        assert function is not None
        if isinstance(function, UserDefinedTableFunctionWrapper) and _UNNESTED not in tree.meta:
            raise GraphError(
                f"{where}: {tree.name} is a table function; call it in flat_map() or join_lateral()"
            )
        operands = ", ".join(each.sql(dialect="flink") for each in tree.expressions)
        shown = f"{tree.name}({operands})"
        texts = [each.text for each in _fitted(function, arguments, f"{where}: {shown}")]
        key = (id(function), *texts, None if function.is_deterministic else id(tree))
        if key not in self._places:
            self._places[key] = self._width + len(self.made)
            call = UserCall(
                function.function,
                RowExpression(f"({''.join(f'{text}, ' for text in texts)})", shown),
                type_information_of(function.result_type),
                shown,
                allows_null=function.result_type.is_nullable,
            )
            self.made.append(call)
        return _rounded(Typed(f"row[{self._places[key]}]", function.result_type))


def _rounded(result: Typed) -> Typed:
    """A result that is a DECIMAL, with the digits of its type."""
    of = result.data_type
    if of.name != "DECIMAL":
        return result
    return Typed(f"as_decimal({result.text}, {of.parameters[0]}, {of.parameters[1]})", of)


def _fitted(
    function: UserDefinedScalarFunctionWrapper, arguments: Sequence[Typed], where: str
) -> Sequence[Typed]:
    """The arguments; numbers have the types of the parameters."""
    wanted = function.input_types
    if wanted is None:
        return arguments
    if len(wanted) != len(arguments):
        raise GraphError(
            f"{where} has {len(arguments)} arguments, and input_types of the function has {len(wanted)}"
        )
    return [
        cast(each, of) if {each.data_type.name, of.name} <= set(_NUMBERS) else each
        for each, of in zip(arguments, wanted, strict=True)
    ]


BUILT_IN_FUNCTIONS = frozenset(
    """
    ABS ACOS ARRAY ARRAY_AGG ARRAY_APPEND ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT
    ARRAY_JOIN ARRAY_MAX ARRAY_MIN ARRAY_POSITION ARRAY_PREPEND ARRAY_REMOVE ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT
    ARRAY_UNION ASCII ASIN ATAN ATAN2 AVG BIN BITMAP_AND BITMAP_ANDNOT BITMAP_AND_AGG BITMAP_AND_CARDINALITY_AGG
    BITMAP_BUILD BITMAP_BUILD_AGG BITMAP_BUILD_CARDINALITY_AGG BITMAP_CARDINALITY BITMAP_FROM_BYTES BITMAP_OR
    BITMAP_OR_AGG BITMAP_OR_CARDINALITY_AGG BITMAP_TO_ARRAY BITMAP_TO_BYTES BITMAP_TO_STRING BITMAP_XOR BITMAP_XOR_AGG
    BITMAP_XOR_CARDINALITY_AGG BTRIM CARDINALITY CAST CEIL CEILING CHARACTER_LENGTH CHAR_LENGTH CHR COALESCE COLLECT
    CONCAT CONCAT_WS CONVERT_TZ COS COSH COT COUNT CUME_DIST CUMULATE CURRENT_DATABASE CURRENT_DATE
    CURRENT_ROW_TIMESTAMP CURRENT_TIME CURRENT_TIMESTAMP CURRENT_WATERMARK DATE_FORMAT DAYOFMONTH DAYOFWEEK DAYOFYEAR
    DECODE DEGREES DENSE_RANK E ELEMENT ELT ENCODE ENDSWITH EXP EXTRACT FIRST_VALUE FLOOR FROM_BASE64 FROM_UNIXTIME
    GREATEST GROUPING GROUPING_ID GROUP_ID HEX HOP HOUR IF IFNULL INET_ATON INET_NTOA INITCAP INSTR IS_ALPHA IS_DECIMAL
    IS_DIGIT JSON JSON_ARRAY JSON_ARRAYAGG JSON_EXISTS JSON_OBJECT JSON_OBJECTAGG JSON_QUERY JSON_QUOTE JSON_STRING
    JSON_UNQUOTE JSON_VALUE LAG LAST_VALUE LEAD LEAST LEFT LISTAGG LN LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2
    LOWER LPAD LTRIM MAP MAP_ENTRIES MAP_FROM_ARRAYS MAP_KEYS MAP_UNION MAP_VALUES MAX MD5 MIN MINUTE MOD MONTH NOW
    NTILE NULLIF OBJECT_OF OBJECT_UPDATE OVERLAY PARSE_JSON PARSE_URL PERCENTILE PERCENT_RANK PI POSITION POWER PRINTF
    PROCTIME QUARTER RADIANS RAND RANDOM RAND_INTEGER RANK REGEXP REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL
    REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR REPEAT REPLACE REVERSE RIGHT ROUND ROW ROW_NUMBER RPAD RTRIM SECOND
    SESSION SHA1 SHA2 SHA224 SHA256 SHA384 SHA512 SIGN SIN SINH SOURCE_WATERMARK SPLIT SPLIT_INDEX SQRT STARTSWITH
    STDDEV STDDEV_POP STDDEV_SAMP STR_TO_MAP SUBSTR SUBSTRING SUM TAN TANH TIMESTAMPADD TIMESTAMPDIFF TO_BASE64 TO_DATE
    TO_TIMESTAMP TO_TIMESTAMP_LTZ TRANSLATE TRIM TRUNCATE TRY_CAST TRY_PARSE_JSON TUMBLE TYPEOF UNHEX UNIX_TIMESTAMP
    UPPER URL_DECODE URL_ENCODE UUID VARIANCE VAR_POP VAR_SAMP WEEK YEAR
    """.split()  # noqa: SIM905 - one name for each line would be long
)
"""The names of all functions of Flink's SQL, supported or not. Flink: FlinkSqlOperatorTable."""
