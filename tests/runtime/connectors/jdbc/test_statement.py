from __future__ import annotations

import pytest

from opchain.runtime.connectors.jdbc.statement import parse_statement


@pytest.mark.parametrize(
    ("sql", "numbered"),
    [
        ("INSERT INTO t VALUES (?, ?);", "INSERT INTO t VALUES ($1, $2)"),
        ("INSERT INTO t VALUES ('?', ?)", "INSERT INTO t VALUES ('?', $1)"),
        ("INSERT INTO t VALUES ('it''s ?', ?)", "INSERT INTO t VALUES ('it''s ?', $1)"),
        (r"INSERT INTO t VALUES (E'\'?', ?)", r"INSERT INTO t VALUES (E'\'?', $1)"),
        ('INSERT INTO "t?" VALUES (?)', 'INSERT INTO "t?" VALUES ($1)'),
        ("INSERT INTO t VALUES (? /* ? */)", "INSERT INTO t VALUES ($1  )"),
        ("INSERT INTO t -- why?\nVALUES (?)", "INSERT INTO t  \nVALUES ($1)"),
        ("INSERT INTO t VALUES ($a$ ? $a$, ?)", "INSERT INTO t VALUES ($a$ ? $a$, $1)"),
        ("DELETE FROM t WHERE j ?? 'a' AND i = ?", "DELETE FROM t WHERE j ? 'a' AND i = $1"),
    ],
)
def test_parameters_are_found_outside_of_quotes_and_comments_only(sql: str, numbered: str) -> None:
    statement = parse_statement(sql)
    numbers = [f"${number + 1}" for number in range(statement.parameter_count)]
    assert statement.with_parameters(numbers) == numbered


@pytest.mark.parametrize(
    ("sql", "numbered"),
    [
        (r"INSERT INTO t VALUES (?, 'it\'s ?')", r"INSERT INTO t VALUES ($1, 'it\'s ?')"),
        (r"INSERT INTO t VALUES ('\\', ?)", r"INSERT INTO t VALUES ('\\', $1)"),
        (r'INSERT INTO t VALUES ("\"?", "a""?", ?)', r'INSERT INTO t VALUES ("\"?", "a""?", $1)'),
        ("INSERT INTO t # why?\nVALUES (?)", "INSERT INTO t  \nVALUES ($1)"),
        ("INSERT INTO t VALUES (? -- why?\n)", "INSERT INTO t VALUES ($1  \n)"),
        ("UPDATE t SET a = 5--?", "UPDATE t SET a = 5--$1"),
        ("UPDATE t SET a$b$c = ?, d$b$e = ?", "UPDATE t SET a$b$c = $1, d$b$e = $2"),
    ],
)
def test_quotes_and_comments_of_mysql_are_parsed(sql: str, numbered: str) -> None:
    statement = parse_statement(sql, is_mysql=True)
    numbers = [f"${number + 1}" for number in range(statement.parameter_count)]
    assert statement.with_parameters(numbers) == numbered


def test_a_statement_without_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="has no parameter; write \\?"):
        parse_statement("INSERT INTO t VALUES ('?')")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT f(?)", "begins with 'SELECT'"),
        ("VALUES (?)", "begins with 'VALUES'"),
        ("WITH a AS (DELETE FROM t WHERE i = ? RETURNING *) SELECT * FROM a", "begins with 'WITH'"),
        ("EXPLAIN INSERT INTO t VALUES (?)", "begins with 'EXPLAIN'"),
        ("INSERT INTO t VALUES (?) RETURNING id", "has RETURNING"),
        ("insert into t values (?) returning(id)", "has RETURNING"),
        ("UPDATE t SET a = ? RETURNING *", "has RETURNING"),
        ("INSERT INTO t VALUES (?); DELETE FROM t", "holds several statements"),
    ],
)
def test_statements_that_a_sink_cannot_run_are_refused(sql: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_statement(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t SELECT ?",
        "insert into t values (?)",
        "UPDATE t SET a = ?",
        "DELETE FROM t WHERE a = ?",
        "MERGE INTO t USING (SELECT ? AS i) AS s ON t.i = s.i WHEN MATCHED THEN DELETE",
        "CALL p(?)",
        "WITH a AS (DELETE FROM t WHERE i = ? RETURNING *) INSERT INTO u SELECT * FROM a",
        "WITH RECURSIVE a AS (SELECT ?) UPDATE t SET i = 1",
        "INSERT INTO t VALUES (?, 'RETURNING; x')",
        'INSERT INTO "returning" VALUES (?) -- RETURNING; x',
        "INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING;",
    ],
)
def test_statements_that_write_are_accepted(sql: str) -> None:
    assert parse_statement(sql).parameter_count == 1
