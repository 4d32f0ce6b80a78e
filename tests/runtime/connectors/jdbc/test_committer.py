from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from opchain.runtime.connectors.jdbc.options import JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.sink import JdbcCommitter
from opchain.runtime.connectors.jdbc.staging import JdbcWriter
from opchain.runtime.connectors.jdbc.statement import parse_statement
from opchain.runtime.errors import CheckpointInUseError, SinkError
from opchain.runtime.functions.sink import SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postgres_server import Server

    from opchain.runtime.connectors.jdbc.staging import StagedRows

INSERT = "INSERT INTO t (id, name) VALUES (?, ?)"
UPSERT = f"{INSERT} ON CONFLICT (id) DO UPDATE SET name = t.name || excluded.name"
DEFAULTS = JdbcExecutionOptions.defaults()


def staged(
    server: Server,
    checkpoint_id: int | None,
    *rows: tuple[Any, ...],
    sql: str = INSERT,
    operator: str = "operator",
) -> Sequence[StagedRows]:
    origin = SinkOrigin("lineage", operator, "'books' (job.py:7)")
    with closing(JdbcWriter(parse_statement(sql), server.options, DEFAULTS, origin)) as writer:
        writer.write_batch(rows, None)
        writer.flush(end_of_input=True)
        return writer.prepare_commit_of(checkpoint_id)


def commit(server: Server, committables: Sequence[StagedRows], sql: str = INSERT) -> None:
    with closing(JdbcCommitter(parse_statement(sql), server.options, DEFAULTS)) as committer:
        committer.commit(committables)


@pytest.fixture
def books(postgres: Server) -> Server:
    postgres.run("CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL)")
    return postgres


@pytest.mark.parametrize("checkpoint_id", [3, None])
def test_committing_again_writes_no_row_twice(books: Server, checkpoint_id: int | None) -> None:
    rows = [
        *staged(books, checkpoint_id, (1, "a"), (2, "b")),
        *staged(books, checkpoint_id, (3, "c")),
    ]
    for _ in range(3):
        commit(books, rows)
    assert books.rows("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b"), (3, "c")]
    assert books.waiting() == 0


def test_committing_a_checkpoint_before_the_last_one_changes_nothing(books: Server) -> None:
    first, second = staged(books, 1, (1, "a")), staged(books, 2, (2, "b"))
    commit(books, first)
    # The staged rows of checkpoint 2 were removed, because its attempt lost.
    with pytest.raises(
        SinkError,
        match=r"1 rows of checkpoint 2 were written by the tasks, but 0 are in opchain_staged",
    ):
        commit(books, second)
    commit(books, staged(books, 2, (2, "c")))
    commit(books, first)
    assert books.rows("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "c")]
    assert books.rows("SELECT lineage, operator, checkpoint_id FROM opchain_commits") == [
        ("lineage", "operator", 2)
    ]


def test_rows_of_one_key_are_written_in_the_order_of_subtasks_and_records(books: Server) -> None:
    rows = [
        *staged(books, 1, (1, "a"), (1, "b"), sql=UPSERT),
        *staged(books, 1, (1, "c"), (2, "x"), sql=UPSERT),
    ]
    commit(books, rows, UPSERT)
    assert books.rows("SELECT * FROM t ORDER BY id") == [(1, "abc"), (2, "x")]


@pytest.mark.parametrize(
    "changed",
    [
        "INSERT INTO t (name, id) VALUES (upper(?::text), length(?::text))",
        "INSERT INTO t (id, name) VALUES (?, ?) ON CONFLICT DO NOTHING",
        "DELETE FROM t WHERE id = ?",
    ],
)
def test_rows_are_written_by_the_statement_of_the_program_that_staged_them(
    books: Server, changed: str
) -> None:
    commit(books, staged(books, 1, (12, "a")), changed)
    assert books.rows("SELECT * FROM t") == [(12, "a")]
    assert books.waiting() == 0


def test_a_corrected_statement_writes_rows_that_the_table_refused(books: Server) -> None:
    rows = staged(books, 1, (1, "a"), (2, "b"))
    books.run("INSERT INTO t VALUES (1, 'first')")
    with pytest.raises(SinkError, match="duplicate key"):
        commit(books, rows, "DELETE FROM t WHERE id = ?")  # it takes other records
    commit(books, rows, f"{INSERT} ON CONFLICT DO NOTHING")
    assert books.rows("SELECT * FROM t ORDER BY id") == [(1, "first"), (2, "b")]
    assert books.waiting() == 0


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE t SET name = ? WHERE id = ?", [(1, "new")]),
        ("DELETE FROM t WHERE name = ? OR id = ?", []),
        (
            "INSERT INTO t SELECT b, upper($$a$$ || a) FROM (VALUES (?::text, ?::int + 1)) AS v (a, b)",
            [(1, "a"), (2, "ANEW")],
        ),
    ],
)
def test_update_delete_and_insert_select_statements_are_committed(
    books: Server, sql: str, expected: list[Any]
) -> None:
    books.run("INSERT INTO t VALUES (1, 'a')")
    commit(books, staged(books, 1, ("new", 1), sql=sql), sql)
    assert books.rows("SELECT * FROM t ORDER BY id") == expected


def test_a_row_that_the_table_refuses_rolls_the_whole_commit_back(books: Server) -> None:
    rows = staged(books, 4, (1, "a"), (2, None), (3, "c"))
    with pytest.raises(SinkError) as refused:
        commit(books, rows)
    assert str(refused.value) == (
        "'books' (job.py:7): the rows of checkpoint 4 can't be committed: null value in column \"name\" of "
        'relation "t" violates not-null constraint; Failing row contains (2, null).; row (2, NULL). Nothing '
        "was committed; correct the table or the statement, and start the job again"
    )
    assert books.rows("SELECT * FROM t") == []
    books.run("ALTER TABLE t ALTER name DROP NOT NULL")
    commit(books, rows)
    assert books.rows("SELECT count(*) FROM t") == [(3,)]


def test_the_error_of_a_refused_row_shows_the_start_of_long_texts(books: Server) -> None:
    commit(books, staged(books, 1, (1, "a")))
    with pytest.raises(SinkError, match=rf"; row \(1, {'x' * 77}\.\.\.\)\. Nothing was committed"):
        commit(books, staged(books, 2, (1, "x" * 1_000_000)))


def test_an_error_of_the_server_is_not_called_a_lost_connection(books: Server) -> None:
    books.run("CREATE INDEX ON t (name)")
    limit = JdbcExecutionOptions(max_retries=1)
    rows = staged(books, 1, (1, "".join(map(chr, range(33, 12_000)))))
    with (
        closing(JdbcCommitter(parse_statement(INSERT), books.options, limit)) as committer,
        pytest.raises(SinkError, match=r"all 2 attempts at its database failed.*index row"),
    ):
        committer.commit(rows)


def test_staged_rows_that_were_deleted_fail_the_commit(books: Server) -> None:
    rows = staged(books, 1, (1, "a"), (2, "b"))
    books.run(f"DELETE FROM {rows[0].staged} WHERE number = 0")
    with pytest.raises(
        SinkError, match=r"2 rows of checkpoint 1 were written by the tasks, but 1 are in"
    ):
        commit(books, rows)
    assert books.rows("SELECT * FROM t") == []


def test_rows_that_wait_in_another_database_fail_the_commit(books: Server) -> None:
    rows = staged(books, 1, (1, "a"))
    books.run(
        "ALTER TABLE opchain_batches RENAME TO b", f"ALTER TABLE {rows[0].staged} RENAME TO s"
    )
    with pytest.raises(SinkError, match=r"checkpoint 1 wait .* not in this database\. If the sink"):
        commit(books, rows)
    books.run(
        "ALTER TABLE b RENAME TO opchain_batches", f"ALTER TABLE s RENAME TO {rows[0].staged}"
    )
    commit(books, rows)
    assert books.rows("SELECT * FROM t") == [(1, "a")]


def test_a_commit_removes_orphans_of_its_own_operator_only(books: Server) -> None:
    staged(books, 1, (8, "lost"))
    others = staged(books, 1, (9, "other"), operator="other")
    commit(books, staged(books, 1, (1, "a")))
    assert books.rows(f"SELECT p1 FROM {others[0].staged}") == [(9,)]
    commit(books, others)
    assert books.rows("SELECT id FROM t ORDER BY id") == [(1,), (9,)]


def test_orphans_are_discarded(books: Server) -> None:
    origin = SinkOrigin("lineage", "operator", "'books'")
    with closing(JdbcCommitter(parse_statement(INSERT), books.options, DEFAULTS)) as committer:
        committer.discard_orphans(origin, lambda: None)  # before the staging tables exist
        staged(books, 1, (1, "a"))
        others = staged(books, 1, (2, "b"), operator="other")
        committer.discard_orphans(origin, lambda: None)
    assert books.rows(f"SELECT p1 FROM {others[0].staged}") == [(2,)]


def test_a_replaced_run_discards_no_orphans(books: Server) -> None:
    def confirm() -> NoReturn:
        raise CheckpointInUseError("taken over")

    rows = staged(books, 1, (1, "a"))
    origin = SinkOrigin("lineage", "operator", "'books'")
    with (
        closing(JdbcCommitter(parse_statement(INSERT), books.options, DEFAULTS)) as committer,
        pytest.raises(CheckpointInUseError, match="taken over"),
    ):
        committer.discard_orphans(origin, confirm)
    commit(books, rows)
    assert books.rows("SELECT id FROM t") == [(1,)]


def test_a_connection_lost_between_commits_is_reopened(books: Server) -> None:
    with closing(JdbcCommitter(parse_statement(INSERT), books.options, DEFAULTS)) as committer:
        committer.commit(staged(books, 1, (1, "a")))
        books.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'opchain'"
        )
        committer.commit(staged(books, 2, (2, "b")))
    assert books.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


NAMES = (
    "detail",
    "said",
    "opchain_row",
    "opchain_row_plan",
    "found",
    "batch",
    "number",
    "p1",
    "staged",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_have_any_name(postgres: Server, name: str) -> None:
    """Also the names of opchain's own columns and of variables of PL/pgSQL."""
    postgres.run(f"CREATE TABLE t (id int PRIMARY KEY, {name} text)")
    upsert = (
        f"INSERT INTO t (id, {name}) VALUES (?, ?) ON CONFLICT (id) "
        f"DO UPDATE SET {name} = t.{name} || excluded.{name}"
    )
    commit(postgres, staged(postgres, 1, (1, "a"), (1, "b"), sql=upsert), upsert)
    update = f"UPDATE t SET {name} = {name} || ? WHERE id = ?"
    commit(postgres, staged(postgres, 2, ("c", 1), sql=update), update)
    assert postgres.rows(f"SELECT id, {name} FROM t") == [(1, "abc")]


@pytest.mark.parametrize("name", ["opchain_row", "staged"])
def test_a_table_may_have_any_name(postgres: Server, name: str) -> None:
    postgres.run(f"CREATE TABLE {name} (p1 int PRIMARY KEY, p2 text)")
    sql = f"UPDATE {name} SET p2 = {name}.p2 || ? WHERE {name}.p1 = ?"
    postgres.run(f"INSERT INTO {name} VALUES (1, 'a')")
    commit(postgres, staged(postgres, 1, ("b", 1), sql=sql), sql)
    assert postgres.rows(f"SELECT * FROM {name}") == [(1, "ab")]


def test_the_note_of_the_last_commit_can_be_reset(books: Server) -> None:
    origin = SinkOrigin("lineage", "operator", "'books'")
    with closing(JdbcCommitter(parse_statement(INSERT), books.options, DEFAULTS)) as committer:
        assert committer.last_commit(origin) is None
        for checkpoint_id in (1, 2):
            commit(books, staged(books, checkpoint_id, (checkpoint_id, "a")))
        assert committer.last_commit(origin) == 2
        committer.reset_commits(origin, 2)
        assert committer.last_commit(origin) == 2
        committer.reset_commits(origin, 1)
        commit(books, staged(books, 2, (3, "again")))
        assert books.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]
        books.run(committer.how_to_reset(origin, 1))
        assert committer.last_commit(origin) == 1
