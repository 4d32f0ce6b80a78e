from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form

from opchain.datastream.functions import SinkFunction
from opchain.runtime.functions.sink import Committer, Sink, SinkWriter
from opchain.runtime.local.job import local_run
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.testing.operator_harness import OneInputOperatorHarness

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Writer(SinkWriter[Any]):
    """Records the calls of its methods."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def write(self, value: Any, timestamp: int | None) -> None:
        self.log.append(("write", value, timestamp))

    def flush(self, *, end_of_input: bool) -> None:
        self.log.append(("flush", end_of_input))

    def prepare_commit(self) -> Sequence[Any]:
        self.log.append("prepare")
        return ["one", "two"]

    def close(self) -> None:
        self.log.append("close")


class LogSink(Sink[Any]):
    def __init__(self) -> None:
        self.log: list[Any] = []

    def create_writer(self, context: Any) -> SinkWriter[Any]:
        self.log.append(("create", context.get_index_of_this_subtask()))
        return Writer(self.log)


# Writers


def test_the_methods_of_a_writer_are_called_in_order() -> None:
    sink = LogSink()
    with OneInputOperatorHarness(specs.SinkWriterSpec(sink)) as harness:
        harness.process_element("a", 5)
        harness.process_element("b")
        harness.end_input()
        assert harness.values() == ["one", "two"]
    assert sink.log == [
        *(("create", 0), ("write", "a", 5), ("write", "b", None)),
        *(("flush", True), "prepare", "close"),
    ]


@pytest.mark.parametrize(("timestamps", "expected"), [(None, [None, None]), ([7, None], [7, None])])
def test_a_batch_is_written_record_by_record_unless_write_batch_is_overridden(
    timestamps: Any, expected: list[int | None]
) -> None:
    sink = LogSink()
    with OneInputOperatorHarness(specs.SinkWriterSpec(sink)) as harness:
        operator: Any = harness.operator
        operator.write_batch(["a", "b"], timestamps)
    assert sink.log[1:3] == [
        ("write", value, time) for value, time in zip("ab", expected, strict=True)
    ]


def test_a_writer_that_was_never_created_is_not_closed() -> None:
    sink = LogSink()
    OneInputOperatorHarness(specs.SinkWriterSpec(sink)).close()
    assert sink.log == []


@pytest.mark.parametrize("form", FORMS)
def test_a_writer_is_closed_when_an_operator_upstream_fails(form: str, tmp_path: Path) -> None:
    def draw(env: Any) -> None:
        env.from_sequence(0, 3).map(lambda x: 1 // x).sink_to(Files(tmp_path))

    run = local_run(job_of(draw, form)).run_here()
    assert isinstance(run.get_job_execution_result().exception(), ZeroDivisionError)
    assert (tmp_path / "closed 0").exists()


# Committers


class Files(Sink[Any]):
    """Writes a file for each call."""

    has_committer = True

    def __init__(self, folder: Path, fails: str = "") -> None:
        self.folder = folder
        self.fails = fails

    def create_writer(self, context: Any) -> SinkWriter[Any]:
        return FileWriter(self.folder, context.get_index_of_this_subtask())

    def create_committer(self) -> Committer:
        return FileCommitter(self.folder, self.fails)


class FileWriter(SinkWriter[Any]):
    def __init__(self, folder: Path, subtask: int) -> None:
        self.folder = folder
        self.subtask = subtask
        self.values: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self.values.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        return [(self.subtask, self.values)]

    def close(self) -> None:
        with (self.folder / f"closed {self.subtask}").open("x"):
            pass


class FileCommitter(Committer):
    def __init__(self, folder: Path, fails: str) -> None:
        self.folder = folder
        self.fails = fails

    def commit(self, committables: Sequence[Any]) -> None:
        with (self.folder / "committed").open("x") as file:  # a second time would fail
            file.write(repr(sorted(committables)))
        if "commit" in self.fails:
            raise OSError("disk full")

    def close(self) -> None:
        (self.folder / "committer closed").touch()
        if "close" in self.fails:
            raise OSError("disk gone")


@pytest.mark.parametrize("form", FORMS)
def test_all_committables_are_committed_together_and_once(form: str, tmp_path: Path) -> None:
    def draw(env: Any) -> None:
        env.from_sequence(1, 4).sink_to(Files(tmp_path))

    local_run(job_of(draw, form, parallelism=2)).run_here().get_job_execution_result().result()
    assert (tmp_path / "committed").read_text() == "[(0, [1, 2]), (1, [3, 4])]"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("closed 0", "closed 1", "committed", "committer closed"),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_failed_job_commits_nothing(form: str, tmp_path: Path) -> None:
    """Not even the committables of the subtask that succeeded."""

    def draw(env: Any) -> None:
        env.from_sequence(1, 4).map(lambda x: 1 // (x - 4)).sink_to(Files(tmp_path))

    run = local_run(job_of(draw, form, parallelism=2)).run_here()
    assert isinstance(run.get_job_execution_result().exception(), ZeroDivisionError)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("closed 0", "closed 1", "committer closed"),  # the committer is asked to discard orphans
    ]


@pytest.mark.parametrize(
    ("fails", "raised", "notes"),
    [
        ("commit", "disk full", ["while committing 'it: Committer' (test_sinks.py:"]),
        (
            "commit close",
            "disk full",
            [
                "and then closing failed: OSError: disk gone",
                "while committing 'it: Committer' (test_sinks.py:",
                "and then sinks could not clean up: OSError: disk gone",
            ],
        ),
        (
            "close",
            "disk gone",
            [
                "while committing 'it: Committer' (test_sinks.py:",
                "and then sinks could not clean up: OSError: disk gone",
            ],
        ),
    ],
)
def test_an_error_of_the_committer_fails_the_job_and_the_committer_is_closed(
    fails: str, raised: str, notes: list[str], tmp_path: Path
) -> None:
    def draw(env: Any) -> None:
        env.from_sequence(1, 4).sink_to(Files(tmp_path, fails)).name("it")

    error = local_run(job_of(draw)).run_here().get_job_execution_result().exception()
    assert isinstance(error, OSError)
    assert str(error).partition("\n")[0] == raised
    found = error.__notes__  # type: ignore[attr-defined]
    assert all(note.startswith(start) for note, start in zip(found, notes, strict=True))
    assert (tmp_path / "committer closed").exists()


def test_a_committer_operator_sends_committables_to_the_driver() -> None:
    with OneInputOperatorHarness(specs.SinkCommitterSpec(LogSink())) as harness:
        harness.process_element("one")
        harness.process_element("two")
        assert harness.sent_to_driver == [("commit", 0, "one"), ("commit", 0, "two")]
        assert harness.values() == []


# Collecting sinks


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 3, 4096])
def test_collected_records_are_in_order_and_complete(batch_size: int, form: str) -> None:
    ran = run_form(
        lambda env: env.from_sequence(1, 2_500).map(lambda x: -x).collect_async(),
        form,
        batch_size=batch_size,
    )
    uid = ran.job.vertices[0].operators[-1].uid
    assert uid is not None
    assert list(ran.outcome.collected(uid)) == [-x for x in range(1, 2_501)]


@pytest.mark.parametrize(("limit", "sent"), [(None, 5), (2, 2), (3, 3), (9, 5)])
def test_records_beyond_the_limit_are_not_sent_to_the_driver(limit: int | None, sent: int) -> None:
    with OneInputOperatorHarness(specs.CollectSinkSpec(limit=limit)) as harness:
        for number in range(5):
            harness.process_element(number)
        assert [value for _, _, values in harness.sent_to_driver for value in values] == list(
            range(sent)
        )


# Sink functions


class Sees(SinkFunction[Any]):
    def __init__(self) -> None:
        self.log: list[Any] = []

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.log.append(
            (
                value,
                context.timestamp(),
                context.current_watermark(),
                context.current_processing_time(),
            )
        )

    def finish(self) -> None:
        self.log.append("finish")

    def close(self) -> None:
        self.log.append("close")


def test_a_sink_function_gets_record_timestamp_and_clocks() -> None:
    function = Sees()
    with OneInputOperatorHarness(specs.LegacySinkSpec(function)) as harness:
        harness.process_element("a", 5)
        harness.process_watermark(6)
        harness.set_processing_time(70)
        harness.process_element("b")
        harness.operator.finish()
    assert function.log == [
        *(("a", 5, -(2**63), 0), ("b", None, 6, 70)),
        *("finish", "close"),
    ]
