from __future__ import annotations

import logging

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.execution import check_live_job_settings, submit
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.client import JobStatus

PATIENCE_S = 60


def endless(settings: dict[str, str]) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in ({"execution.target": "local"} | settings).items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=1)
    env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
    return env


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("execution.state-recovery.path", "checkpoints/chk-3"),
        ("execution.state-recovery.ignore-unclaimed-state", "True"),
        ("opchain.streaming.trigger", "available-now"),
    ],
)
def test_what_would_change_the_job_is_refused(key: str, value: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        submit(endless({key: value}).program("numbers"))
    assert str(caught.value) == (
        "job 'numbers' never ends and runs in this process (execution.target = local), where there are neither "
        f"checkpoints nor epochs, and {key} = {value} asks for them: run it on Spark (execution.target = spark), "
        "or leave that out"
    )


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("execution.checkpointing.dir", "checkpoints", "checkpoints"),
        ("execution.checkpointing.interval", "10 s", "10000"),
        ("execution.checkpointing.min-pause", "1 s", "1000"),
        ("execution.checkpointing.num-retained", "3", "3"),
        ("execution.checkpointing.tolerable-failed-checkpoints", "2", "2"),
        ("opchain.streaming.record-epochs", "true", "True"),
        ("opchain.streaming.progress-log", "epochs.jsonl", "epochs.jsonl"),
    ],
)
def test_what_does_nothing_is_named_in_a_warning(
    caplog: pytest.LogCaptureFixture, key: str, value: str, shown: str
) -> None:
    env = endless({key: value})
    with caplog.at_level(logging.WARNING, "opchain.job"):
        check_live_job_settings(env.program("numbers"), "numbers")
    (message,) = caplog.messages
    assert message == (
        "job 'numbers' never ends and runs in this process (execution.target = local), without checkpoints: its "
        f"state ends with it, and {key} = {shown} will do nothing; on Spark it has them"
    )


def test_all_of_it_is_one_warning_and_the_job_runs(caplog: pytest.LogCaptureFixture) -> None:
    env = endless({})
    env.enable_checkpointing(5_000)
    env.add_epoch_listener(print)
    with caplog.at_level(logging.WARNING, "opchain.job"):
        run = submit(env.program("numbers"))
    run.cancel().result(PATIENCE_S)
    assert run.get_job_status().result() is JobStatus.CANCELED
    (message,) = caplog.messages
    assert "execution.checkpointing.interval = 5000, add_epoch_listener will do nothing" in message
    with pytest.raises(
        UnsupportedFeatureError, match=r"trigger_savepoint: an unbounded job that runs in"
    ):
        run.trigger_savepoint()


def test_nothing_is_said_where_nothing_was_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    check_live_job_settings(endless({}).program("numbers"), "numbers")
    assert caplog.messages == []
