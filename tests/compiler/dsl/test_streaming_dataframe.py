"""The requirements of `to_dataframe` of unbounded streams. tests/spark/streaming/test_committed_records.py runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.dsl.stream_dataframe import PlannedStreamingDataFrame, never_ends
from opchain.compiler.interception import capturing
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import GraphError, UnsupportedFeatureError

if TYPE_CHECKING:
    from opchain.datastream import DataStream


def endless(**settings: str) -> DataStream[Any]:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(KEYS[key], value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = DataGeneratorSource(lambda index: index, records_per_second=1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


KEYS = {"target": "execution.target", "checkpoints": "execution.checkpointing.dir"}


def sinks_of(stream: DataStream[Any]) -> list[Any]:
    return stream.get_execution_environment().get_transformations()


def test_planning_a_program_continues_after_a_streaming_dataframe() -> None:
    with capturing() as capture:
        stream = endless(checkpoints="/checkpoints").map(lambda n: n).uid("evens/odd")
        dataframe = stream.to_dataframe("bigint")
        query = dataframe.where(dataframe["n"]).writeStream.format("noop").start()
        stream.get_execution_environment().execute("job")
        assert query.awaitTermination()
    assert isinstance(dataframe, PlannedStreamingDataFrame)
    assert dataframe.isStreaming
    assert not hasattr(dataframe, "__array__")
    (job,) = capture.jobs
    end = job.program.transformations[-1]
    assert (end.name, end.uid) == ("DataFrame", "evens/odd to DataFrame")
    folder = end.spec.sink.base_path  # type: ignore[attr-defined]
    assert folder.startswith("/checkpoints/dataframes/")
    assert "odd" not in folder


def test_a_streaming_dataframe_writes_to_the_folder_of_its_uid_or_a_given_one() -> None:
    with capturing():
        plain = endless(checkpoints="/checkpoints").uid("numbers")
        plain.to_dataframe("bigint")
        plain.to_dataframe("bigint", path="/else/where")
        folders = [end.spec.sink.base_path for end in sinks_of(plain)]
    assert folders == ["/checkpoints/dataframes/numbers", "/else/where"]


def test_two_streaming_dataframes_with_the_same_folder_are_refused() -> None:
    with capturing():
        stream = endless(checkpoints="/checkpoints").uid("numbers")
        stream.to_dataframe("bigint")
        with pytest.raises(
            GraphError, match="another DataFrame of this program already writes its files to"
        ):
            stream.to_dataframe("bigint")


def test_a_streaming_dataframe_with_checkpoints_needs_a_uid() -> None:
    with capturing(), pytest.raises(GraphError, match=r"'Map' .* has no uid; a job"):
        endless(checkpoints="/checkpoints").map(lambda n: n).to_dataframe("bigint")
    with capturing():
        endless().map(lambda n: n).to_dataframe("bigint")


def test_to_dataframe_is_refused_in_process() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"execution.target = local"):
        endless(target="local").to_dataframe("bigint")


@pytest.mark.parametrize("argument", [{"path": "/files"}, {"options": {}}])
def test_to_dataframe_of_a_bounded_stream_refuses_a_folder(argument: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(GraphError, match="is bounded, so its DataFrame needs no files"):
        env.from_sequence(1, 3).to_dataframe("bigint", **argument)


def test_any_unbounded_source_makes_a_stream_unbounded() -> None:
    stream = endless()
    bounded = stream.get_execution_environment().from_sequence(1, 3)
    assert not never_ends(bounded.map(lambda n: n).transformation)
    union = bounded.union(stream.key_by(lambda n: n).map(lambda n: n))
    assert never_ends(union.map(lambda n: n).transformation)
