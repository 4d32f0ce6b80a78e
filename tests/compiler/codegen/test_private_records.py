from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.common import Row, Types, WatermarkStrategy
from opchain.datastream import AggregateFunction, ProcessWindowFunction
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.window import CountTrigger, GlobalWindows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Hoarder:
    """A function that returns one list repeatedly."""

    def __init__(self) -> None:
        self.hoard: list[int] = []

    def __call__(self, number: int) -> list[int]:
        self.hoard.append(number)
        return self.hoard


def doubled(numbers: list[int]) -> list[int]:
    numbers.extend(numbers)
    return numbers


def hoarded(env: Any) -> None:
    seen(env.from_sequence(1, 3).map(Hoarder()), "lists")


def changed_by_a_sibling(env: Any) -> None:
    lists = env.from_sequence(1, 3).map(lambda number: [number])
    seen(lists.map(doubled), "doubled")
    seen(lists, "lists")


def longer(first: list[int], second: list[int]) -> list[int]:
    first += second
    return first


def changed_before_it_is_sent(env: Any) -> None:
    lists = env.from_sequence(1, 3).map(lambda number: [number])
    seen(lists.key_by(lambda numbers: 0).reduce(longer), "longer")
    seen(lists.rebalance(), "lists")


def read_before_it_is_sent(env: Any) -> None:
    lists = env.from_sequence(1, 3).map(lambda number: [number])
    lists.key_by(lambda numbers: 0).reduce(lambda a, b: a + b).print()
    lists.flat_map(lambda numbers: numbers).rebalance().print()


def read_by_siblings(env: Any) -> None:
    lists = env.from_sequence(1, 3).map(lambda number: [number])
    lists.map(lambda numbers: len(numbers) + 1).rebalance().map(str).print()
    lists.map(lambda numbers: numbers[0]).rebalance().map(str).print()


def numbers_to_siblings(env: Any) -> None:
    numbers = env.from_sequence(1, 3)
    seen(numbers.map(lambda number: number + 1), "more")
    seen(numbers, "lists")


class Marking:
    """A key selector that changes the record, and the record before it."""

    def __init__(self) -> None:
        self.last: list[int] = []

    def __call__(self, record: list[int]) -> int:
        record.append(7)
        self.last.append(8)
        self.last = record
        return record[0] % 2


def changed_by_a_key_selector(env: Any) -> None:
    lists = env.from_sequence(1, 9).map(lambda number: [number, number])
    seen(lists.key_by(Marking()).map(lambda record: record), "lists")


def test_a_key_selector_gets_the_record_without_a_copy() -> None:
    job = job_of(changed_by_a_key_selector)
    assert "own_copy" not in str(job.vertices[0].source).partition("def fallback")[0]
    expected = run_form(changed_by_a_key_selector, "interpreted").records("lists")
    assert run_form(changed_by_a_key_selector).records("lists") == expected


def times_hundred(row: Any) -> Any:
    row[1] *= 100
    return row


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [Row, lambda *fields: list(fields)], ids=["Row", "list"])
def test_changing_the_result_of_a_reduce_does_not_change_its_state(kind: Any, form: str) -> None:
    def draw(env: Any) -> None:
        rows = env.from_collection([("a", 1), ("a", 2), ("a", 3)]).map(lambda pair: kind(*pair))
        sums = rows.key_by(lambda row: row[0]).reduce(lambda a, b: kind(a[0], a[1] + b[1]))
        seen(sums.map(times_hundred), "sums")

    (records,) = run_form(draw, form).subtasks("sums").values()
    assert [row[1] for row, _ in records] == [100, 300, 600]


class Gathered(AggregateFunction[Any, list[int], list[int]]):
    """Its result is the accumulator itself."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[int]) -> list[int]:
        return accumulator

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


class Elements(ProcessWindowFunction[Any, Any, Any, Any]):
    """Emits what the window holds."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield list(elements)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_changing_the_result_of_a_window_does_not_change_its_contents(mode: str, form: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_collection([1, 2, 3])
        window = GlobalWindows.create()
        windows = numbers.key_by(lambda _: 0).window(window).trigger(CountTrigger.of(1))
        seen(windows.aggregate(Gathered()).map(lambda sums: [*sums, sums.append(0)]), "sums")
        lists = numbers.map(lambda number: [number]).key_by(lambda _: 0)
        held = lists.window(window).trigger(CountTrigger.of(1)).process(Elements())
        seen(held.map(lambda held: [[*row, row.append(0)] for row in held]), "held")

    ran = run_form(draw, form, mode=mode)
    assert ran.records("sums") == [[1, None], [1, 2, None], [1, 2, 3, None]]
    assert ran.records("held")[-1] == [[1, None], [2, None], [3, None]]


@pytest.mark.parametrize("form", FORMS)
def test_several_maps_with_a_declared_type_emit_their_records(form: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(1, 3)
        for name in ("first", "second"):
            seen(numbers.map(lambda number: number, output_type=Types.LONG()), name)

    ran = run_form(draw, form)
    assert ran.records("first") == ran.records("second") == [1, 2, 3]


def head_of(draw: Callable[[Any], None], **settings: Any) -> str:
    source: str = job_of(draw, **settings).vertices[0].source
    return source


@pytest.mark.parametrize("form", FORMS)
def test_a_record_that_a_function_keeps_is_copied(form: str) -> None:
    assert run_form(hoarded, form).records("lists") == [[1], [1, 2], [1, 2, 3]]


@pytest.mark.parametrize("form", FORMS)
def test_a_record_that_another_consumer_changes_is_copied(form: str) -> None:
    ran = run_form(changed_by_a_sibling, form)
    assert ran.records("doubled") == [[1, 1], [2, 2], [3, 3]]
    assert ran.records("lists") == [[1], [2], [3]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_record_is_copied_before_a_reduce_at_the_sender_changes_it(form: str, mode: str) -> None:
    ran = run_form(changed_before_it_is_sent, form, mode=mode)
    assert ran.records("longer")[-1] == [1, 2, 3]
    assert ran.records("lists") == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("draw", "is_copied"), [(changed_before_it_is_sent, True), (read_before_it_is_sent, False)]
)
def test_a_function_that_only_reads_records_at_the_sender_gets_no_copy(
    draw: Callable[[Any], None], is_copied: bool
) -> None:
    assert ("_to_0 = own_copy(" in head_of(draw, mode="BATCH")) is is_copied


@pytest.mark.parametrize(
    ("draw", "is_copied"),
    [
        (hoarded, True),
        (changed_by_a_sibling, True),
        (read_by_siblings, False),
        (numbers_to_siblings, False),
    ],
)
def test_records_that_no_function_can_change_are_not_copied(
    draw: Callable[[Any], None], is_copied: bool
) -> None:
    loop = head_of(draw).split("def emit_")[0]
    assert ("own_copy(" in loop) is is_copied


def test_with_object_reuse_no_record_is_copied() -> None:
    assert "own_copy(" not in head_of(changed_by_a_sibling, object_reuse=True)
    assert "own_copy(" not in head_of(hoarded, object_reuse=True)


def first_number_in_a_list(line: str) -> Any:
    parts: list[Any] = line.split(",")
    parts[0] = [int(parts[0])]
    yield from parts


def last_of_four(line: str) -> Any:
    _, *_between, last = 1, line, 2.5, [line]
    return [last]


def set_twice(line: str) -> Any:
    first: Any
    first = second = line.split(",")
    second[0] = [first[0]]
    return first[0]


def set_within_an_expression(line: str) -> Any:
    found: Any = 0
    return (found := [line]) if found == 0 else found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "function", [first_number_in_a_list, last_of_four, set_twice, set_within_an_expression]
)
def test_a_variable_that_becomes_a_list_is_treated_as_a_list(
    function: Any, form: str, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("1,2\n3,4\n")

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            value.append(9)
        return value

    def draw(env: Any) -> None:
        source = FileSource.for_record_stream_format(
            StreamFormat.text_line_format(), str(tmp_path / "lines")
        ).build()
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        lists = (
            lines.flat_map(function) if function is first_number_in_a_list else lines.map(function)
        )
        seen(lists.map(changed), "changed")
        seen(lists.map(lambda value: value), "lists")

    expected = list(map(function, ["1,2", "3,4"]))
    if function is first_number_in_a_list:
        expected = [[1], "2", [3], "4"]
    assert run_form(draw, form).records("lists") == expected
