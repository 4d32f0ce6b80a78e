"""Compaction of FileSink: each record is visible once, even if the commit is interrupted."""

from __future__ import annotations

import itertools
import logging
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from file_sinks import commit, sink_to, visible, written
from forms import job_of

from opchain.common import Encoder
from opchain.datastream import RuntimeExecutionMode
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
)
from opchain.datastream.formats.csv import CsvBulkWriters, CsvSchema
from opchain.runtime.connectors import staged_files
from opchain.runtime.connectors.staged_files import StagedFile, _digest, _Staging
from opchain.runtime.errors import SinkError, UnsupportedFeatureError
from opchain.runtime.files.file_systems import LocalFileSystem
from opchain.runtime.functions.sink import SinkOrigin
from opchain.runtime.local.job import local_run

if TYPE_CHECKING:
    from pathlib import Path


def strategy(size: int | None = None, threads: int = 1) -> FileCompactStrategy:
    builder = FileCompactStrategy.builder().set_num_compact_threads(threads)
    builder.enable_compaction_on_checkpoint(1)
    return (builder if size is None else builder.set_size_threshold(size)).build()


def compacting(
    path: Path, delimiter: bytes | None = None, size: int | None = None, **changes: Any
) -> FileSink[str]:
    compact = (strategy(size, threads=2), FileCompactor.concat_file_compactor(delimiter))
    return sink_to(path, compact=compact, **changes)


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element: str, timestamp: int | None, processing_time: int) -> str:
        return element[0]


def of_subtasks(sink: FileSink[str], *records: str, checkpoint_id: int | None = 1) -> list[Any]:
    """A file of each subtask for one checkpoint."""
    return [
        file
        for subtask, record in enumerate(records)
        for file in written(sink, record, subtask=subtask, checkpoint_id=checkpoint_id)
    ]


@pytest.mark.parametrize("checkpoint_id", [None, 1])
def test_files_of_one_commit_are_merged_into_one(tmp_path: Path, checkpoint_id: int | None) -> None:
    sink = compacting(tmp_path)
    committables = of_subtasks(sink, "a", "b", "c", checkpoint_id=checkpoint_id)
    for _ in range(2):  # a commit may be repeated
        commit(sink, committables)
        assert visible(tmp_path) == [("compacted-part-ID-0", "a\nb\nc\n")]


def test_each_bucket_and_each_checkpoint_has_its_own_merged_file(tmp_path: Path) -> None:
    sink = compacting(tmp_path, b"--\n", bucket_assigner=ByFirstLetter())
    for checkpoint_id in (1, 2):
        commit(sink, of_subtasks(sink, "a1", "b", "a2", checkpoint_id=checkpoint_id))
    assert visible(tmp_path) == [
        *[("a/compacted-part-ID-0", "a1\n--\na2\n")] * 2,
        *[("b/compacted-part-ID-0", "b\n")] * 2,
    ]


def test_a_merged_file_is_complete_if_it_has_the_expected_size(tmp_path: Path) -> None:
    sink = compacting(tmp_path, size=4)
    commit(sink, of_subtasks(sink, *"abcde"))
    assert [text for _, text in visible(tmp_path)] == ["a\nb\n", "c\nd\n", "e\n"]


class Killed(BaseException):
    pass


CALLS = ("create", "complete", "delete", "move", "sync_folder", "open_input", "touch")


@pytest.mark.parametrize("is_known", [True, False], ids=["repeated", "checkpoint damaged"])
def test_a_commit_killed_at_any_call_is_completed_without_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """Without metadata, the next driver knows the files of an interrupted commit from its list."""
    left = 0
    for name in CALLS:
        original = getattr(LocalFileSystem, name)

        def call(self: Any, *args: Any, original: Any = original) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            return original(self, *args)

        monkeypatch.setattr(LocalFileSystem, name, call)
    killed = 0
    for steps in range(1, 200):
        folder = tmp_path / str(steps)
        left = 0
        sink = compacting(folder)
        committables = of_subtasks(sink, "a", "b", "c")
        left = steps
        try:
            commit(sink, committables)
        except Killed:
            killed += 1
        else:
            break
        left = 0
        # Readers never see a record twice, or a partial file.
        assert visible(folder) in ([], [("compacted-part-ID-0", "a\nb\nc\n")])
        committer = sink.create_committer()
        if is_known:
            committer.commit(committables)
        else:
            committer.discard_orphans(SinkOrigin(), lambda: None)
            assert not list(folder.rglob(".*-*"))  # parts and lists
        if is_known or committer.last_commit(SinkOrigin()) is not None:
            assert visible(folder) == [("compacted-part-ID-0", "a\nb\nc\n")]
    assert killed >= 10


class Paused:
    """A commit on a thread of its own, which can pause before one of its calls."""

    def __init__(self, sink: FileSink[str], committables: list[Any], before: int) -> None:
        self._left = before
        self._paused, self._goes_on = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(sink, committables))

    def start(self) -> None:
        """Returns when the commit pauses or ends."""
        self._thread.start()
        assert self._paused.wait(60)

    def finish(self) -> BaseException | None:
        self._goes_on.set()
        self._thread.join(60)
        return self._error

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._paused.set()
            assert self._goes_on.wait(60)

    def _run(self, sink: FileSink[str], committables: list[Any]) -> None:
        _of_thread.set(self)
        try:
            commit(sink, committables)
        except Exception as error:  # noqa: BLE001 - the test checks it
            self._error = error
        finally:
            self._paused.set()


_of_thread: ContextVar[Paused | None] = ContextVar("of_thread", default=None)


class AtOnce:
    """Merges on the thread of the commit instead of in a pool."""

    def __init__(self, threads: int) -> None: ...

    def __enter__(self) -> AtOnce:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None: ...

    map = staticmethod(map)


def test_two_drivers_merge_the_same_files_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first driver is frozen at any step, and continues at any step of the second."""
    for name in (*CALLS, "content"):
        original = getattr(LocalFileSystem, name)

        def call(self: Any, *args: Any, original: Any = original) -> Any:
            paused = _of_thread.get()
            if paused is not None:
                paused.step()
            return original(self, *args)

        monkeypatch.setattr(LocalFileSystem, name, call)
    monkeypatch.setattr(staged_files, "ThreadPoolExecutor", AtOnce)
    for steps in itertools.product(range(1, 20), repeat=2):
        folder = tmp_path / "-".join(map(str, steps))
        sink = compacting(folder)
        committables = of_subtasks(sink, "a", "b")
        first, second = (Paused(sink, committables, before) for before in steps)
        first.start()
        second.start()
        first.finish()  # the commit may fail, since this driver was replaced
        second.finish()  # this commit may fail, too, and then the job starts again
        commit(sink, committables)
        assert visible(folder) == [("compacted-part-ID-0", "a\nb\n")], steps


def test_files_that_were_removed_before_the_merge_are_an_error(tmp_path: Path) -> None:
    sink = compacting(tmp_path)
    committables: list[StagedFile] = of_subtasks(sink, "a", "b")
    LocalFileSystem().delete(committables[0].staged)
    with pytest.raises(SinkError, match=r"1 of 2 files of checkpoint 1 were removed"):
        commit(sink, committables)
    staging = _Staging(committables[0].folder)
    LocalFileSystem().touch(staging.path_of((1, _digest(committables))))
    with pytest.raises(SinkError, match=r"removed before they were merged into .*compacted-part"):
        commit(sink, committables)


def test_a_job_writes_one_file_with_all_records(tmp_path: Path) -> None:
    def draw(env: Any) -> None:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        numbers = env.from_sequence(1, 1000).rebalance().map(str)
        numbers.sink_to(compacting(tmp_path))

    local_run(job_of(draw, parallelism=4)).run_here()
    ((name, text),) = visible(tmp_path)
    assert name == "compacted-part-ID-0"
    assert sorted(map(int, text.split())) == list(range(1, 1001))


def test_formats_that_cannot_be_merged_are_refused_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    concat = FileCompactor.concat_file_compactor()
    assert builder.enable_compact(strategy(), concat).disable_compact().build().compaction is None
    with pytest.raises(TypeError, match="it takes a FileCompactStrategy"):
        builder.enable_compact(None, None)
    with pytest.raises(ValueError, match=r"needs a number of checkpoints or a size"):
        FileCompactStrategy.builder().build()
    with pytest.raises(
        ValueError, match="set_size_threshold got 0; it takes a number of at least 1"
    ):
        FileCompactStrategy.builder().set_size_threshold(0)
    with pytest.raises(UnsupportedFeatureError, match="identical_file_compactor"):
        FileCompactor.identical_file_compactor()
    bulk = FileSink.for_bulk_format(
        str(tmp_path), CsvBulkWriters.for_schema(CsvSchema.builder().build())
    )
    with pytest.raises(UnsupportedFeatureError, match=r"enable_compact.* of a bulk format"):
        bulk.enable_compact(strategy(), concat)
    with caplog.at_level(logging.WARNING, "opchain.job"):
        FileCompactStrategy.builder().enable_compaction_on_checkpoint(5)
    (message,) = caplog.messages
    assert "merges the files of each checkpoint, not of 5 checkpoints" in message
