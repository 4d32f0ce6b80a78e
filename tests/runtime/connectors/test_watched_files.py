from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Duration
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.runtime.connectors import watched_files
from opchain.runtime.connectors.watched_files import WatchedFileSource
from opchain.runtime.epochs.delivered_sources import FoundFilesLog
from opchain.runtime.errors import CheckpointError, InternalError

if TYPE_CHECKING:
    from pathlib import Path


def builder(folder: Path | str) -> Any:
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder))
    return lines.monitor_continuously(Duration.of_seconds(1))


class Run:
    """A run of a watched source with its log of found files."""

    def __init__(self, tmp_path: Path, built: Any = None) -> None:
        self.folder = tmp_path / "in"
        self.folder.mkdir(exist_ok=True)
        self.url = str(tmp_path / "log")
        self.source = (built or builder(self.folder).build()).keeping(FoundFilesLog(self.url))

    def write(self, name: str, size: int = 2) -> None:
        (self.folder / name).write_bytes(b"x" * (size - 1) + b"\n")

    def names(self, start: int, end: int, parallelism: int = 1) -> list[list[str]]:
        return [
            [split.path.rpartition("/")[2] for split in splits]
            for splits in self.source.splits_between(start, end, parallelism)
        ]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_watched_source_is_unbounded_and_a_static_source_is_bounded(tmp_path: Path) -> None:
    source = builder(tmp_path).build()
    assert isinstance(source, WatchedFileSource)
    assert not source.is_bounded
    static = builder(tmp_path).process_static_file_set().build()
    assert isinstance(static, FileSource)


def test_files_are_read_once_ordered_by_scan_and_path(run: Run) -> None:
    source = run.source
    assert source.initial_position(0) == 0
    assert source.latest_position(0, 0) == 0
    for name in ("b", "c", ".hidden", "_hidden"):
        run.write(name)
    assert source.latest_position(0, 1_000) == 2
    run.write("a")
    assert source.latest_position(2, 2_000) == 3
    assert source.latest_position(3, 3_000) == 3
    assert run.names(0, 2) == [["b", "c"]]
    assert run.names(2, 3) == [["a"]]
    (split,) = source.splits_between(2, 3, 1)[0]
    assert source.delivered_splits(pickle.dumps(split)) == {split.path: split}
    assert [list(batch) for batch in source.read(split, 10)] == [["x"]]


def test_folders_are_scanned_once_per_discovery_interval(run: Run) -> None:
    assert run.source.latest_position(0, 500) == 0
    run.write("a")
    assert run.source.latest_position(0, 1_499) == 0
    assert run.source.latest_position(0, 1_500) == 1


def test_a_position_means_the_same_files_in_a_new_run(run: Run, tmp_path: Path) -> None:
    run.write("b")
    assert run.source.latest_position(0, 0) == 1
    run.write("a")
    again = Run(tmp_path)
    assert again.names(0, 1) == [["b"]]
    assert again.source.latest_position(1, 0) == 2
    assert again.names(1, 2) == [["a"]]
    # A listed file is read, even if the process died before the epoch of the file began.
    assert Run(tmp_path).names(0, 2) == [["b", "a"]]


def test_two_drivers_agree_on_the_order_of_files(run: Run, tmp_path: Path) -> None:
    other = Run(tmp_path)
    run.write("b")
    assert run.source.latest_position(0, 0) == other.source.latest_position(0, 0) == 1
    run.write("c")
    assert run.source.latest_position(1, 1_000) == 2
    run.write("a")
    assert (
        other.source.latest_position(1, 1_000) == 2
    )  # the other driver has found "a" and "c", and reads the log again
    assert other.source.latest_position(2, 2_000) == 3
    assert other.names(0, 3) == Run(tmp_path).names(0, 3) == [["b", "c", "a"]]


def test_the_log_is_merged_after_a_hundred_scans(run: Run, tmp_path: Path) -> None:
    for number in range(250):
        run.write(f"{number:03}")
        assert run.source.latest_position(number, number * 1_000) == number + 1
    names = [path.name for path in (tmp_path / "log").iterdir()]
    assert [name for name in names if name.endswith(".all")] == ["000000000200.all"]
    assert len(names) == 51
    assert Run(tmp_path).names(0, 250) == [[f"{number:03}" for number in range(250)]]


def test_two_drivers_agree_on_the_order_after_one_has_merged_the_log(
    run: Run, tmp_path: Path
) -> None:
    other = Run(tmp_path)
    for number in range(99):
        run.write(f"{number:03}")
        assert run.source.latest_position(number, number * 1_000) == number + 1
    assert other.source.latest_position(99, 99_000) == 99
    run.write("b")
    assert run.source.latest_position(99, 99_000) == 100
    run.write("a")
    assert other.source.latest_position(99, 100_000) == 100  # the driver reads the log again
    assert other.source.latest_position(100, 101_000) == 101
    assert other.names(99, 101) == Run(tmp_path).names(99, 101) == [["b", "a"]]


def test_a_log_with_a_missing_entry_is_refused(run: Run, tmp_path: Path) -> None:
    for number in range(3):
        run.write(str(number))
        run.source.latest_position(number, number * 1_000)
    (tmp_path / "log" / "000000000001").unlink()
    with pytest.raises(CheckpointError, match="has 1 files and continues with number 2"):
        Run(tmp_path).source.latest_position(0, 0)


@pytest.mark.parametrize("name", ["000000000000", "000000000002"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-5],
        lambda data: data.replace(b"/b", b"/e").replace(b"/c", b"/e"),
        lambda data: data + b"\n",
        lambda data: b"\x80" * len(data),
        lambda data: b"[]\n",
    ],
)
def test_a_damaged_log_is_an_error(run: Run, tmp_path: Path, name: str, damage: Any) -> None:
    for names in ("ab", "c"):
        for file in names:
            run.write(file)
        run.source.latest_position(0, ord(names[0]) * 1_000)
    part = tmp_path / "log" / name
    part.write_bytes(damage(part.read_bytes()))
    with pytest.raises(CheckpointError, match=f"{name} is damaged: entry"):
        Run(tmp_path).source.latest_position(3, 0)


def test_a_log_that_has_lost_its_last_entries_is_an_error(run: Run, tmp_path: Path) -> None:
    for name in "ac":
        run.write(name)
        run.source.latest_position(0, ord(name) * 1_000)
    run.write("b")
    (tmp_path / "log" / "000000000001").unlink()
    for again in (Run(tmp_path), Run(tmp_path)):
        with pytest.raises(CheckpointError, match="has 1 files, but the job has begun to read 2"):
            again.source.latest_position(2, 0)
    with pytest.raises(CheckpointError, match="has begun to read 2"):
        Run(tmp_path).source.splits_between(1, 2, 1)


def test_a_truncated_merged_log_is_an_error(run: Run, tmp_path: Path) -> None:
    for number in range(100):
        run.write(f"{number:03}")
        run.source.latest_position(number, number * 1_000)
    (merged,) = (tmp_path / "log").glob("*.all")
    merged.write_bytes(merged.read_bytes()[: -len(merged.read_bytes().splitlines(True)[-1])])
    with pytest.raises(CheckpointError, match="has 99 entries"):
        Run(tmp_path).source.latest_position(0, 0)


def test_a_log_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "000000000000").write_text('{"path": "/in/a", "size": 2}\n')
    assert Run(tmp_path).names(0, 1) == [["a"]]


def test_files_are_distributed_to_subtasks_by_size(run: Run) -> None:
    for name, size in (("a", 100), ("b", 10), ("c", 10), ("d", 10), ("empty", 0)):
        (run.folder / name).write_bytes(b"x" * size)
    assert run.source.latest_position(0, 0) == 5
    assert run.names(0, 5, 2) == [["a"], ["b", "c", "d"]]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (lambda built: built.set_max_files_per_epoch(3), [3, 6, 9, 10]),
        (lambda built: built.set_max_bytes_per_epoch(250), [2, 4, 6, 8, 10]),
        (lambda built: built.set_max_bytes_per_epoch(1), list(range(1, 11))),
        (lambda built: built, [10]),
    ],
)
def test_a_backlog_is_spread_over_epochs(tmp_path: Path, limit: Any, expected: list[int]) -> None:
    run = Run(tmp_path, limit(builder(tmp_path / "in")).build())
    for number in range(10):
        run.write(f"{number}", 100)
    positions = [0]
    while positions[-1] < 10:
        positions.append(run.source.latest_position(positions[-1], 0))
    assert positions[1:] == expected


@pytest.mark.parametrize("is_of_job", [False, True])
def test_the_size_of_an_epoch_follows_the_speed_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_of_job: bool
) -> None:
    """1,000 files of 1,000 bytes after a long pause; the job reads 5 files a second, and then 20."""
    monkeypatch.setattr(watched_files, "_FIRST_EPOCH_BYTES", 10_000)
    monkeypatch.setattr(watched_files, "_FILE_COST_BYTES", 0)
    built = builder(tmp_path / "in")
    if not is_of_job:
        built.set_max_time_per_epoch(Duration.of_seconds(4))
    run = Run(tmp_path, built.build())
    if is_of_job:
        run.source.target_epoch_ms = 4_000
    for number in range(1_000):
        run.write(f"{number:04}", 1_000)
    position = now_ms = 0
    sizes = []
    while position < 1_000:
        end = run.source.latest_position(position, now_ms)
        sizes.append(end - position)
        now_ms += sizes[-1] * (200 if position < 300 else 50)
        position = end
    assert sizes[0] == 10
    assert all(15 <= size <= 25 for size in sizes[1:12])
    assert sizes[-2] > 60
    assert max(sizes) <= 85


@pytest.mark.parametrize("parallelism", [1, 2])
def test_unusable_settings_of_a_watched_source_are_refused(
    tmp_path: Path, parallelism: int
) -> None:
    with pytest.raises(InternalError, match="has no log"):
        builder(tmp_path).build().latest_position(0, 0)
    with pytest.raises(InternalError, match="has no splits for"):
        builder(tmp_path).build().splits(parallelism)
    with pytest.raises(FileNotFoundError, match=r"no file or folder '.*missing'"):
        builder(tmp_path / "missing").build().planned(parallelism)
    assert builder(tmp_path / "*.txt").build().planned(parallelism)
    with pytest.raises(ValueError, match="files is 0; it must be at least 1"):
        builder(tmp_path).set_max_files_per_epoch(0)
    with pytest.raises(TypeError, match="takes a Duration"):
        builder(tmp_path).set_max_time_per_epoch(5)


def test_a_pattern_may_match_no_files_at_first(tmp_path: Path) -> None:
    run = Run(tmp_path, builder(tmp_path / "in" / "*.txt").build())
    assert run.source.latest_position(0, 0) == 0
    run.write("a.txt")
    run.write("b.csv")
    assert run.source.latest_position(0, 1_000) == 1


def test_an_existing_folder_whose_name_looks_like_a_pattern_is_watched(tmp_path: Path) -> None:
    (tmp_path / "in[1]").mkdir()
    run = Run(tmp_path, builder(tmp_path / "in[1]").build())
    (tmp_path / "in[1]" / "a").write_text("x\n")
    assert run.source.latest_position(0, 0) == 1
