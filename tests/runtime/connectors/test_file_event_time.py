"""Event time over files: windows do not depend on number and sizes of files, parallelism or batches."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, run_job, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Duration, Time, WatermarkStrategy
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.functions import AllWindowFunction
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.operators import source
from opchain.runtime.program.operator_specs import SourceSpec
from opchain.runtime.shipping.functions import with_planned_sources

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.datastream import DataStream, StreamExecutionEnvironment
    from opchain.runtime.files.file_range import FileRange

DISORDER_MS, WINDOW_MS = 20, 50
STRATEGY: Any = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_millis(DISORDER_MS)
).with_timestamp_assigner(lambda line, _: int(line.split()[1]))


def write_files(folder: Path, files: int, records: int, seed: int = 1) -> dict[int, list[str]]:
    """Writes files of the same period, each out of order by up to DISORDER_MS; returns the windows."""
    rng = random.Random(seed)
    windows: dict[int, list[str]] = defaultdict(list)
    for number in range(files):
        lines = []
        for index in range(records):
            time = max(0, index * 3 + rng.randrange(-DISORDER_MS, 1))
            line = f"{number}-{index} {time} {'x' * rng.randrange(30)}"
            lines.append(line)
            windows[time - time % WINDOW_MS].append(line)
        (folder / f"part-{number:03}").write_text("".join(f"{line}\n" for line in lines))
    return {start: sorted(lines) for start, lines in sorted(windows.items())}


class Gather(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        yield window.start, sorted(inputs)


def windowed(stream: DataStream[Any]) -> Any:
    windows = TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
    return stream.window_all(windows).apply(Gather())


def text(folder: Path) -> Any:
    lines = StreamFormat.text_line_format()
    return FileSource.for_record_stream_format(lines, str(folder)).build()


def windows_of(folder: Path, form: str = "inlined", **options: Any) -> list[Any]:
    def draw(env: StreamExecutionEnvironment) -> None:
        seen(windowed(env.from_source(text(folder), STRATEGY, "lines")), "windows")

    return sorted(run_form(draw, form, **options).records("windows"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("files", [1, 2, 5])
def test_windows_are_complete_with_the_strategy_of_the_source(
    tmp_path: Path, form: str, parallelism: int, files: int
) -> None:
    expected = write_files(tmp_path, files, 120)
    found = windows_of(tmp_path, form, parallelism=parallelism, batch_size=7)
    assert found == list(expected.items())


@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    parallelism=st.integers(1, 5),
    batch_size=st.integers(1, 40),
    most_open=st.integers(1, 3),
    seed=st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
def test_windows_are_the_same_for_any_file_sizes_and_parallelism(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    parallelism: int,
    batch_size: int,
    most_open: int,
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    windows: dict[int, list[str]] = defaultdict(list)
    for number, size in enumerate(sizes):
        (folder / "new").mkdir(exist_ok=True)
        for start, lines in write_files(folder / "new", 1, size, seed + number).items():
            windows[start] += [f"{number}{line}" for line in lines]
        lines_of_file = (folder / "new" / "part-000").read_text().splitlines()
        (folder / f"file-{number}").write_text(
            "".join(f"{number}{line}\n" for line in lines_of_file)
        )
        (folder / "new" / "part-000").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MOST_OPEN", most_open)
        found = windows_of(folder, parallelism=parallelism, batch_size=batch_size)
    assert found == sorted((start, sorted(lines)) for start, lines in windows.items())


def test_windows_close_while_several_files_are_read(tmp_path: Path) -> None:
    """A subtask reads its splits in turns, so its watermark rises before the last file begins."""
    write_files(tmp_path, 3, 200)
    times: list[int] = []

    def draw(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(text(tmp_path), STRATEGY, "lines")
        seen(stream.map(lambda line: int(line.split()[1])), "times")

    times = run_form(draw, "inlined", parallelism=1, batch_size=10).records("times")
    assert len(times) == 600
    greatest = 0
    for time in times:
        assert time > greatest - 3 * (DISORDER_MS + 10 * 3)
        greatest = max(greatest, time)


def assigned_downstream(folder: Path, parallelism: int) -> dict[int, int]:
    """How many records the windows have if an operator downstream of the source assigns event time."""

    def draw(env: StreamExecutionEnvironment) -> None:
        no_watermarks: Any = WatermarkStrategy.no_watermarks()
        stream = env.from_source(text(folder), no_watermarks, "lines").map(lambda line: line)
        seen(windowed(stream.assign_timestamps_and_watermarks(STRATEGY)), "windows")

    found = run_form(draw, "inlined", parallelism=parallelism, batch_size=7).records("windows")
    return {start: len(lines) for start, lines in found}


def test_files_are_not_split_if_an_operator_downstream_assigns_timestamps(tmp_path: Path) -> None:
    """Two files of different sizes: split by bytes, one subtask would begin in the middle of a file."""
    write_files(tmp_path, 1, 400)
    (tmp_path / "part-000").rename(tmp_path / "part-900")
    write_files(tmp_path, 1, 100, seed=2)
    counts = assigned_downstream(tmp_path, 2)
    assert sum(counts.values()) == 500


def test_no_record_is_late_if_files_in_order_of_time_get_timestamps_downstream(
    tmp_path: Path,
) -> None:
    """Pairs of files per period: each subtask gets one of a pair, as when Flink's readers ask for the next."""
    for period in range(3):
        for part in range(2):
            times = range(period * 1000, period * 1000 + 900, 10)
            name = f"period-{period}-{part}"
            (tmp_path / name).write_text("".join(f"r {time}\n" for time in times))
    assert sum(assigned_downstream(tmp_path, 2).values()) == 540


def planned(folder: Path, draw: Any, **keys: Any) -> list[list[FileRange]]:
    job = job_of(draw, parallelism=2, **keys)
    spec = with_planned_sources(job.vertices[0]).operators[0].spec
    assert isinstance(spec, SourceSpec)
    return spec.source.splits(2)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("assigner", "mode", "is_cut"),
    [
        (None, "STREAMING", True),
        (STRATEGY, "STREAMING", False),
        (STRATEGY, "BATCH", True),
        (WatermarkStrategy.no_watermarks(), "STREAMING", True),
    ],
)
def test_a_file_is_split_only_if_that_does_not_change_event_time(
    tmp_path: Path, assigner: Any, mode: str, is_cut: bool
) -> None:
    write_files(tmp_path, 1, 50)

    def draw(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(text(tmp_path), WatermarkStrategy.no_watermarks(), "lines")
        if assigner is not None:
            stream = stream.rebalance().assign_timestamps_and_watermarks(assigner)
        stream.print()

    parts = planned(tmp_path, draw, mode=mode)
    assert [len(part) for part in parts] == ([1, 1] if is_cut else [1, 0])


def test_malformed_records_of_a_reopened_file_are_counted_once(tmp_path: Path) -> None:
    from opchain.datastream import OutputTag  # noqa: PLC0415
    from opchain.datastream.formats.json import JsonReaderFormat  # noqa: PLC0415
    from opchain.table import DataTypes  # noqa: PLC0415

    for number in range(3):
        lines = [
            "[" if index % 5 == 4 else f'{{"at": {index * 10 + number}}}' for index in range(40)
        ]
        (tmp_path / f"{number}.json").write_text("\n".join(lines))
    row = DataTypes.ROW([DataTypes.FIELD("at", DataTypes.BIGINT())])
    bad: Any = OutputTag("bad")
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda row, _: row["at"]
    )

    def draw(env: StreamExecutionEnvironment) -> None:
        builder = FileSource.for_record_stream_format(JsonReaderFormat.for_type(row), str(tmp_path))
        stream = env.from_source(builder.on_malformed(bad).build(), strategy, "rows")
        seen(stream, "good")
        seen(stream.get_side_output(bad), "bad", reads_timestamps=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MOST_OPEN", 1)
        ran = run_job(job_of(draw, batch_size=4))
    assert len(ran.records("good")) == 96
    assert len(ran.records("bad")) == 24
