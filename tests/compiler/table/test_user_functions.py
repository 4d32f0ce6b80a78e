"""Scalar functions of users in SQL and the Table API; expectations about values are PyFlink 2.3's."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from opchain.common import Configuration, Row
from opchain.compiler.table.user_functions import BUILT_IN_FUNCTIONS
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.table import DataTypes, StreamTableEnvironment, Table
from opchain.table.expressions import call, call_sql, col, lit
from opchain.table.udf import FunctionContext, ScalarFunction, udf

CALLS: list[Any] = []
"""What functions were opened and called with."""


def note(call: Any) -> None:
    CALLS.append(call)


@udf(result_type=DataTypes.INT())  # type: ignore[untyped-decorator]
def inc(x: int | None) -> int | None:
    note(x)
    return None if x is None else x + 1


class Multiplied(ScalarFunction):
    """Multiplies by a number that `open` sets."""

    def __init__(self, by: int) -> None:
        self.by = by

    def open(self, function_context: FunctionContext) -> None:
        CALLS.append(f"open {function_context.get_index_of_this_subtask()}")
        self.factor = self.by

    def eval(self, x: int) -> int:
        return x * self.factor

    def close(self) -> None:
        CALLS.append("close")


class Random(ScalarFunction):
    """A function that is called each time."""

    def is_deterministic(self) -> bool:
        return False

    def eval(self) -> int:
        CALLS.append("random")
        return 4


def returning(value: Any, of: Any) -> Any:
    return udf(lambda _: value, result_type=of)


ROW = DataTypes.ROW(
    [DataTypes.FIELD("p", DataTypes.INT()), DataTypes.FIELD("q", DataTypes.STRING())]
)


@pytest.fixture(params=["interpreted", "generated"])
def tables(request: pytest.FixtureRequest) -> StreamTableEnvironment:
    CALLS.clear()
    configuration = Configuration().set_string("execution.target", "local")
    configuration.set_string("opchain.codegen.enabled", str(request.param == "generated").lower())
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    made = StreamTableEnvironment.create(env)
    fields = [DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("s", DataTypes.STRING())]
    made.create_temporary_view(
        "t", made.from_elements([(7, "x"), (-7, None)], DataTypes.ROW(fields))
    )
    made.create_temporary_function("inc2", inc)
    made.create_temporary_system_function("Mult3", udf(Multiplied(3), result_type="BIGINT"))
    return made


@pytest.fixture
def table(tables: StreamTableEnvironment) -> Table:
    return tables.from_path("t")


def rows_of(table: Table) -> list[list[Any]]:
    with table.execute().collect() as rows:
        return [list(each) for each in rows]


def test_a_udf_can_be_called_in_expressions(table: Table) -> None:
    found = table.select(inc(col("a")), inc(inc(table.a)).alias("z"), inc(col("a")) + 1)
    assert [(name, str(of)) for name, of in found.columns] == [
        *(("_c0", "INT"), ("z", "INT"), ("_c2", "INT"))
    ]
    assert rows_of(found) == [[8, 9, 9], [-6, -5, -5]]
    by_name = table.select(call("INC2", col("a")), call_sql("inc2(a)"), call(inc, lit(1)))
    assert rows_of(by_name) == [[8, 8, 2], [-6, -6, 2]]


def test_a_udf_gets_python_values_and_none_for_null(table: Table) -> None:
    shown = udf(lambda *values: repr(values), result_type=DataTypes.STRING())
    found = table.select(shown(col("a"), col("s"), 1.5, True), shown())
    assert rows_of(found) == [["(7, 'x', 1.5, True)", "()"], ["(-7, None, 1.5, True)", "()"]]


def test_a_udf_can_be_called_in_sql(tables: StreamTableEnvironment) -> None:
    query = "SELECT inc2(a) AS x, Mult3(a) FROM t WHERE mult3(a) > 0"
    assert rows_of(tables.sql_query(query)) == [[8, 21]]
    assert rows_of(tables.sql_query("SELECT INC2(1) + 1")) == [[3]]
    case = "SELECT CASE WHEN a > 0 THEN inc2(a) ELSE 0 END FROM t"
    assert rows_of(tables.sql_query(case)) == [[8], [0]]


def test_a_udf_may_have_a_name_that_sqlglot_knows(tables: StreamTableEnvironment) -> None:
    tables.create_temporary_function("date_add", udf(lambda x, y: x + y, result_type="INT"))
    assert rows_of(tables.sql_query("SELECT date_add(a, 1) FROM t")) == [[8], [-6]]
    tables.create_temporary_system_function("upper", udf(lambda _: "own", result_type="STRING"))
    assert rows_of(tables.sql_query("SELECT upper(s) FROM t")) == [["own"], ["own"]]
    assert tables.drop_temporary_system_function("upper")
    assert rows_of(tables.sql_query("SELECT upper(s) FROM t")) == [["X"], [None]]


def test_only_a_temporary_system_function_replaces_a_built_in_function(
    tables: StreamTableEnvironment,
) -> None:
    tables.create_temporary_function("upper", returning("own", "STRING"))
    tables.create_temporary_function("length", returning("own", "STRING"))  # Flink's is CHAR_LENGTH
    query = "SELECT UPPER(s), upper(s), length(s) FROM t"
    assert rows_of(tables.sql_query(query)) == [["X", "X", "own"], [None, None, "own"]]
    tables.create_temporary_system_function("upper", returning("system", "STRING"))
    assert tables.list_user_defined_functions() == ["inc2", "length", "mult3", "upper", "upper"]
    assert rows_of(tables.sql_query(query)) == [["system", "system", "own"]] * 2
    assert tables.drop_temporary_system_function("upper")
    assert rows_of(tables.sql_query(query)) == [["X", "X", "own"], [None, None, "own"]]


def test_a_system_function_hides_other_functions_with_its_name(
    tables: StreamTableEnvironment,
) -> None:
    for register, value in (
        (tables.create_temporary_function, "own"),
        (tables.create_temporary_system_function, "system"),
    ):
        register("f", returning(value, "STRING"))
        with pytest.raises(GraphError, match=r"there is a function 'f' already"):
            register("f", returning(value, "STRING"))
    query = "SELECT f(s) FROM t WHERE a > 0"
    assert rows_of(tables.sql_query(query)) == [["system"]]
    assert tables.drop_temporary_function("f")
    assert not tables.drop_temporary_function("f")
    assert rows_of(tables.sql_query(query)) == [["system"]]
    assert tables.drop_temporary_system_function("f")


def test_all_documented_sql_functions_are_built_in() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "tables.md"
    lines = page.read_text().partition("| for | functions |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([A-Z0-9_]+)`", lines)) - {"TO"}
    assert {"CHAR_LENGTH", "JSON_VALUE", "YEAR"} < named <= BUILT_IN_FUNCTIONS


def test_a_udf_is_called_only_for_rows_that_pass_the_condition(table: Table) -> None:
    found = table.where(col("s").is_not_null).select(inc(col("a")))
    assert rows_of(found) == [[8]]
    assert CALLS == [7]


def test_equal_calls_of_a_deterministic_udf_are_called_once(table: Table) -> None:
    assert rows_of(table.select(inc(col("a")), inc(col("a")) + 1)) == [[8, 9], [-6, -5]]
    assert CALLS == [7, -7]
    CALLS.clear()
    random = udf(Random(), result_type="INT")
    assert rows_of(table.select(random(), (random() + 1).alias("b"))) == [[4, 5], [4, 5]]
    assert CALLS == ["random"] * 4


def test_a_udf_is_opened_and_closed_once_per_subtask(table: Table) -> None:
    by_three = udf(Multiplied(3), result_type=DataTypes.BIGINT())
    found = table.select(by_three(col("a")), by_three(by_three(col("a"))).alias("b"))
    assert rows_of(found) == [[21, 63], [-21, -63]]
    assert CALLS == ["open 0", "close"]


def test_a_udf_in_a_condition_that_returns_none_drops_the_row(table: Table) -> None:
    of = DataTypes.BOOLEAN()
    assert rows_of(table.where(returning(None, of)(col("a")))) == []
    assert len(rows_of(table.where(udf(lambda x: x > 1, result_type=of)(col("a"))))) == 1


@pytest.mark.parametrize(
    ("value", "of", "expected"),
    [
        (1.7, DataTypes.INT(), 1),
        (True, "INT", 1),
        (2**40, "BIGINT", 2**40),
        (3, DataTypes.DOUBLE(), 3.0),
        (1, DataTypes.BOOLEAN(), True),
        (Decimal("1.236"), DataTypes.DECIMAL(10, 2), Decimal("1.24")),
        ([1, 2], DataTypes.ARRAY(DataTypes.INT()), [1, 2]),
        ({"a": 1}, DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()), {"a": 1}),
        (Row(1, "x"), ROW, Row(1, "x")),
        (None, DataTypes.INT(), None),
    ],
)
def test_the_result_of_a_udf_is_converted_to_its_type(
    value: Any, of: Any, expected: Any, table: Table
) -> None:
    (found,), _ = rows_of(table.select(returning(value, of)(col("a"))))
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "of", "error"),
    [
        (5, "STRING", r"lambda\(a\) returned a value .* 5 is declared as STRING, and is an int"),
        (2**40, "INT", r"does not fit into INT"),
        (None, DataTypes.INT().not_null(), r"lambda\(a\) returned None, .* NOT NULL"),
    ],
)
def test_a_udf_result_of_a_wrong_type_fails_the_job(
    value: Any, of: Any, error: str, table: Table
) -> None:
    with pytest.raises(Exception, match=error) as found:
        rows_of(table.select(returning(value, of)(col("a"))))
    assert "select _c0" in "".join(getattr(found.value, "__notes__", [str(found.value)]))


def test_a_field_of_a_udf_result_can_be_a_column(table: Table) -> None:
    assert rows_of(table.select(returning(Row(1, "x"), ROW)(col("a")).get("q"))) == [["x"], ["x"]]


def test_table_map_returns_the_fields_of_the_rows_of_a_udf(table: Table) -> None:
    of_row = udf(lambda row: Row(row[0], row.s), result_type=ROW)
    found = table.map(of_row)
    assert [name for name, _ in found.columns] == ["p", "q"]
    assert rows_of(found) == [[7, "x"], [-7, None]]
    assert rows_of(table.map(udf(lambda a: Row(a, "y"), result_type=ROW)(col("a")))) == [
        *([7, "y"], [-7, "y"])
    ]
    with pytest.raises(GraphError, match=r"Table\.map\(\) .* returns rows, .* is INT"):
        table.map(inc(col("a")))


def test_a_udf_gets_numbers_of_its_declared_input_types(table: Table) -> None:
    shown = udf(repr, input_types=[DataTypes.DOUBLE()], result_type="STRING")
    assert rows_of(table.select(shown(col("a")))) == [["7.0"], ["-7.0"]]
    with pytest.raises(GraphError, match=r"repr\(a, a\) has 2 arguments, and input_types .* 1"):
        table.select(shown(col("a"), col("a")))


def test_user_functions_can_be_listed_and_dropped(tables: StreamTableEnvironment) -> None:
    assert tables.list_user_defined_functions() == ["inc2", "mult3"]
    with pytest.raises(GraphError, match=r"there is a function 'INC2' already"):
        tables.create_temporary_function("INC2", inc)
    assert tables.drop_temporary_function("inc2")
    assert not tables.drop_temporary_function("inc2")
    with pytest.raises(UnsupportedFeatureError, match="INC2 is not supported"):
        tables.sql_query("SELECT inc2(a) FROM t")


def test_group_by_with_a_udf_is_refused_with_a_view_as_alternative(
    tables: StreamTableEnvironment,
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"GROUP BY with the function inc2 .* a view"):
        tables.sql_query("SELECT inc2(a), COUNT(*) FROM t GROUP BY inc2(a)")


def test_udf_refuses_objects_that_are_not_scalar_functions(tables: StreamTableEnvironment) -> None:
    async def waiting(x: int) -> int:
        return x

    with pytest.raises(TypeError, match=r"takes a function or an object of a ScalarFunction"):
        udf(Multiplied, result_type="INT")
    with pytest.raises(TypeError, match=r"as result_type"):
        udf(lambda x: x)
    with pytest.raises(UnsupportedFeatureError, match=r"func_type='pandas' is not supported"):
        udf(lambda x: x, result_type="INT", func_type="pandas")
    with pytest.raises(UnsupportedFeatureError, match="AsyncDataStream"):
        udf(waiting, result_type="INT")
    with pytest.raises(ValueError, match="is_deterministic"):
        udf(Random(), result_type="INT", deterministic=True)
    with pytest.raises(TypeError, match=r"it takes udf\(\.\.\., result_type=\.\.\.\)"):
        tables.create_temporary_function("f", lambda x: x)
