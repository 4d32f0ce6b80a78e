"""Jobs over files in this process: every format, side outputs, failures, and remote files."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest
from file_jobs import CASES, records_in, sink_of, source_builder, stream_of, write_numbers

from opchain.common import Configuration, Encoder, Types, WatermarkStrategy
from opchain.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import MalformedRecord, MalformedRecordError
from opchain.datastream.formats.avro import AvroInputFormat
from opchain.runtime.files.file_range import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("pyarrow")
pytest.importorskip("fastavro")
BAD: OutputTag[MalformedRecord] = OutputTag("bad")


def environment(parallelism: int = 3) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(parallelism)


@pytest.mark.parametrize("name", CASES)
def test_files_of_one_job_are_read_in_order_by_another(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write_numbers(environment(2), case, str(tmp_path), 300)
    assert [path.name[:8] for path in sorted(tmp_path.iterdir())] == ["out-0000", "out-0001"]
    for parallelism in (1, 3):
        found = records_in(environment(parallelism), case, str(tmp_path))
        assert found == list(map(case.record, range(300)))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("read_so_far", [0, 1, 7, 100])
def test_reading_resumes_at_any_position(tmp_path: Path, name: str, read_so_far: int) -> None:
    case = CASES[name]
    write_numbers(environment(1), case, str(tmp_path), 20)
    source = source_builder(case.reads, str(tmp_path)).build()
    ((part,),) = source.splits(1)
    rest = [record for batch in source.read(part.after(read_so_far), 3) for record in batch]
    assert rest == list(map(case.record, range(20)))[read_so_far:]
    (file,) = tmp_path.iterdir()
    assert part == FileRange(str(file), 0, file.stat().st_size)


@pytest.mark.parametrize("name", CASES)
def test_a_failed_job_writes_no_visible_file(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    env = environment(2)
    stream = env.from_sequence(0, 99).map(lambda n: case.record(n) if n < 90 else 1 // 0)
    stream.sink_to(sink_of(case.writes, str(tmp_path)))
    with pytest.raises(ZeroDivisionError):
        env.execute()
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    with pytest.raises(FileNotFoundError, match="no file matches"):
        records_in(environment(), case, f"{tmp_path}/*")
    assert records_in(environment(), case, str(tmp_path)) == []


@pytest.fixture
def store() -> Iterator[Any]:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    yield memory
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.mark.parametrize("name", CASES)
def test_remote_files_are_written_and_read(store: Any, name: str) -> None:
    case = CASES[name]
    write_numbers(environment(2), case, "memory://bucket/out", 100)
    shown = sorted(path for path in store.ls("/bucket/out", detail=False) if "/." not in path)
    assert [path[:20] for path in shown] == ["/bucket/out/out-0000", "/bucket/out/out-0001"]
    assert [path for path in store.store if "/." in path] == []
    found = records_in(environment(), case, "memory://bucket/out")
    assert found == list(map(case.record, range(100)))


def test_a_remote_file_is_visible_only_when_it_is_committed(store: Any) -> None:
    env = environment(2)
    stream = env.from_sequence(0, 99).map(lambda n: n if n < 90 else 1 // 0)
    stream.sink_to(sink_of(Encoder.simple_string_encoder(), "memory://bucket/out"))
    with pytest.raises(ZeroDivisionError):
        env.execute()
    assert all(path.startswith("/bucket/out/.") for path in store.store)
    assert records_in(environment(), CASES["text"], "memory://bucket/out") == []


JSON = CASES["json"]
LINES = '{"id": 1}\n{"id": "x"}\n{"id": 2}\n[\n{"id": 3}\n'


@pytest.mark.parametrize("mode", list(RuntimeExecutionMode))
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("is_read", [True, False])
def test_malformed_records_are_sent_to_a_side_output(
    tmp_path: Path, mode: RuntimeExecutionMode, parallelism: int, is_read: bool
) -> None:
    (tmp_path / "a.json").write_text(LINES)
    env = environment(parallelism).set_runtime_mode(mode)
    source = source_builder(JSON.reads, str(tmp_path)).on_malformed(BAD).build()
    stream = stream_of(env, source)
    good = stream.map(lambda row: row["id"]).collect_async()
    bad = stream.get_side_output(BAD).map(lambda each: each.text).collect_async() if is_read else ()
    result = env.execute()
    assert sorted(good) == [1, 2, 3]
    assert sorted(bad) == (["[", '{"id": "x"}'] if is_read else [])
    assert result.metrics.operator("Source: files").registered["numRecordsInErrors"] == 2


def test_with_timestamps_malformed_records_are_sent_to_a_side_output_too(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(LINES)
    env = environment(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda row, _: row["id"]
    )
    source = source_builder(JSON.reads, str(tmp_path)).on_malformed(BAD).build()
    stream = env.from_source(source, strategy, "files")
    good, bad = stream.collect_async(), stream.get_side_output(BAD).collect_async()
    env.execute()
    assert len(list(good)) == 3
    assert [record.place for record in bad] == ["byte 10", "byte 32"]


def test_malformed_records_are_skipped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(LINES.encode()))
    env = environment(2)
    source = source_builder(JSON.reads, str(tmp_path)).on_malformed("skip").build()
    good = stream_of(env, source).collect_async()
    result = env.execute()
    assert [row["id"] for row in good] == [1, 2, 3]
    assert "numRecordsInErrors = 2" in str(result.metrics)


def test_malformed_records_fail_the_job_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(LINES)
    env = environment(1)
    stream_of(env, source_builder(JSON.reads, str(tmp_path)).build()).print()
    with pytest.raises(MalformedRecordError, match=r"byte 10: '.*' is malformed"):
        env.execute()


def test_files_that_appear_while_a_bounded_job_runs_are_not_read(tmp_path: Path) -> None:
    """All subtasks read the files that existed at the start, so that no record is lost or read twice."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.txt").write_text("".join(f"{n}\n" for n in range(100)))
    env = environment(2)

    def add_a_file(line: str) -> str:
        (folder / "a.txt").write_text("more\n" * 1000)
        return line

    lines = env.read_text_file(str(folder)).map(add_a_file)
    with lines.execute_and_collect() as found:
        assert list(found) == [str(n) for n in range(100)]


def test_records_have_the_type_of_the_format(tmp_path: Path) -> None:
    write_numbers(environment(1), CASES["parquet"], str(tmp_path), 2)
    env = environment(1)
    source = source_builder(CASES["parquet"].reads, str(tmp_path)).build()
    stream = stream_of(env, source)
    assert stream.get_type() == CASES["parquet"].reads.row_type
    lines = stream_of(env, source_builder(CASES["text"].reads, "a").build())
    assert lines.get_type() == Types.STRING()


def test_create_input_reads_avro(tmp_path: Path) -> None:
    case = CASES["avro"]
    write_numbers(environment(2), case, str(tmp_path), 50)
    env = environment(3)
    source = AvroInputFormat(str(tmp_path), case.reads.schema)
    with env.create_input(source).execute_and_collect() as found:
        assert list(found) == list(map(case.record, range(50)))


def test_a_missing_path_fails_when_the_job_starts(tmp_path: Path) -> None:
    env = environment()
    env.read_text_file(str(tmp_path / "missing")).print()
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder '.*missing'"):
        env.execute()
