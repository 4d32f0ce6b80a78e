"""The conformance tests for sinks pass correct sinks, and say what is wrong with others."""

from __future__ import annotations

import json
import os
import shutil
import unittest
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Encoder
from opchain.datastream.connectors import CommitSink, FileSink, OutboxSink
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
)
from opchain.testing import SinkConformance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.datastream.connectors import SinkEpoch


pytestmark = pytest.mark.slow


class FolderSink(CommitSink[str]):
    """One file per stage, which the commit renames."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stage(self, owner: str, records: Sequence[str]) -> str:
        staged = self.folder / ".staged" / owner / uuid.uuid4().hex
        staged.parent.mkdir(parents=True, exist_ok=True)
        staged.write_text(json.dumps(records))
        return str(staged)

    def commit(self, epoch: SinkEpoch, staged: Sequence[str]) -> None:
        for path in map(Path, staged):
            if path.exists():
                path.rename(self.folder / f"{path.name}.json")

    def abort(self, owner: str) -> None:
        staged = list((self.folder / ".staged" / owner).glob("*"))
        self.confirm()
        for path in staged:
            path.unlink(missing_ok=True)


class Folder(SinkConformance):
    most_failures = 40
    kind: Any = FolderSink

    def make_sink(self, target: Path) -> Any:
        return self.kind(target)

    def visible(self, target: Path) -> list[str]:
        return [value for file in target.glob("*.json") for value in json.loads(file.read_text())]

    def staged(self, target: Path) -> list[Path]:
        return [path for path in target.glob(".staged/*/*") if path.is_file()]


class TestFolder(Folder):
    pass


class Idempotent(OutboxSink[str]):
    """Recognizes a repeated request by its key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def send(self, key: str, records: Sequence[str]) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{key}.new").write_text(json.dumps(records))
        (self.folder / f"{key}.new").rename(self.folder / f"{key}.json")


class TestOutbox(Folder):
    most_failures = 30
    kind = Idempotent

    def staged(self, target: Path) -> list[Path]:
        staging = target.parent / f"{target.name}.staging"
        files = [path for path in staging.rglob("*") if path.is_file()]
        return [path for path in files if not path.name.startswith("sent-")]


class TestFileSink(SinkConformance):
    most_failures = 1000  # all lines

    def make_sink(self, target: Path) -> Any:
        builder = FileSink.for_row_format(str(target), Encoder.simple_string_encoder())
        return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()

    def visible(self, target: Path) -> list[str]:
        return [line for file in target.glob("part-*") for line in file.read_text().splitlines()]

    def staged(self, target: Path) -> list[Path]:
        return list(target.glob(".opchain/*/.part*"))


class TestCompactingFileSink(TestFileSink):
    most_failures = 20

    def make_sink(self, target: Path) -> Any:
        builder = FileSink.for_row_format(str(target), Encoder.simple_string_encoder())
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build()
        return builder.enable_compact(strategy, FileCompactor.concat_file_compactor()).build()

    def visible(self, target: Path) -> list[str]:
        files = target.glob("compacted-part-*")
        return [line for file in files for line in file.read_text().splitlines()]

    def staged(self, target: Path) -> list[Path]:
        return [*super().staged(target), *target.glob(".opchain/*/.compacted*")]


class Doubling(FolderSink):
    """Writes output again that was committed before."""

    def commit(self, epoch: SinkEpoch, staged: Sequence[str]) -> None:
        for path in map(Path, staged):
            if path.exists():
                shutil.copy(path, self.folder / f"{uuid.uuid4().hex}.json")


class Losing(FolderSink):
    """Deletes before it writes: a kill in between loses records."""

    def commit(self, epoch: SinkEpoch, staged: Sequence[str]) -> None:
        for path in map(Path, staged):
            if path.exists():
                text = path.read_text()
                path.unlink()
                (self.folder / f"{path.name}.json").write_text(text)


class Early(FolderSink):
    """Makes records visible before their checkpoint is complete."""

    def stage(self, owner: str, records: Sequence[str]) -> str:
        staged = super().stage(owner, records)
        os.link(staged, self.folder / f"{uuid.uuid4().hex}.json")
        return staged

    def commit(self, epoch: SinkEpoch, staged: Sequence[str]) -> None:
        pass


class Hasty(FolderSink):
    """Confirms that it is still the driver before it lists the staged output."""

    def abort(self, owner: str) -> None:
        self.confirm()
        shutil.rmtree(self.folder / ".staged" / owner, ignore_errors=True)


class Unconfirmed(FolderSink):
    """Deletes staged output without confirming that it is still the driver."""

    def abort(self, owner: str) -> None:
        shutil.rmtree(self.folder / ".staged" / owner, ignore_errors=True)


class Littering(FolderSink):
    """Does not delete what it has staged."""

    def abort(self, owner: str) -> None:
        pass


class Clearing(FolderSink):
    """Deletes the staged output of all jobs."""

    def abort(self, owner: str) -> None:
        shutil.rmtree(self.folder / ".staged", ignore_errors=True)


@pytest.mark.parametrize(
    ("kind", "test", "found"),
    [
        (Doubling, "test_repeats_a_commit", r"repeated commits of epoch 1: lost \[\], too many"),
        (Losing, "test_fails_at_every_line", r"after a failure at .*in commit: lost \['\w'"),
        (Losing, "test_killed_at_every_line", r"after a kill at .*in commit: lost \['\w'"),
        (Early, "test_shows_an_epoch_when_it_is_committed", r"staged in epoch 1: lost \[\], too"),
        (
            Hasty,
            "test_a_replaced_driver_removes_nothing_of_its_successor",
            r"commit: lost \['a', 'b'",
        ),
        (
            Clearing,
            "test_leaves_what_another_job_has_staged",
            r"another job .*: lost \['a', 'b', 'c'",
        ),
        (Littering, "test_drops_what_a_lost_attempt_staged", r"after abort: still staged"),
    ],
)
def test_the_conformance_tests_detect_a_broken_sink(
    kind: type, test: str, found: str, tmp_path: Path
) -> None:
    suite = Folder()
    suite.kind = kind
    suite.most_failures = 1000  # all lines, since the sink that loses records is among them
    with pytest.raises(AssertionError, match=found):
        getattr(suite, test)(tmp_path)


def test_the_error_names_a_sink_that_never_confirms(tmp_path: Path) -> None:
    suite = Folder()
    suite.kind = Unconfirmed
    with pytest.raises(
        unittest.SkipTest, match=r"Unconfirmed.abort does not call self.confirm\(\)"
    ):
        suite.test_a_replaced_driver_removes_nothing_of_its_successor(tmp_path)


def test_the_error_of_an_outbox_says_which_records_are_missing(tmp_path: Path) -> None:
    from opchain.runtime.connectors.commit_sink import SinkEpoch  # noqa: PLC0415
    from opchain.runtime.errors import SinkError  # noqa: PLC0415

    sink = Idempotent(tmp_path / "target").opened(str(tmp_path / "staging"))
    chunk: Any = sink.stage("o", ["a"])
    Path(chunk.path).unlink()
    with pytest.raises(SinkError, match=r"records of checkpoint 2 .* is missing"):
        sink.commit(SinkEpoch("o", 2, "'sink'"), [chunk])
    altered: Any = sink.stage("o", ["a"])
    Path(altered.path).write_bytes(b"something else")
    with pytest.raises(SinkError, match="cut short or altered"):
        sink.commit(SinkEpoch("o", 2, "'sink'"), [altered])
