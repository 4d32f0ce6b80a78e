"""Staged files between their writer and their commit: no record is lost or written twice."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest
from file_sinks import WRITER_ID, commit, discard, sink_to, visible, writer_with, written

from opchain.common import Encoder
from opchain.runtime.connectors.file_buckets import BucketAssigner
from opchain.runtime.connectors.file_sink import FileSink
from opchain.runtime.errors import CheckpointInUseError, SinkError
from opchain.runtime.files.file_systems import LocalFileSystem, file_system_of, name_of
from opchain.runtime.functions.sink import SinkOrigin


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element: str, timestamp: int | None, processing_time: int) -> str:
        return element[0]


def test_committing_again_changes_nothing(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    for checkpoint_id in (None, 1):
        committables = written(sink, "a", checkpoint_id=checkpoint_id)
        commit(sink, committables)
        commit(sink, committables)
    assert visible(tmp_path) == [("part-ID-0", "a\n"), ("part-ID-0", "a\n")]


@pytest.mark.parametrize("checkpoint_id", [None, 1])
def test_a_commit_adds_a_marker_to_the_folders_with_new_files(
    tmp_path: Path, checkpoint_id: int | None
) -> None:
    sink = sink_to(tmp_path, bucket_assigner=ByFirstLetter(), success_file="_DONE")
    (tmp_path / "c").mkdir()
    committables = written(sink, "a1", "b1", checkpoint_id=checkpoint_id)
    assert not list(tmp_path.rglob("_DONE"))
    for _ in range(2):  # the second time, no file is left to move
        commit(sink, committables)
        assert sorted(each.parent.name for each in tmp_path.rglob("_DONE")) == ["a", "b"]
    commit(sink, written(sink, "a2", checkpoint_id=2))
    assert sorted(each.parent.name for each in tmp_path.rglob("_DONE")) == ["a", "b"]


def test_a_finished_job_leaves_only_its_output(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    commit(sink, written(sink, "a"))
    (file,) = tmp_path.iterdir()
    assert file.read_text() == "a\n"


def test_files_of_earlier_jobs_are_kept(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    for record in ("first", "second"):
        commit(sink, written(sink, record))
    assert visible(tmp_path) == [("part-ID-0", "first\n"), ("part-ID-0", "second\n")]


@pytest.mark.parametrize("is_moved", [True, False], ids=["moved", "deleted"])
def test_the_name_of_a_removed_file_is_not_used_again(tmp_path: Path, is_moved: bool) -> None:
    output, archive = tmp_path / "output", tmp_path / "archive"
    archive.mkdir()
    names = set()
    for run in range(3):  # each run has a writer that counts from 0
        sink = sink_to(output)
        commit(sink, written(sink, f"run {run}", checkpoint_id=run + 1))
        (file,) = (found for found in output.iterdir() if found.is_file())
        names.add(file.name)
        if is_moved:
            file.rename(archive / file.name)
        else:
            file.unlink()
    assert len(names) == 3
    if is_moved:
        assert sorted(file.read_text() for file in archive.iterdir()) == [
            "run 0\n",
            "run 1\n",
            "run 2\n",
        ]


def test_an_interrupted_commit_resumes_although_a_reader_moved_its_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_to(tmp_path)
    committables = [file for record in "abc" for file in written(sink, record, checkpoint_id=7)]
    move, moved = LocalFileSystem.move, []

    def interrupted(files: LocalFileSystem, path: str, target: str) -> None:
        if moved:
            raise KeyboardInterrupt
        move(files, path, target)
        moved.append(target)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "move", interrupted)
        with pytest.raises(KeyboardInterrupt):
            commit(sink, committables)
    Path(moved[0]).unlink()
    commit(sink, committables)
    assert visible(tmp_path) == [("part-ID-0", "b\n"), ("part-ID-0", "c\n")]


def test_staged_files_that_were_removed_before_the_commit_are_an_error(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    first, second = (written(sink, record, checkpoint_id=7)[0] for record in "ab")
    Path(first.staged).unlink()
    with pytest.raises(
        SinkError,
        match=r"a sink: 1 of 2 files of checkpoint 7 were removed before they were committed: "
        rf"{first.staged}. Nothing was committed; restore the files, or create the empty file (\S+) to continue",
    ) as caught:
        commit(sink, [first, second])
    assert visible(tmp_path) == []
    note = str(caught.value).partition("the empty file ")[2].partition(" ")[0]
    Path(note).touch(exist_ok=False)
    commit(sink, [first, second])
    assert visible(tmp_path) == [("part-ID-0", "b\n")]


def test_staged_files_of_a_job_that_were_removed_before_the_commit_are_an_error(
    tmp_path: Path,
) -> None:
    sink = sink_to(tmp_path)
    (file,) = written(sink, "a")
    Path(file.staged).unlink()
    with pytest.raises(
        SinkError, match=r"1 of 1 files of the job were removed .* run the job again"
    ):
        commit(sink, [file])


def test_a_second_attempt_at_a_committed_checkpoint_is_not_committed(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    first, again = (written(sink, "a", checkpoint_id=3) for _ in range(2))
    commit(sink, first)
    commit(sink, again)
    commit(sink, written(sink, "late", checkpoint_id=2))  # by a run that was replaced
    assert visible(tmp_path) == [("part-ID-0", "a\n")]


def test_last_commit_and_reset_commits_read_and_write_the_commit_note(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    committer, origin = sink.create_committer(), SinkOrigin()
    assert committer.last_commit(origin) is None
    for checkpoint_id in (1, 2, 5):
        commit(sink, written(sink, str(checkpoint_id), checkpoint_id=checkpoint_id))
    assert committer.last_commit(origin) == 5
    committer.reset_commits(origin, 5)
    assert committer.last_commit(origin) == 5
    committer.reset_commits(origin, 4)
    assert committer.last_commit(origin) == 4
    commit(sink, written(sink, "4 again", checkpoint_id=4))
    commit(sink, written(sink, "5 again", checkpoint_id=5))
    assert [text for _, text in visible(tmp_path)] == ["1\n", "2\n", "5\n", "5 again\n"]
    subprocess.run(["/bin/sh", "-c", committer.how_to_reset(origin, 4)], check=True)
    assert committer.last_commit(origin) == 4


def test_a_commit_does_not_list_the_output_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_to(tmp_path)
    listed: list[str] = []
    content = LocalFileSystem.content

    def noted(files: LocalFileSystem, folder: str) -> Any:
        listed.append(folder)
        return content(files, folder)

    monkeypatch.setattr(LocalFileSystem, "content", noted)
    for checkpoint_id in range(1, 4):
        commit(sink, written(sink, "a", checkpoint_id=checkpoint_id))
        discard(sink, "none")
    assert set(listed) == {f"{tmp_path}/.opchain/none.", f"{tmp_path}/.opchain/none.operator"}


@pytest.mark.parametrize("place", ["local", "memory"])
def test_orphans_of_the_same_lineage_are_removed(tmp_path: Path, place: str) -> None:
    url = str(tmp_path / "out") if place == "local" else f"memory://{tmp_path.name}/out"
    builder = FileSink.for_row_format(url, Encoder.simple_string_encoder())
    sink = builder.with_bucket_assigner(ByFirstLetter()).build()
    discard(sink, "killed")  # the folder does not exist yet
    committed = writer_with(sink, "killed")
    committed.write_batch(["a1", "b1"], None)
    committed.flush(end_of_input=False)
    sink.create_committer().commit(committed.prepare_commit_of(1))
    orphaned, other = writer_with(sink, "killed"), writer_with(sink, "killed2")
    for writer in (orphaned, other):
        writer.write_batch(["a2", "b2"], None)
    orphaned.flush(end_of_input=False)  # killed before it wrote anything
    files = file_system_of(sink.base_path)
    discard(sink, "killed")

    def names(*folders: str) -> list[str]:
        found = [files.content(f"{sink.base_path}/{folder}") for folder in folders]
        return sorted(
            WRITER_ID.sub("ID", name_of(file.path))
            for content in found
            if content is not None
            for file in content.files
        )

    (note,) = names(".opchain/killed.operator")
    assert note.startswith("committed-1-")
    # Files of the live writer of another job are kept, and can be committed.
    assert len(names(".opchain/killed2.operator")) == 2
    other.flush(end_of_input=True)
    sink.create_committer().commit(other.prepare_commit_of(1))
    assert names("a", "b") == ["part-ID-0", "part-ID-0", "part-ID-1", "part-ID-1"]


def test_an_orphan_that_its_writer_removes_at_the_same_time_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_to(tmp_path)
    writer = writer_with(sink, "killed")
    writer.write("a", None)
    writer.flush(end_of_input=False)
    delete = LocalFileSystem.delete

    def deleted_before(self: LocalFileSystem, path: str) -> None:
        delete(self, path)
        delete(self, path)

    monkeypatch.setattr(LocalFileSystem, "delete", deleted_before)
    discard(sink, "killed")
    assert list(tmp_path.iterdir()) == []  # the staging folder is removed with its last file


def test_a_file_that_is_begun_during_the_search_for_orphans_is_kept(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    orphaned, later = writer_with(sink, "killed"), writer_with(sink, "killed")
    orphaned.write("a", None)
    orphaned.flush(end_of_input=False)
    discard(sink, "killed", lambda: later.write("b", None))
    later.flush(end_of_input=False)
    sink.create_committer().commit(later.prepare_commit())
    assert visible(tmp_path) == [("part-ID-0", "b\n")]


def test_a_replaced_run_removes_no_orphans(tmp_path: Path) -> None:
    def confirm() -> NoReturn:
        raise CheckpointInUseError("taken over")

    sink = sink_to(tmp_path)
    writer = writer_with(sink, "killed")
    writer.write("a", None)
    writer.flush(end_of_input=False)
    with pytest.raises(CheckpointInUseError, match="taken over"):
        discard(sink, "killed", confirm)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
