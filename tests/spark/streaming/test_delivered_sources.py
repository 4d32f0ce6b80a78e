"""Which sources an unbounded job on Spark supports, and errors about the others."""

from __future__ import annotations

import queue
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of, notes_of

from opchain.common import WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.epochs.delivered_sources import unbounded_sources
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.functions.source_sink_functions import SourceFunction
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opchain.spark import EpochProgress

LONGEST_S = 240


class Forever(SourceFunction[int]):
    def run(self, ctx: Any) -> None:
        threading.Event().wait()

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (
            lambda env: env.add_source(Forever(), "forever"),
            (
                "'Source: forever'",
                "no positions to resume from after a failure",
                "write it as an UnboundedSource of opchain.spark",
                "execution.target = local",
            ),
        ),
        (
            lambda env: env.socket_text_stream("example.org", 99),
            (
                "no positions to resume from after a failure",
                "read it by SparkSource('socket', dict(host='example.org', port=99), is_streaming=True)",
            ),
        ),
    ],
    ids=["SourceFunction", "socket"],
)
def test_a_source_function_is_refused_and_the_error_suggests_another_source(
    draw: Callable[[StreamExecutionEnvironment], Any], told: tuple[str, ...]
) -> None:
    job = job_of(lambda env: draw(env).print())
    with pytest.raises(UnsupportedFeatureError) as caught:
        unbounded_sources(job)
    assert [text for text in told if text not in str(caught.value)] == []


def test_sources_with_positions_are_numbered_by_operator_id() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        streams = [
            env.from_source(
                DataGeneratorSource(lambda n: n, records_per_second=rate),
                WatermarkStrategy.no_watermarks(),
                f"of {rate}",
            ).uid(f"of {rate}")
            for rate in (1, 2, 3)
        ]
        streams[0].union(*streams[1:], env.from_collection([1])).print()

    job = job_of(draw)
    found = unbounded_sources(job)
    ids = {vertex.first_task: vertex.operators[0].operator_id for vertex in job.vertices}
    assert len(found) == 3
    assert [ids[source.first_task] for source in found] == sorted(
        ids[source.first_task] for source in found
    )


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_socket_text_stream_uses_sparks_own_socket_source(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = {"host": "127.0.0.1", "port": str(server.getsockname()[1])}
        source = SparkSource("socket", options, is_streaming=True)
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "texts").uid("texts")
        texts = rows.map(lambda row: row["value"].upper()).collect_async()
        heard: queue.Queue[EpochProgress] = queue.Queue()
        env.add_epoch_listener(heard.put)
        client = env.execute_async("texts")
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"one\ntwo\n")
            assert [next(texts), next(texts)] == ["ONE", "TWO"]
            assert heard.get(timeout=LONGEST_S).job == "texts"
            client.cancel().result(LONGEST_S)


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_an_error_of_spark_about_a_source_names_the_source(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    nowhere = SparkSource("text", path=str(tmp_path / "nowhere"), is_streaming=True)
    env.from_source(nowhere, WatermarkStrategy.no_watermarks(), "lines").print()
    with pytest.raises(Exception, match="PATH_NOT_FOUND") as failure:
        env.execute()
    assert "while making the DataFrame of 'Source: lines'" in notes_of(failure.value)
