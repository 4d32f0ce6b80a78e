"""CREATE TABLE ... LIKE, as Flink 2.3 has it: the same tables, and the same conflicts."""

from __future__ import annotations

import pytest

from opchain.common import Configuration
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError
from opchain.table import StreamTableEnvironment

FIVE, ONE = "`ts` AS `ts` - INTERVAL '5' SECOND", "`ts` AS `ts` - INTERVAL '1' SECOND"


@pytest.fixture
def tables() -> StreamTableEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TABLE timed (id INT, ts TIMESTAMP(3), x AS id + 1, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
    )
    tables.execute_sql(
        "CREATE TABLE keyed (id INT, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
    )
    return tables


@pytest.mark.parametrize(
    ("rest", "columns", "shown"),
    [
        ("(extra INT) LIKE timed", "id ts x extra", [FIVE, "'number-of-rows' = '3'"]),
        (
            "(WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) LIKE keyed",
            "id ts",
            [ONE, "PRIMARY KEY (`id`)"],
        ),
        (
            "(WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) LIKE timed (OVERWRITING WATERMARKS)",
            "id ts x",
            [ONE],
        ),
        ("(x AS id + 2) LIKE timed (OVERWRITING GENERATED)", "id ts x", ["`id` + 2", FIVE]),
        (
            "(x AS id + 2) LIKE timed (EXCLUDING GENERATED INCLUDING WATERMARKS)",
            "id ts x",
            ["`id` + 2", FIVE],
        ),
        (
            "(PRIMARY KEY (id) NOT ENFORCED) LIKE keyed (EXCLUDING CONSTRAINTS)",
            "id ts",
            ["PRIMARY KEY (`id`)"],
        ),
        ("WITH ('number-of-rows' = '7') LIKE timed", "id ts x", ["'number-of-rows' = '7'", FIVE]),
        ("WITH ('connector' = 'print') LIKE timed (EXCLUDING OPTIONS)", "id ts x", [FIVE]),
        ("WITH ('connector' = 'print') LIKE timed (EXCLUDING ALL)", "id ts", []),
        ("(extra AS id) LIKE timed (EXCLUDING ALL INCLUDING OPTIONS)", "id ts extra", []),
    ],
)
def test_create_table_like_takes_parts_of_another_table(
    tables: StreamTableEnvironment, rest: str, columns: str, shown: list[str]
) -> None:
    tables.execute_sql(f"CREATE TABLE other {rest}")

    with tables.execute_sql("DESCRIBE other").collect() as rows:
        assert [row[0] for row in rows] == columns.split()
    with tables.execute_sql("SHOW CREATE TABLE other").collect() as rows:
        ((text,),) = rows
    assert all(each in text for each in shown)
    assert ("WATERMARK" in text) == any(each in (FIVE, ONE) for each in shown)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            "(WATERMARK FOR ts AS ts) LIKE timed",
            r"has a watermark, and 'timed' has it, too; add \(EXCLUDING WATERMARKS\) or \(OVERWRITING WATERMARKS\)",
        ),
        ("(id BIGINT) LIKE timed", "has 'id', and 'timed' has it, too; rename or remove"),
        ("(x AS id) LIKE timed", r"has 'x', .* add \(EXCLUDING GENERATED\) or \(OVERWRITING"),
        ("(id AS 3) LIKE timed", "column 'id' is also in 'timed', as another kind of column"),
        (
            "(PRIMARY KEY (id) NOT ENFORCED) LIKE keyed",
            r"has a primary key, .* add \(EXCLUDING CONSTRAINTS\) after LIKE",
        ),
        ("LIKE keyed (OVERWRITING CONSTRAINTS)", "LIKE cannot overwrite CONSTRAINTS, only"),
        (
            "WITH ('number-of-rows' = '7') LIKE timed (INCLUDING OPTIONS)",
            r"has 'number-of-rows', .* \(OVERWRITING OPTIONS\)",
        ),
        (
            "LIKE timed (EXCLUDING EVERYTHING)",
            "has 'EVERYTHING', but INCLUDING, EXCLUDING or OVERWRITING",
        ),
    ],
)
def test_conflicts_in_create_table_like_are_errors(
    tables: StreamTableEnvironment, rest: str, message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        tables.execute_sql(f"CREATE TABLE other {rest}")
