"""Records that look like the error of a task reach the driver in Spark's error, and are not unpickled there."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from planted import planted_pickle, planted_texts

from opchain.common import Configuration
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import TaskFailedError
from opchain.runtime.spark.remote_error import ErrorSeal, ExecutorTracebackError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def spark_text(error: BaseException) -> str:
    """The text of Spark's error, before opchain parsed it."""
    cause = error.__cause__
    assert isinstance(cause, ExecutorTracebackError)
    return str(cause.spark_error)


SHAPES = ("unsigned", "invented", "foreign", "mixed")


def test_the_payload_leaves_a_trace_if_it_is_unpickled(tmp_path: Path) -> None:
    pickle.loads(planted_pickle(tmp_path / "read"))
    assert (tmp_path / "read").is_dir()


@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=SHAPES)
def test_a_planted_token_is_not_unpickled(tmp_path: Path, shape: int) -> None:
    text = planted_texts(tmp_path / "ran")[shape]
    assert ErrorSeal().unsealed(f"CAST_INVALID_INPUT: the value '{text}'") is None
    assert not (tmp_path / "ran").exists()


def test_a_planted_token_does_not_hide_the_real_one(tmp_path: Path) -> None:
    seal = ErrorSeal()
    planted = " ".join(planted_texts(tmp_path / "ran"))
    parts = seal.unsealed(f"{planted} {seal.sealed(KeyError('mine'))} {planted}")
    assert parts is not None
    assert parts.type_name == "KeyError"
    assert not (tmp_path / "ran").exists()


def test_the_repr_of_a_seal_hides_its_secret() -> None:
    seal = ErrorSeal()
    assert str(seal) == repr(seal) == "ErrorSeal()"
    assert ErrorSeal().secret != seal.secret


@pytest.mark.spark
@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=SHAPES)
def test_a_record_of_a_bounded_job_is_not_unpickled_in_the_driver(
    session: SparkSession, tmp_path: Path, shape: int
) -> None:
    text = planted_texts(tmp_path / "ran")[shape]
    rows = session.createDataFrame([(text,)], "number string").selectExpr("cast(number as int) n")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_dataframe(rows).print()
    with pytest.raises(TaskFailedError) as raised:
        env.execute()
    assert "CAST_INVALID_INPUT" in str(raised.value)
    assert text in spark_text(raised.value), "the record is in the text that the driver reads"
    assert not (tmp_path / "ran").exists()


@pytest.mark.spark
def test_a_record_of_an_unbounded_job_is_not_unpickled_in_the_driver(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "input").mkdir()
    text = planted_texts(tmp_path / "ran")[0]
    (tmp_path / "input" / "lines").write_text(f"{text}\n")
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    rows = session.readStream.text(str(tmp_path / "input")).selectExpr("cast(value as int) n")
    env.from_dataframe(rows).print()
    with pytest.raises(TaskFailedError) as raised:
        env.execute()
    assert "CAST_INVALID_INPUT" in str(raised.value)
    assert text in str(raised.value), "the record is in the text that the driver reads"
    assert not (tmp_path / "ran").exists()
