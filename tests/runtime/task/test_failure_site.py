"""Errors of user functions have the same notes in all forms of a job, and keep their type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, job_of, notes_of, seen

from opchain.common import WatermarkStrategy
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
    SourceFunction,
)
from opchain.runtime.connectors.collection import NumberSequenceSource
from opchain.runtime.functions.sink import Sink, SinkWriter
from opchain.runtime.functions.source import Source
from opchain.runtime.operators.operator import TaskInfo
from opchain.runtime.task.failure_site import add_failure_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.datastream import DataStream, StreamExecutionEnvironment


class BadRecordError(Exception):
    """An error that a user raises."""


def check(value: int) -> int:
    if value == 3:
        raise BadRecordError(value)
    return value


def check_and_yield(value: int) -> Iterator[int]:
    yield 0
    yield check(value)


class RichMap(MapFunction[int, int]):
    def __init__(self, fails: str) -> None:
        self.fails = fails

    def open(self, runtime_context: Any) -> None:
        if self.fails == "open":
            raise BadRecordError

    def map(self, value: int) -> int:
        return check(value) if self.fails == "map" else value

    def close(self) -> None:
        if self.fails == "close":
            raise BadRecordError


class Checks(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield check(value)


class CoChecks(CoProcessFunction[int, int, int]):
    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Any:
        yield value

    def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Any:
        yield check(value)


class CoMapChecks(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return check(value)

    def map2(self, value: int) -> int:
        return value


class CoFlatMapChecks(CoFlatMapFunction[int, int, int]):
    def flat_map1(self, value: int) -> Any:
        return []

    def flat_map2(self, value: int) -> Any:
        return check_and_yield(value)


class ReduceChecks(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return check(value2)


@dataclass
class Summand:
    number: int

    def __repr__(self) -> str:
        return str(self.number)

    def __add__(self, other: Summand) -> Summand:
        return Summand(check(other.number))


class FailingSource(Source[int]):
    def __init__(self, fails: str) -> None:
        self.fails = fails

    def splits(self, parallelism: int) -> list[list[int]]:
        if self.fails == "splits":
            raise BadRecordError
        return [[1]] * parallelism

    def read(self, split: int, batch_size: int) -> Iterator[list[int]]:
        yield [1, 2]
        raise BadRecordError


class FailingFunction(SourceFunction[int]):
    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        ctx.collect(1)
        raise BadRecordError

    def cancel(self) -> None:
        pass


class FailingWriter(SinkWriter[int]):
    def __init__(self, fails: str) -> None:
        self.fails = fails

    def write(self, value: int, timestamp: int | None) -> None:
        if self.fails == "write":
            check(value)

    def flush(self, *, end_of_input: bool) -> None:
        if self.fails == "flush":
            raise BadRecordError

    def prepare_commit(self) -> list[Any]:
        if self.fails == "prepare_commit":
            raise BadRecordError
        return []

    def close(self) -> None:
        if self.fails == "close":
            raise BadRecordError


class FailingSink(Sink[int]):
    def __init__(self, fails: str) -> None:
        self.fails = fails

    def create_writer(self, context: Any) -> SinkWriter[int]:
        if self.fails == "create_writer":
            raise BadRecordError
        return FailingWriter(self.fails)


class FailingLegacySink(SinkFunction[int]):
    def __init__(self, fails: str) -> None:
        self.fails = fails

    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        if self.fails == "invoke":
            check(value)

    def finish(self) -> None:
        if self.fails == "finish":
            raise BadRecordError


def assigning(assigner: Any) -> Any:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)


def ones(value: Any) -> list[int]:
    found = [1 for _ in value]
    return found  # noqa: RET504 - it must not be inlined


def numbers(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 4).name("numbers")


HERE = "(test_failure_site.py:"

OPERATORS: dict[str, tuple[Callable[[Any], DataStream[Any]], str]] = {
    "map": (lambda env: numbers(env).map(check), f"in 'it' {HERE}LINE), at record 3"),
    "inlined map": (
        lambda env: numbers(env).map(lambda x: 1 // (x - 3)),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "filter": (lambda env: numbers(env).filter(check), f"in 'it' {HERE}LINE), at record 3"),
    "flat map": (
        lambda env: numbers(env).flat_map(lambda x: [x] * (1 // (x - 3))),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "generator": (
        lambda env: numbers(env).flat_map(check_and_yield),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "process": (lambda env: numbers(env).process(Checks()), f"in 'it' {HERE}LINE), at record 3"),
    "open": (lambda env: numbers(env).map(RichMap("open")), f"in 'it' {HERE}LINE)"),
    "close": (lambda env: numbers(env).map(RichMap("close")), f"in 'it' {HERE}LINE)"),
    "keyed map": (
        lambda env: numbers(env).key_by(lambda x: x % 2).map(RichMap("map")),
        f"in 'it' {HERE}LINE), at record 3, key 1",
    ),
    "co process": (
        lambda env: numbers(env).connect(numbers(env)).process(CoChecks()),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "co map": (
        lambda env: numbers(env).connect(numbers(env)).map(CoMapChecks()),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "co flat map": (
        lambda env: numbers(env).connect(numbers(env)).flat_map(CoFlatMapChecks()),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "reduce": (
        lambda env: numbers(env).key_by(lambda x: x % 2).reduce(ReduceChecks()),
        f"in 'it' {HERE}LINE), at record 3, key 1",
    ),
    "inlined reduce": (
        lambda env: numbers(env).key_by(lambda x: x % 2).reduce(lambda a, b: 1 // (b - 3)),
        f"in 'it' {HERE}LINE), at record 3, key 1",
    ),
    "key": (
        lambda env: numbers(env).key_by(check).reduce(max),
        f"in 'Source: numbers' {HERE}LINE), sending to it (hash by check) {HERE}LINE), at record 3",
    ),
    "inlined key": (
        lambda env: numbers(env).map(int).name("ints").key_by(lambda x: 1 // (x - 3)).reduce(max),
        f"in 'ints' {HERE}LINE), sending to it (hash by key) {HERE}LINE), at record 3",
    ),
    "key of a custom partitioner": (
        lambda env: numbers(env).partition_custom(lambda _, __: 0, check).map(str),
        f"in 'Source: numbers' {HERE}LINE), sending to it (custom by check) {HERE}LINE), at record 3",
    ),
    "custom partitioner": (
        lambda env: numbers(env).partition_custom(lambda key, n: check(key) % n, int).map(str),
        f"while partitioning the record 3 by 3, for 'int' {HERE}LINE)",
    ),
    "timestamps": (
        lambda env: numbers(env).assign_timestamps_and_watermarks(assigning(lambda x, _: check(x))),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "inlined timestamps": (
        lambda env: numbers(env).assign_timestamps_and_watermarks(
            assigning(lambda x, _: 1 // (x - 3))
        ),
        f"in 'it' {HERE}LINE), at record 3",
    ),
    "timestamps of a source": (
        lambda env: env.from_source(
            NumberSequenceSource(1, 4), assigning(lambda x, _: check(x)), "it"
        ),
        f"in 'Source: it' {HERE}LINE), at record 3",
    ),
    "splits of a source": (
        lambda env: env.from_source(
            FailingSource("splits"), WatermarkStrategy.no_watermarks(), "it"
        ),
        f"in 'Source: it' {HERE}LINE)",
    ),
    "reader of a source": (
        lambda env: env.from_source(FailingSource("read"), WatermarkStrategy.no_watermarks(), "it"),
        f"in 'Source: it' {HERE}LINE)",
    ),
    "legacy source": (
        lambda env: env.add_source(FailingFunction(), "it"),
        f"in 'Source: it' {HERE}LINE)",
    ),
}


def masked(note: str) -> str:
    """A note with masked line numbers."""
    words = []
    for part in note.split(HERE):
        head, _, tail = part.partition(")")
        words.append(f"LINE){tail}" if head.isdigit() else part)
    return HERE.join(words)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", OPERATORS)
def test_an_error_in_an_operator_names_the_operator_and_the_record(case: str, form: str) -> None:
    draw, expected = OPERATORS[case]

    def drawn(env: StreamExecutionEnvironment) -> None:
        seen(draw(env).name("it").map(lambda x: x).name("behind"), "all")

    error = failure_of(drawn, form)
    assert type(error) in (BadRecordError, ZeroDivisionError)
    notes = [masked(note) for note in error.__notes__]  # type: ignore[attr-defined]
    assert expected in notes
    assert notes[-1].startswith("in task ")
    assert notes[-1].endswith("(1/1)#0")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("fails", "expected"),
    [
        ("create_writer", f"in 'it: Writer' {HERE}LINE)"),
        ("write", f"in 'it: Writer' {HERE}LINE), at record 3"),
        ("flush", f"in 'it: Writer' {HERE}LINE)"),
        ("prepare_commit", f"in 'it: Writer' {HERE}LINE)"),
        ("close", f"in 'it: Writer' {HERE}LINE)"),
    ],
)
def test_an_error_in_a_sink_writer_names_the_sink(fails: str, expected: str, form: str) -> None:
    error = failure_of(lambda env: numbers(env).sink_to(FailingSink(fails)).name("it"), form)
    assert type(error) is BadRecordError
    assert expected in masked(notes_of(error)).split(" | ")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("fails", "at"), [("invoke", ", at record 3"), ("finish", "")])
def test_an_error_in_a_sink_function_names_the_sink(fails: str, at: str, form: str) -> None:
    error = failure_of(lambda env: numbers(env).add_sink(FailingLegacySink(fails)).name("it"), form)
    assert masked(notes_of(error)).startswith(f"in 'Sink: it' {HERE}LINE){at} | in task")


@pytest.mark.parametrize("form", FORMS)
def test_an_error_while_combining_in_batch_mode_names_the_edge(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        items: Any = numbers(env).map(Summand)
        items.key_by(lambda item: item.number % 2).reduce(lambda a, b: a + b).print()

    error = failure_of(draw, form, mode="BATCH")
    assert masked(error.__notes__[0]) == (  # type: ignore[attr-defined]
        f"in 'Map' {HERE}LINE), sending to Keyed Reduce (hash by key) {HERE}LINE), at record 3"
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_note_shows_the_record_of_the_failing_operator(form: str) -> None:
    error = failure_of(
        lambda env: seen(
            numbers(env).map(lambda x: -x).filter(bool).map(lambda x: 1 // (x + 3)), "s"
        ),
        form,
    )
    assert ", at record -3 | " in notes_of(error)


@pytest.mark.parametrize("form", FORMS)
def test_an_error_in_a_comprehension_shows_the_record_of_its_operator(form: str) -> None:
    error = failure_of(
        lambda env: numbers(env).map(lambda x: [1 // (i - 2) for i in range(x)]).print(), form
    )
    assert f"in 'Map' {HERE}LINE), at record 3 |" in masked(notes_of(error))
    keyed = failure_of(
        lambda env: (
            numbers(env)
            .key_by(lambda x: x % 2)
            .reduce(lambda a, b: a + sum(1 // (i - 2) for i in range(b)))
            .print()
        ),
        form,
    )
    assert f"in 'Keyed Reduce' {HERE}LINE), at record 3, key 1 |" in masked(notes_of(keyed))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [None, 5])
def test_a_result_that_is_not_iterable_has_a_hint(value: Any, form: str) -> None:
    error = failure_of(lambda env: numbers(env).flat_map(lambda _: value).print(), form)
    assert type(error) is TypeError
    assert "the function of a flat map must return an iterable, or yield" in notes_of(error)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda rows: rows.flat_map(ones), id="within the function"),
        pytest.param(lambda rows: rows.map(sum), id="a map"),
        pytest.param(lambda rows: rows.filter(lambda x: 1 in x), id="a filter"),
        pytest.param(lambda rows: rows.key_by(sum).map(str), id="a key"),
    ],
)
def test_an_error_in_a_loop_of_the_users_function_has_no_hint(draw: Any, form: str) -> None:
    error = failure_of(lambda env: draw(numbers(env)).print(), form)
    assert type(error) is TypeError
    assert "must return an iterable" not in notes_of(error)


@pytest.mark.parametrize("form", FORMS)
def test_stop_iteration_raised_by_a_function_fails_the_job(form: str) -> None:
    """It must neither leave a generator nor look like the end of the input."""
    error = failure_of(lambda env: numbers(env).map(lambda _: next(iter(()))).print(), form)
    assert type(error) is RuntimeError
    assert type(error.__cause__) is StopIteration
    assert f"in 'Map' {HERE}LINE), at record 1" in masked(notes_of(error))


@pytest.mark.parametrize("form", FORMS)
def test_stop_iteration_raised_by_a_generator_fails_the_job_at_its_record(form: str) -> None:
    def twice(value: int) -> Iterator[int]:
        yield value
        yield value if value < 2 else next(iter(()))

    error = failure_of(lambda env: numbers(env).flat_map(twice).print(), form)
    assert type(error) is RuntimeError
    assert f"in 'Flat Map' {HERE}LINE), at record 2" in masked(notes_of(error))


def test_a_long_record_is_truncated() -> None:
    error = failure_of(lambda env: env.from_collection(["x" * 10_000]).map(int).print())
    assert len(error.__notes__[0]) < 200  # type: ignore[attr-defined]


def test_an_error_in_repr_of_the_record_does_not_hide_the_failure() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    error = failure_of(lambda env: env.from_sequence(1, 1).map(lambda _: Shy()).map(len).print())
    assert type(error) is TypeError
    assert "at record <Shy whose repr raises RuntimeError>" in notes_of(error)


def test_an_error_outside_of_any_operator_names_the_task() -> None:
    job = job_of(lambda env: numbers(env).print())
    error = ValueError("no traceback at all")
    add_failure_site(error, TaskInfo(job.vertices[0], 0))
    (note,) = error.__notes__  # type: ignore[attr-defined]
    assert note == "in task Source: numbers -> Sink: Print to Std. Out (1/1)#0"


class OpensAsInJava(ProcessFunction[Any, Any]):
    """Calls a method of Flink's Java API."""

    def open(self, runtime_context: Any) -> None:
        self.get_runtime_context().get_state(None)  # type: ignore[attr-defined]

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


@pytest.mark.parametrize("form", FORMS)
def test_a_runtime_context_asked_for_as_in_java_has_a_hint(form: str) -> None:
    def draw(env: Any) -> None:
        env.from_collection([1]).process(OpensAsInJava()).print()

    assert "open(self, runtime_context) gets the RuntimeContext" in notes_of(failure_of(draw, form))


class OutputsAsInJava(ProcessFunction[Any, Any]):
    """Calls a method of Flink's Java API."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.output(OutputTag("late"), value)


@pytest.mark.parametrize("form", FORMS)
def test_a_side_output_written_as_in_java_has_a_hint(form: str) -> None:
    def draw(env: Any) -> None:
        env.from_collection([1]).process(OutputsAsInJava()).print()

    assert "to emit to a side output, yield (tag, value)" in notes_of(failure_of(draw, form))
