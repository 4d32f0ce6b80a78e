from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.connectors.hybrid_source import HybridSource
from opchain.datastream.connectors.number_seq import NumberSequenceSource
from opchain.datastream.functions import ProcessFunction
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.epochs.delivered_sources import unbounded_sources
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.functions.source import Source
from opchain.runtime.records.elements import RecordBatch

if TYPE_CHECKING:
    from pathlib import Path

NONE: Any = WatermarkStrategy.no_watermarks()
ASCENDING: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: int(value)
)


def lines(folder: Path) -> Any:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder))
    return builder.build()


def write(folder: Path, name: str, numbers: range) -> None:
    (folder / name).write_text("".join(f"{number}\n" for number in numbers))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", [NONE, ASCENDING])
def test_sources_are_read_one_after_the_other(tmp_path: Path, form: str, strategy: Any) -> None:
    write(tmp_path, "b", range(50, 60))
    write(tmp_path, "a", range(40, 50))
    source = (
        HybridSource.builder(NumberSequenceSource(90, 99))
        .add_source(lines(tmp_path))
        .add_source(NumberSequenceSource(1, 9))
        .build()
    )
    ran = run_form(lambda env: seen(env.from_source(source, strategy, "in").map(int), "out"), form)
    found = ran.records("out")
    assert found[:10] == list(range(90, 100))
    assert sorted(found[10:30]) == list(range(40, 60))
    assert found[30:] == list(range(1, 10))


@pytest.mark.parametrize("parallelism", [2, 3])
def test_each_record_is_read_once_at_any_parallelism(tmp_path: Path, parallelism: int) -> None:
    write(tmp_path, "a", range(100, 200))
    source = HybridSource.builder(lines(tmp_path)).add_source(NumberSequenceSource(1, 50)).build()
    ran = run_form(
        lambda env: seen(env.from_source(source, NONE, "in").map(int), "out"),
        parallelism=parallelism,
    )
    assert sorted(ran.records("out")) == [*range(1, 51), *range(100, 200)]
    for records in ran.subtasks("out").values():
        values = [value for value, _ in records]
        assert values == sorted(values, key=lambda value: value < 100)


class Watermark(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, max(-1, ctx.timer_service().current_watermark())


def test_the_watermark_continues_with_the_next_source(tmp_path: Path) -> None:
    write(tmp_path, "a", range(1, 4))
    source = HybridSource.builder(lines(tmp_path)).add_source(NumberSequenceSource(10, 12)).build()

    def draw(env: Any) -> None:
        stream = env.from_source(source, ASCENDING, "in").map(int)
        seen(stream.process(Watermark()), "out")

    assert run_form(draw, batch_size=1).records("out") == [
        (1, -1),
        (2, 0),
        (3, 1),
        (10, 2),
        (11, 9),
        (12, 10),
    ]


class Stamped(Source[int]):
    has_timestamps = True

    def splits(self, parallelism: int) -> Any:
        return [[0], *([] for _ in range(parallelism - 1))]

    def read(self, split: Any, batch_size: int) -> Any:
        yield RecordBatch([7], [70])


def test_each_source_keeps_its_own_timestamps_or_none() -> None:
    source = HybridSource(NumberSequenceSource(1, 2), Stamped())
    ran = run_form(lambda env: seen(env.from_source(source, NONE, "in"), "out"))
    assert ran.subtasks("out")[0] == [(1, None), (2, None), (7, 70)]


def test_only_the_last_source_may_be_unbounded() -> None:
    endless: Any = DataGeneratorSource(int)
    with pytest.raises(ValueError, match=r"source 1 of a HybridSource, .* never ends"):
        HybridSource.builder(endless).add_source(NumberSequenceSource(1, 2)).build()
    source = HybridSource.builder(NumberSequenceSource(1, 2)).add_source(endless).build()
    assert not source.is_bounded
    job = job_of(lambda env: env.from_source(source, NONE, "in").print())
    with pytest.raises(UnsupportedFeatureError, match=r"HybridSource.*has no positions"):
        unbounded_sources(job)


def test_a_hybrid_source_requires_at_least_one_source() -> None:
    wrong: Any = [1, 2]
    with pytest.raises(TypeError, match="it takes sources, such as a FileSource"):
        HybridSource.builder(NumberSequenceSource(1, 2)).add_source(wrong)
