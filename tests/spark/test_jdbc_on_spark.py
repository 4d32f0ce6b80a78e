"""Rows of bounded jobs on Spark are written to PostgreSQL once, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from postgres_server import Server, postgres_server

from opchain.common import Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.jdbc import JdbcExecutionOptions, JdbcSink
from opchain.datastream.functions import MapFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

TYPE = Types.ROW([Types.INT(), Types.STRING()])


class FailsFirst(MapFunction[int, Any]):
    """Fails at the last record in the given number of attempts, when other records have been written."""

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts

    def open(self, runtime_context: Any) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value: int) -> Any:
        if value == 100 and self.attempt < self.attempts:
            raise ValueError("not yet")
        return (value, f"number {value}")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def numbers(server: Server) -> Server:
    server.clear()
    server.run("CREATE TABLE numbers (n int PRIMARY KEY, name text)")
    return server


def run(server: Server, failing_attempts: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.configure(_small_batches())
    batches = JdbcExecutionOptions.builder().with_batch_size(7).build()
    sink = JdbcSink.sink("INSERT INTO numbers VALUES (?, ?)", TYPE, server.options, batches)
    env.from_sequence(1, 100).map(FailsFirst(failing_attempts), TYPE).add_sink(sink)
    env.execute("numbers")


def _small_batches() -> Any:
    from opchain.common import Configuration  # noqa: PLC0415

    configuration = Configuration()
    configuration.set_string("opchain.batch-size", "10")
    return configuration


def test_rows_of_retried_tasks_are_written_once(numbers: Server) -> None:
    run(numbers, 2)
    assert numbers.rows("SELECT * FROM numbers ORDER BY n") == [
        (n, f"number {n}") for n in range(1, 101)
    ]
    assert numbers.waiting() == 0


def test_a_failed_job_writes_no_rows(numbers: Server) -> None:
    with pytest.raises(ValueError, match="not yet"):
        run(numbers, 3)
    assert numbers.rows("SELECT * FROM numbers") == []
    assert numbers.waiting() == 0
