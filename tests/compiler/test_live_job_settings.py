"""Unbounded jobs in this process: settings that enable epochs, and warnings for sources without positions."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Duration, WatermarkStrategy
from opchain.compiler.execution import runs_in_epochs, submit
from opchain.compiler.graph.plan import required
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import Source
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.functions import SourceFunction
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.client import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.runtime.connectors.watched_files import WatchedFileSource

PATIENCE_S = 60


class Forever(Source[int]):
    """Never ends, and has no positions."""

    is_bounded = False

    def splits(self, parallelism: int) -> list[list[int]]:
        return [[subtask] for subtask in range(parallelism)]

    def read(self, split: int, batch_size: int) -> Iterator[list[int]]:
        while True:
            yield []


def endless(settings: dict[str, str], source: Any = None) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in ({"execution.target": "local"} | settings).items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers: Any = source or DataGeneratorSource(lambda n: n, records_per_second=1)
    env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
    return env


def has_epochs(env: StreamExecutionEnvironment) -> bool:
    program = env.program("numbers")
    return runs_in_epochs(program, required(compile_program(program).job_program))


CHANGE_THE_JOB = [
    ("execution.state-recovery.path", "checkpoints/chk-3"),
    ("execution.state-recovery.ignore-unclaimed-state", "True"),
    ("opchain.streaming.trigger", "available-now"),
]
OF_EPOCHS = [
    ("execution.checkpointing.dir", "checkpoints", "checkpoints"),
    ("execution.checkpointing.interval", "10 s", "10000"),
    ("execution.checkpointing.min-pause", "1 s", "1000"),
    ("execution.checkpointing.num-retained", "3", "3"),
    ("execution.checkpointing.tolerable-failed-checkpoints", "2", "2"),
    ("opchain.streaming.record-epochs", "true", "True"),
    ("opchain.streaming.progress-log", "epochs.jsonl", "epochs.jsonl"),
]


@pytest.mark.parametrize(
    ("key", "value"), [*CHANGE_THE_JOB, *((key, value) for key, value, _ in OF_EPOCHS)]
)
def test_each_setting_of_checkpoints_or_epochs_enables_epochs(
    caplog: pytest.LogCaptureFixture, key: str, value: str
) -> None:
    with caplog.at_level(logging.WARNING, "opchain.job"):
        assert has_epochs(endless({key: value}))
    assert caplog.messages == []


@pytest.mark.parametrize(("key", "value"), CHANGE_THE_JOB)
def test_settings_that_need_positions_are_refused_for_other_sources(key: str, value: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        submit(endless({key: value}, Forever()).program("numbers"))
    told = str(caught.value)
    assert told.startswith(
        "job 'numbers' runs in this process without checkpoints: 'Source: numbers' ("
    )
    assert "never ends" in told
    assert "has no positions to resume from" in told
    assert told.endswith(
        f". These settings need checkpoints: {key} = {value}; read from a source that has positions, or remove them"
    )


@pytest.mark.parametrize(("key", "value", "shown"), OF_EPOCHS)
def test_settings_without_effect_without_positions_cause_a_warning(
    caplog: pytest.LogCaptureFixture, key: str, value: str, shown: str
) -> None:
    with caplog.at_level(logging.WARNING, "opchain.job"):
        assert not has_epochs(endless({key: value}, Forever()))
    (message,) = caplog.messages
    assert message.startswith("job 'numbers' runs in this process without checkpoints: ")
    assert message.endswith(f". Its state is lost when it ends; without effect: {key} = {shown}")


def test_several_settings_without_effect_cause_one_warning_and_the_job_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = endless({}, Forever())
    env.enable_checkpointing(5_000)
    env.add_epoch_listener(print)
    with caplog.at_level(logging.WARNING, "opchain.job"):
        run = submit(env.program("numbers"))
    run.cancel().result(PATIENCE_S)
    assert run.get_job_status().result() is JobStatus.CANCELED
    (message,) = caplog.messages
    assert "execution.checkpointing.interval = 5000, add_epoch_listener" in message
    with pytest.raises(UnsupportedFeatureError, match=r"trigger_savepoint: .* without checkpoints"):
        run.trigger_savepoint()


def test_without_checkpoint_settings_there_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert not has_epochs(endless({}))
    assert not has_epochs(endless({}, Forever()))
    assert caplog.messages == []


class Counts(SourceFunction):
    """Ends, and does not say so."""

    def run(self, ctx: Any) -> None:
        ctx.collect(1)

    def cancel(self) -> None:
        """Has ended by then."""


def test_enabling_checkpoints_for_a_source_function_causes_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.enable_checkpointing(5_000)
    env.add_source(Counts(), "counts").print()
    with caplog.at_level(logging.WARNING, "opchain.job"):
        env.execute("counts")
    (message,) = caplog.messages
    assert message.startswith("job 'counts' runs in this process without checkpoints: ")
    assert "is a SourceFunction" in message
    assert message.endswith("; without effect: execution.checkpointing.interval = 5000")


def watched(folder: Path) -> WatchedFileSource:
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder))
    return source.monitor_continuously(Duration.of_millis(20)).build()


def test_a_watched_folder_enables_epochs_without_a_setting(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")
    env = endless({}, watched(tmp_path))
    assert has_epochs(env)
    lines = endless({}, watched(tmp_path)).from_source(
        watched(tmp_path), WatermarkStrategy.no_watermarks(), "lines"
    )
    found = []
    with lines.execute_and_collect() as records:
        for record in records:
            found.append(record)
            if len(found) == 2:
                (tmp_path / "b.txt").write_text("3\n")
            if len(found) == 3:
                break
    assert found == ["1", "2", "3"]


def test_a_watched_folder_beside_a_source_without_positions_is_refused(tmp_path: Path) -> None:
    env = endless({}, watched(tmp_path))
    env.from_source(Forever(), WatermarkStrategy.no_watermarks(), "forever").print()
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"'Source: numbers' \(.*\) is read in epochs, and 'Source: forever'",
    ):
        has_epochs(env)
