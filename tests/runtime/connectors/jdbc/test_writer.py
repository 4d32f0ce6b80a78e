from __future__ import annotations

import datetime as dt
import decimal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Row
from opchain.runtime.connectors.jdbc import staging
from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.staging import JdbcWriter, connect
from opchain.runtime.connectors.jdbc.statement import parse_statement
from opchain.runtime.errors import SinkError
from opchain.runtime.functions.sink import SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postgres_server import Server

ORIGIN = SinkOrigin("lineage", "operator", "'books' (job.py:7)")
INSERT = parse_statement("INSERT INTO t VALUES (?, ?)")


@contextmanager
def writer(
    server: Server, columns: str = "id int, name text", batch_size: int = 2
) -> Iterator[JdbcWriter]:
    server.run(f"CREATE TABLE IF NOT EXISTS t ({columns})")
    execution = JdbcExecutionOptions(batch_size=batch_size)
    made = JdbcWriter(INSERT, server.options, execution, ORIGIN)
    try:
        yield made
    finally:
        made.close()


def test_rows_are_staged_by_checkpoint_and_the_table_stays_empty(postgres: Server) -> None:
    with writer(postgres) as made:
        made.write_batch([(1, "a"), [2, "b"], Row(3, None)], None)
        made.flush(end_of_input=False)
        (first,) = made.prepare_commit_of(7)
        made.write((4, "d"), None)
        made.flush(end_of_input=True)
        (last,) = made.prepare_commit_of(None)
        assert made.prepare_commit_of(None) == ()
    assert (first.checkpoint_id, first.rows, last.checkpoint_id, last.rows) == (7, 3, None, 1)
    assert (first.lineage, first.operator_id) == ("lineage", "operator")
    assert first.batch != last.batch
    assert postgres.rows("SELECT * FROM t") == []
    waiting = postgres.rows(f"SELECT batch::text, number, p1, p2 FROM {first.staged} ORDER BY p1")
    assert waiting == [
        (first.batch, 0, 1, "a"),
        (first.batch, 1, 2, "b"),
        (first.batch, 2, 3, None),
        (last.batch, 0, 4, "d"),
    ]


def test_values_of_many_types_are_staged(postgres: Server) -> None:
    values = [
        ("jsonb", {"a": [1]}),
        ("int[]", [1, 2]),
        ("timestamptz", dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)),
        ("numeric", decimal.Decimal("1.50")),
        ("bytea", b"\x00\\"),
        ("boolean", True),
        ("text", "tab\t newline\n \\N"),
    ]
    for kind, value in values:
        postgres.clear()
        with writer(postgres, f"id int, v {kind}") as made:
            made.write((1, value), None)
            made.flush(end_of_input=True)
            (staged,) = made.prepare_commit_of(None)
        assert postgres.rows(f"SELECT p2 FROM {staged.staged}") == [(value,)]


@pytest.mark.parametrize("record", [(1,), (1, 2, 3), {"id": 1, "name": "a"}, "ab"])
def test_the_error_names_a_record_with_another_number_of_fields(
    postgres: Server, record: Any
) -> None:
    with writer(postgres) as made, pytest.raises(SinkError, match="list of 2 fields") as refused:
        made.write(record, None)
    assert str(refused.value).startswith(f"'books' (job.py:7) got the record {record!r}")


def test_the_error_shows_the_row_of_a_field_of_another_type(postgres: Server) -> None:
    with writer(postgres, batch_size=10) as made:
        made.write_batch([(1, "a"), ("two", "b"), (3, "c")], None)
        with pytest.raises(SinkError) as refused:
            made.flush(end_of_input=False)
    assert str(refused.value) == (
        "'books' (job.py:7) can't write the record ('two', 'b'): invalid input syntax for type integer: "
        "\"two\"; parameter 1 is 'two', but the statement expects integer"
    )


def test_the_error_shows_the_row_of_a_value_that_the_database_cannot_store(
    postgres: Server,
) -> None:
    with writer(postgres, batch_size=10) as made:
        made.write_batch([(1, "a"), (2, "\ud800")], None)
        with pytest.raises(
            SinkError, match=r"can't write the record \(2, '\\ud800'\): 'utf-8' codec"
        ):
            made.flush(end_of_input=False)
        made.write_batch([(1, "a"), (2, ...)], None)
        with pytest.raises(SinkError, match=r"can't write the record \(2, \.\.\.\): cannot adapt"):
            made.flush(end_of_input=False)


def test_a_lost_connection_is_reopened_and_writes_no_row_twice(postgres: Server) -> None:
    with writer(postgres) as made:
        made.write_batch([(1, "a"), (2, "b")], None)
        postgres.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'opchain'"
        )
        made.write_batch([(3, "c"), (4, "d")], None)
        (staged,) = made.prepare_commit_of(1)
    assert staged.rows == 4
    waiting = postgres.rows(f"SELECT number, p1 FROM {staged.staged} ORDER BY number")
    assert waiting == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_a_connection_lost_while_the_statement_is_checked_is_reopened(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def lost_at_first(options: JdbcConnectionOptions) -> Any:
        made.append(connect(options))
        if len(made) == 1:
            postgres.run(f"SELECT pg_terminate_backend({made[0].info.backend_pid}, 10000)")
        return made[-1]

    monkeypatch.setattr(staging, "connect", lost_at_first)
    with writer(postgres) as opened:
        opened.write((1, "a"), None)
        opened.flush(end_of_input=False)
    assert len(made) == 2


def test_the_writer_gives_up_connecting_to_an_unreachable_server() -> None:
    pytest.importorskip("psycopg", reason="needs psycopg")
    nowhere = JdbcConnectionOptions("jdbc:postgresql://127.0.0.1:1/books")
    with pytest.raises(SinkError, match=r"'books' .*: all 2 attempts at its database failed"):
        JdbcWriter(INSERT, nowhere, JdbcExecutionOptions(max_retries=1), ORIGIN)
