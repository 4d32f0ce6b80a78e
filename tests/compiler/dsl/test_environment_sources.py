from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Row, Types, WatermarkStrategy
from opchain.compiler.graph.transformation import ChainingStrategy, OperatorTransformation
from opchain.datastream import DataStream, SourceFunction, StreamExecutionEnvironment
from opchain.datastream.connectors import NumberSequenceSource
from opchain.datastream.functions import ParallelSourceFunction
from opchain.runtime.connectors.collection import CollectionSource
from opchain.runtime.connectors.file_source import TextLineSource
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.program.operator_specs import (
    InputFormatSourceSpec,
    LegacySourceSpec,
    SourceSpec,
)

if TYPE_CHECKING:
    from pathlib import Path

NO_WATERMARKS: WatermarkStrategy[Any] = WatermarkStrategy.no_watermarks()


class Ticks(SourceFunction[int]):
    def run(self, ctx: Any) -> None:
        ctx.collect(1)

    def cancel(self) -> None:
        pass


class ParallelTicks(ParallelSourceFunction[int]):
    def run(self, ctx: Any) -> None:
        ctx.collect(1)

    def cancel(self) -> None:
        pass


def source_of(stream: DataStream[Any]) -> OperatorTransformation:
    assert isinstance(stream.transformation, OperatorTransformation)
    assert stream.transformation.inputs == ()
    return stream.transformation


def records_of(stream: DataStream[Any]) -> list[Any]:
    spec: Any = source_of(stream).spec
    source = spec.function if isinstance(spec, InputFormatSourceSpec) else spec.source
    assert isinstance(source, CollectionSource)
    return source.records


def test_a_source_without_consumers_is_not_part_of_the_program(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_sequence(1, 3)
    assert env.get_transformations() == []


def test_from_source_adds_a_source_with_its_name_type_and_strategy(
    env: StreamExecutionEnvironment,
) -> None:
    numbers = NumberSequenceSource(1, 9)
    stream = env.from_source(numbers, NO_WATERMARKS, "numbers", Types.LONG())
    source = source_of(stream)
    assert source.spec == SourceSpec(numbers, NO_WATERMARKS)
    assert (source.name, source.parallelism, source.parallelism_configured) == ("numbers", 4, False)
    assert source.chaining_strategy is ChainingStrategy.ALWAYS
    assert stream.get_type() == Types.LONG()


def test_a_source_function_runs_once(env: StreamExecutionEnvironment) -> None:
    function = Ticks()
    stream = env.add_source(function)
    source = source_of(stream)
    assert source.spec == LegacySourceSpec(function, is_parallel=False, is_bounded=False)
    assert (source.name, source.parallelism, source.parallelism_configured) == (
        "Custom Source",
        1,
        True,
    )
    assert source.chaining_strategy is ChainingStrategy.HEAD
    with pytest.raises(GraphError, match="not parallel and always runs as 1 subtask"):
        stream.set_parallelism(2)
    assert stream.set_max_parallelism(16).transformation.max_parallelism == 16


def test_a_parallel_source_function_has_the_set_parallelism(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.add_source(ParallelTicks(), "ticks")
    assert (stream.get_name(), stream.get_parallelism()) == ("ticks", 4)
    assert stream.set_parallelism(2).get_parallelism() == 2


def test_from_collection_is_a_legacy_source_that_is_never_parallel(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_collection(iter([1, 2, 3]))
    source = source_of(stream)
    assert isinstance(source.spec, InputFormatSourceSpec)
    assert source.spec.is_bounded
    assert source.name == "Collection Source"
    assert (source.parallelism, source.max_parallelism, source.is_parallel) == (1, 1, False)
    assert source.chaining_strategy is ChainingStrategy.HEAD
    assert records_of(stream) == [1, 2, 3]


def test_a_declared_type_makes_rows_of_tuples(env: StreamExecutionEnvironment) -> None:
    types = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    rows = records_of(env.from_collection([("a", 1)], types))
    assert rows == [Row(word="a", count=1)]
    assert rows[0].word == "a"
    unnamed = env.from_collection([("a", 1)], [Types.STRING(), Types.INT()])
    assert records_of(unnamed) == [Row(f0="a", f1=1)]


def test_from_elements_takes_elements_as_arguments(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements("a", "b")
    assert records_of(stream) == ["a", "b"]
    assert isinstance(source_of(stream).spec, InputFormatSourceSpec)


def test_from_data_is_a_new_source_that_may_be_parallel(env: StreamExecutionEnvironment) -> None:
    stream = env.from_data("a", "b")
    source = source_of(stream)
    assert isinstance(source.spec, SourceSpec)
    assert (source.name, source.parallelism, source.parallelism_configured) == (
        "Collection Source",
        1,
        True,
    )
    assert stream.set_parallelism(3).get_parallelism() == 3
    assert records_of(env.from_data([1, 2, 3])) == records_of(env.from_data(1, 2, 3)) == [1, 2, 3]
    assert env.from_data(1, type_info=Types.LONG()).get_type() == Types.LONG()


def test_from_sequence_adds_a_number_sequence_source(env: StreamExecutionEnvironment) -> None:
    source = source_of(env.from_sequence(3, 8))
    assert source.name == "Sequence Source"
    assert isinstance(source.spec, SourceSpec)
    assert isinstance(source.spec.source, NumberSequenceSource)
    assert (source.spec.source.start, source.spec.source.end) == (3, 8)


def test_generate_sequence_adds_a_legacy_parallel_source(env: StreamExecutionEnvironment) -> None:
    source = source_of(env.generate_sequence(3, 8))
    assert source.name == "Sequence Source (Deprecated)"
    assert isinstance(source.spec, LegacySourceSpec)
    assert source.spec.is_parallel
    assert not source.spec.is_bounded


def test_from_collection_of_a_string_has_its_characters(env: StreamExecutionEnvironment) -> None:
    assert records_of(env.from_collection("abc")) == ["a", "b", "c"]


def test_read_text_file_adds_a_source_of_the_lines_of_a_file(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    source = source_of(env.read_text_file(str(tmp_path / "a.txt"), "latin-1"))
    assert source.name == "Text File Source"
    assert isinstance(source.spec, SourceSpec)
    assert isinstance(source.spec.source, TextLineSource)
    assert source.spec.source.charset_name == "latin-1"


@pytest.mark.parametrize(
    ("call", "arguments", "error"),
    [
        ("from_source", (Ticks(), NO_WATERMARKS, "s"), TypeError),
        ("from_source", (NumberSequenceSource, NO_WATERMARKS, "s"), TypeError),
        ("from_source", (NumberSequenceSource(1, 2), None, "s"), TypeError),
        ("from_source", (NumberSequenceSource(1, 2), NO_WATERMARKS, None), TypeError),
        ("add_source", (NumberSequenceSource(1, 2),), TypeError),
        ("add_source", (print,), TypeError),
        ("from_collection", (5,), TypeError),
        ("from_collection", ([1], int), TypeError),
        ("from_elements", (), ValueError),
        ("from_data", (), ValueError),
        ("from_data", ([],), ValueError),
    ],
)
def test_sources_of_the_wrong_kind_are_refused_at_the_call(
    env: StreamExecutionEnvironment, call: str, arguments: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"{call}\(\) \(test_environment_sources.py:|{call}"):
        getattr(env, call)(*arguments)


@pytest.mark.parametrize(("start", "end"), [(2, 1), (0, 1 << 63), (-(1 << 63) - 1, 0)])
def test_a_sequence_must_not_be_empty_or_too_far(
    env: StreamExecutionEnvironment, start: int, end: int
) -> None:
    with pytest.raises(ValueError, match="number sequence"):
        env.from_sequence(start, end)


def test_java_input_formats_are_refused_by_name(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=r"create_input\(\) .*: <object .* cannot be read"
    ):
        env.create_input(object())
