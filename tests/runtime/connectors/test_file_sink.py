from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pytest
from file_sinks import commit, sink_to, visible, writer_of, written

from opchain.common import Encoder, Types
from opchain.runtime.connectors.file_buckets import BucketAssigner, OutputFileConfig, RollingPolicy
from opchain.runtime.connectors.file_sink import FileSink, StreamingFileSink
from opchain.runtime.errors import SinkError
from opchain.runtime.types.serialization import BulkWriter, BulkWriterFactory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class ByLength(BucketAssigner):
    def get_bucket_id(self, element: str, timestamp: int | None, processing_time: int) -> str:
        return f"length={len(element)}"


def test_records_are_visible_once_they_are_committed(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    committables = written(sink, "a", "b")
    assert visible(tmp_path) == []
    commit(sink, committables)
    assert visible(tmp_path) == [("part-ID-0", "a\nb\n")]


def test_attempts_of_a_task_write_different_files(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    lost, accepted = written(sink, "a"), written(sink, "a")
    assert lost != accepted
    commit(sink, accepted)
    assert visible(tmp_path) == [("part-ID-0", "a\n")]


def test_each_subtask_writes_its_own_files(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    commit(sink, written(sink, "a") + written(sink, "b", subtask=3))
    assert visible(tmp_path) == [("part-ID-0", "a\n"), ("part-ID-0", "b\n")]


def test_a_full_file_is_followed_by_another_one(tmp_path: Path) -> None:
    sink = sink_to(tmp_path, rolling_policy=RollingPolicy.default_rolling_policy(part_size=3))
    commit(sink, written(sink, "a", "b", "c"))
    assert visible(tmp_path) == [("part-ID-0", "a\nb\n"), ("part-ID-1", "c\n")]


def test_each_bucket_is_a_folder(tmp_path: Path) -> None:
    naming = OutputFileConfig.builder().with_part_prefix("w").with_part_suffix(".txt").build()
    sink = sink_to(tmp_path, bucket_assigner=ByLength(), output_file_config=naming)
    commit(sink, written(sink, "a", "bb", "c"))
    assert visible(tmp_path) == [("length=1/w-ID-0.txt", "a\nc\n"), ("length=2/w-ID-1.txt", "bb\n")]


def test_a_part_file_ends_at_each_checkpoint(tmp_path: Path) -> None:
    sink = sink_to(tmp_path)
    writer = writer_of(sink)
    for record in ("a", "b"):
        writer.write(record, None)
        writer.flush(end_of_input=False)
        commit(sink, list(writer.prepare_commit()))
    assert list(writer.prepare_commit()) == []
    assert visible(tmp_path) == [("part-ID-0", "a\n"), ("part-ID-1", "b\n")]


def test_a_failed_task_leaves_no_partial_file(tmp_path: Path) -> None:
    writer = writer_of(sink_to(tmp_path))
    writer.write("a", None)
    writer.close()
    writer.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


class Joined(Encoder[str]):
    """An encoder with a method for batches."""

    def encode(self, element: str, stream: BinaryIO) -> None:
        self.encode_batch([element], stream)

    def encode_batch(self, elements: Sequence[str], stream: BinaryIO) -> None:
        stream.write(f"{','.join(elements)}\n".encode())


@pytest.mark.parametrize(
    ("encoder", "content"),
    [(Encoder.simple_string_encoder(), "a\nb\n"), (Joined(), "a,b\n")],
)
def test_encode_batch_writes_a_whole_batch_at_once(
    tmp_path: Path, encoder: Encoder[str], content: str
) -> None:
    builder = FileSink.for_row_format(str(tmp_path), encoder)
    builder.with_bucket_assigner(ByLength())
    sink = builder.build()
    writer = writer_of(sink)
    writer.write_batch(["a", "cc", "b"], None)
    writer.write_batch([], None)
    writer.flush(end_of_input=True)
    commit(sink, list(writer.prepare_commit()))
    assert visible(tmp_path) == [("length=1/part-ID-0", content), ("length=2/part-ID-1", "cc\n")]


@pytest.mark.parametrize("part_size", range(1, 12))
def test_batches_and_single_records_are_split_into_the_same_files(
    tmp_path: Path, part_size: int
) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=part_size))
    sink = builder.build()
    writer = writer_of(sink)
    records, parts = ["a", "bcd", "e", "f", "gh"], [""]
    for record in records:
        if len(parts[-1]) > part_size:
            parts.append("")
        parts[-1] += f"{record}\n"
    writer.write_batch(records[:3], None)
    writer.write_batch(records[3:], None)
    writer.flush(end_of_input=True)
    commit(sink, list(writer.prepare_commit()))
    assert visible(tmp_path) == [(f"part-ID-{at}", text) for at, text in enumerate(parts)]


def test_timestamps_are_requested_only_with_a_custom_bucket_assigner(tmp_path: Path) -> None:
    assert not sink_to(tmp_path).reads_timestamps
    assert sink_to(tmp_path, bucket_assigner=ByLength()).reads_timestamps


class Counted(BulkWriter[str]):
    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.records: list[str] = []

    def add_element(self, element: str) -> None:
        self.records.append(element)

    def flush(self) -> None:
        raise AssertionError("nothing asks for it")

    def finish(self) -> None:
        self.stream.write(f"{len(self.records)} {self.records}".encode())


class CountedFactory(BulkWriterFactory[str]):
    def create(self, stream: BinaryIO) -> Counted:
        return Counted(stream)


def test_records_of_a_declared_type_are_written_as_java_prints_them(tmp_path: Path) -> None:
    record_type = Types.TUPLE([Types.STRING(), Types.INT()])
    sink = sink_to(tmp_path).for_type(record_type)
    commit(sink, written(sink, cast("Any", ("word", 3))))
    (file,) = tmp_path.iterdir()
    assert file.read_text() == "(word,3)\n"


@pytest.mark.parametrize("kind", [FileSink, StreamingFileSink])
def test_a_bulk_format_rolls_files_at_checkpoints_only(tmp_path: Path, kind: Any) -> None:
    builder = kind.for_bulk_format(str(tmp_path), CountedFactory())
    assert builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()) is builder
    with pytest.raises(
        ValueError, match=r"bulk format \(CountedFactory\) got DefaultRollingPolicy"
    ):
        builder.with_rolling_policy(RollingPolicy.default_rolling_policy())


def test_a_bulk_format_is_finished_at_the_end_of_the_file(tmp_path: Path) -> None:
    builder = FileSink.for_bulk_format(str(tmp_path), CountedFactory())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink = builder.build()
    commit(sink, written(sink, "a", "b"))
    assert visible(tmp_path) == [("part-ID-0", "2 ['a', 'b']")]


def test_the_default_bucket_is_the_hour(tmp_path: Path) -> None:
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    commit(sink, written(sink, "a"))
    ((name, text),) = visible(tmp_path)
    folder, _, file = name.partition("/")
    assert (len(folder.split("-")), file, text) == (5, "part-ID-0", "a\n")


@pytest.mark.parametrize(
    ("setter", "value"),
    [
        ("with_bucket_assigner", "hour"),
        ("with_output_file_config", "part"),
        ("with_rolling_policy", 5),
    ],
)
def test_a_setting_of_another_type_is_refused(tmp_path: Path, setter: str, value: Any) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    with pytest.raises(TypeError, match=setter):
        getattr(builder, setter)(value)


def test_a_format_of_another_type_is_refused(tmp_path: Path) -> None:
    wrong: Any = str
    with pytest.raises(TypeError, match="it takes an Encoder"):
        FileSink.for_row_format(str(tmp_path), wrong)
    with pytest.raises(TypeError, match="it takes a BulkWriterFactory"):
        FileSink.for_bulk_format(str(tmp_path), wrong)


def test_a_bucket_check_interval_must_be_positive(tmp_path: Path) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    assert builder.with_bucket_check_interval(1000) is builder
    with pytest.raises(ValueError, match="with_bucket_check_interval got 0"):
        builder.with_bucket_check_interval(0)


class ByItself(BucketAssigner):
    def get_bucket_id(self, element: Any, timestamp: int | None, processing_time: int) -> str:
        return cast("str", element)


@pytest.mark.parametrize(
    "bucket",
    ["..", "../x", "a/../../x", "/usr/x", "a//b", ".", "./a", "a\0b", 7, None, ".opchain/x"],
)
def test_a_bucket_outside_of_the_base_path_is_refused(tmp_path: Path, bucket: Any) -> None:
    builder = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    sink = builder.with_bucket_assigner(ByItself()).build()
    with pytest.raises(SinkError, match=r"the bucket assigner returned .* must return a relative"):
        written(sink, bucket)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_bucket_that_is_a_link_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere")
    builder = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    sink = builder.with_bucket_assigner(ByItself()).build()
    with pytest.raises(SinkError, match=r"the bucket 'link' is a symbolic link to .*elsewhere"):
        written(sink, "link")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("bucket", ["a", "a/b", "year=2026/", "..a", "a..b"])
def test_a_bucket_below_the_base_path_is_accepted(tmp_path: Path, bucket: str) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    sink = builder.with_bucket_assigner(ByItself()).build()
    commit(sink, written(sink, bucket))
    assert visible(tmp_path) == [(f"{bucket.rstrip('/')}/part-ID-0", f"{bucket}\n")]


def test_a_bucket_assigner_whose_method_takes_other_arguments_is_refused(
    tmp_path: Path,
) -> None:
    class TwoArguments(BucketAssigner):
        def get_bucket_id(self, element: Any, context: Any) -> str:  # type: ignore[override]
            return ""

    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    with pytest.raises(
        TypeError, match=r"TwoArguments, whose get_bucket_id is called with \(element, timestamp"
    ):
        builder.with_bucket_assigner(TwoArguments())
