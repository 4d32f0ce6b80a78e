from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions
from opchain.runtime.connectors.jdbc.staging import connect, staging_table
from opchain.runtime.connectors.jdbc.statement import parse_statement
from opchain.runtime.errors import SinkError

if TYPE_CHECKING:
    from postgres_server import Server

TABLE = "CREATE TABLE t (id int PRIMARY KEY, name varchar(9), at timestamptz, price numeric(9, 2))"
INSERT = parse_statement("INSERT INTO t VALUES (?, ?, ?, ?)")


def test_staging_columns_have_the_types_of_the_statements_parameters(postgres: Server) -> None:
    postgres.run(TABLE)
    with closing(connect(postgres.options)) as connection:
        table = staging_table(connection, INSERT, "'sink'")
        assert table.types == (
            "integer",
            "character varying",
            "timestamp with time zone",
            "numeric",
        )
        assert table.columns == ("p1", "p2", "p3", "p4")
        assert staging_table(connection, INSERT, "'sink'") == table
    columns = postgres.rows(
        f"SELECT attname FROM pg_attribute WHERE attrelid = '{table.name}'::regclass AND attnum > 0"
        " ORDER BY attnum"
    )
    assert columns == [("batch",), ("number",), ("p1",), ("p2",), ("p3",), ("p4",)]


def test_several_writers_may_create_the_staging_tables_concurrently(postgres: Server) -> None:
    postgres.run(TABLE)

    def make(_: int) -> str:
        with closing(connect(postgres.options)) as connection:
            return staging_table(connection, INSERT, "'sink'").name

    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(make, range(6)))) == 1


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO nowhere VALUES (?)", 'relation "nowhere" does not exist'),
        ("INSERT INTO t (nothing) VALUES (?)", 'column "nothing" of relation "t" does not exist'),
        ("INSERT INTO t VALUES (?", "syntax error"),
    ],
)
def test_a_statement_that_the_server_cannot_parse_is_refused(
    postgres: Server, sql: str, said: str
) -> None:
    postgres.run(TABLE)
    with (
        closing(connect(postgres.options)) as connection,
        pytest.raises(SinkError, match=f"^'sink': the server refuses the statement .*{said}"),
    ):
        staging_table(connection, parse_statement(sql), "'sink'")


def test_without_the_privilege_to_create_tables_the_error_shows_the_sql_to_run(
    postgres: Server,
) -> None:
    postgres.run(
        TABLE, "DROP ROLE IF EXISTS clerk", "CREATE ROLE clerk LOGIN", "GRANT ALL ON t TO clerk"
    )
    postgres.run("GRANT USAGE ON SCHEMA public TO clerk")

    options = JdbcConnectionOptions(postgres.url, None, "clerk")
    with (
        closing(connect(options)) as connection,
        pytest.raises(
            SinkError,
            match=r"lacks the privilege to create its staging tables .*CREATE TABLE IF NOT EXISTS",
        ),
    ):
        staging_table(connection, INSERT, "'sink'")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "INSERT INTO t (id) VALUES (?) ON CONFLICT (name) DO NOTHING",
            "no unique or exclusion constraint matching the ON CONFLICT specification",
        ),
        ("UPDATE fixed SET id = ?", "permission denied for table fixed"),
    ],
)
def test_a_statement_that_would_fail_at_the_commit_is_refused_at_the_start(
    postgres: Server, sql: str, said: str
) -> None:
    """Preparing a statement neither plans it nor checks privileges."""
    postgres.run(
        TABLE,
        "CREATE TABLE fixed (id int)",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "GRANT ALL ON SCHEMA public TO reader",
        "GRANT ALL ON t TO reader",
        "GRANT SELECT ON fixed TO reader",
    )
    options = JdbcConnectionOptions(postgres.url, None, "reader")
    try:
        with (
            closing(connect(options)) as connection,
            pytest.raises(SinkError, match=f"^'sink': the server refuses the statement .*{said}"),
        ):
            staging_table(connection, parse_statement(sql), "'sink'")
    finally:
        postgres.run("DROP OWNED BY reader", "DROP ROLE reader")


def test_checking_the_statement_has_no_effect(postgres: Server) -> None:
    postgres.run(
        "CREATE TABLE log (n int)",
        "CREATE TABLE t (id serial PRIMARY KEY, name text NOT NULL)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO log VALUES (1); RAISE EXCEPTION 'ran'; END $$",
        "CREATE TRIGGER noted BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()",
    )
    with closing(connect(postgres.options)) as connection:
        staging_table(connection, parse_statement("INSERT INTO t (name) VALUES (?)"), "'sink'")
    assert postgres.rows("SELECT * FROM log") == postgres.rows("SELECT * FROM t") == []
    assert postgres.rows("SELECT last_value, is_called FROM t_id_seq") == [(1, False)]


def test_a_procedure_may_be_called(postgres: Server) -> None:
    postgres.run(
        "CREATE PROCEDURE p(i int) LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'ran'; END $$"
    )
    with closing(connect(postgres.options)) as connection:
        table = staging_table(connection, parse_statement("CALL p(?)"), "'sink'")
    assert table.types == ("integer",)
