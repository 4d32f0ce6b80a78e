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
def test_parameters_are_found_outside_of_quotes_and_comments(sql: str, numbered: str) -> None:
    statement = parse_statement(sql)
    numbers = [f"${number + 1}" for number in range(statement.parameter_count)]
    assert statement.with_parameters(numbers) == numbered


def test_a_statement_without_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="has no parameter; write \\?"):
        parse_statement("INSERT INTO t VALUES ('?')")
