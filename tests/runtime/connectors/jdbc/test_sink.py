from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given

from opchain.common import Configuration, Row, Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from opchain.runtime.errors import SinkError
from opchain.runtime.shipping.outcome import commit

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_server import Server

TYPE = Types.ROW([Types.INT(), Types.STRING()])
INSERT = "INSERT INTO books VALUES (?, ?)"
UPSERT = f"{INSERT} ON CONFLICT (id) DO UPDATE SET title = excluded.title"
NOWHERE = JdbcConnectionOptions("jdbc:postgresql://nowhere/books")


@pytest.fixture
def books(postgres: Server) -> Server:
    postgres.run("CREATE TABLE books (id int PRIMARY KEY, title text)")
    return postgres


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    return env


def test_a_bounded_job_commits_at_its_end(books: Server) -> None:
    env = environment()
    rows = [Row(number, f"title {number}") for number in range(100)]
    execution = JdbcExecutionOptions.builder().with_batch_size(7).build()
    env.from_collection(rows, TYPE).add_sink(JdbcSink.sink(INSERT, TYPE, books.options, execution))
    env.execute()
    assert books.rows("SELECT * FROM books ORDER BY id") == [tuple(row) for row in rows]
    assert books.waiting() == 0


MERGE = (
    "MERGE INTO books USING (VALUES (?, ?)) AS new (id, title) ON books.id = new.id "
    "WHEN MATCHED THEN UPDATE SET title = new.title "
    "WHEN NOT MATCHED THEN INSERT VALUES (new.id, new.title)"
)


@pytest.mark.parametrize(
    ("sql", "title"), [(MERGE, "new"), ("INSERT INTO books VALUES (? + 1, concat(?, '!'))", "new!")]
)
def test_types_that_the_server_cannot_infer_are_those_of_the_declared_type(
    books: Server, sql: str, title: str
) -> None:
    books.run("INSERT INTO books VALUES (1, 'old')")
    env = environment(1)
    env.from_collection([Row(1, "new")], TYPE).add_sink(JdbcSink.sink(sql, TYPE, books.options))
    env.execute()
    assert (title,) in books.rows("SELECT title FROM books")


def test_a_failed_job_writes_no_rows(books: Server) -> None:
    env = environment(1)
    stream = env.from_collection([(1, "a"), (2, "b"), (1, "again")])
    stream.add_sink(JdbcSink.sink(INSERT, TYPE, books.options)).name("to books")
    with pytest.raises(SinkError, match=r"'Sink: to books' \(test_sink\.py:\d+\).* duplicate key"):
        env.execute()
    assert books.rows("SELECT * FROM books") == []
    assert books.waiting() == 0


def test_the_plan_shows_the_sink_as_one_operator_as_flink_does() -> None:
    env = environment()
    env.from_collection([(1, "a")]).add_sink(JdbcSink.sink(INSERT, TYPE, NOWHERE))
    assert "Sink: Unnamed" in env.get_execution_plan()
    assert "Committer" not in env.get_execution_plan()


@pytest.mark.parametrize("form", ["inlined", "interpreted"])
def test_each_epoch_commits_its_rows(books: Server, tmp_path: Path, form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        sink = JdbcSink.sink(UPSERT, TYPE, books.options)
        given(env, "rows").map(lambda row: (row, f"title {row}")).add_sink(sink).uid("books")

    run = EpochRun(draw, tmp_path, 2, form)
    for epoch in range(1, 4):
        ran = run.run(rows=list(range(epoch * 10)))
        before = books.rows("SELECT count(*) FROM books")
        assert before == [(10 * (epoch - 1),)]
        for _ in range(2):  # once more, as a run does that was killed
            commit(run.job, ran.outcome)
        assert books.rows("SELECT count(*) FROM books") == [(10 * epoch,)]
        if epoch == 2:
            run = run.restarted()
    run.close()
    assert books.waiting() == 0


def test_a_sink_can_be_pickled() -> None:
    sink = JdbcSink.sink(INSERT, TYPE, NOWHERE)
    again: Any = pickle.loads(pickle.dumps(sink))
    assert repr(again) == repr(sink) == f"JdbcSink({INSERT!r})"


def test_a_type_with_another_number_of_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="with 2 parameters, but a type of 1 fields"):
        JdbcSink.sink(INSERT, Types.ROW([Types.INT()]), NOWHERE)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((1, TYPE, NOWHERE), "a statement as text"),
        ((INSERT, Types.INT(), NOWHERE), "Types.ROW"),
        ((INSERT, TYPE, "jdbc:postgresql:b"), "JdbcConnectionOptions"),
        ((INSERT, TYPE, NOWHERE, 5000), "JdbcExecutionOptions"),
    ],
)
def test_arguments_of_other_types_are_refused(arguments: Any, wanted: str) -> None:
    with pytest.raises(TypeError, match=f"it takes .*{wanted}"):
        JdbcSink.sink(*arguments)
