from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen

from opchain.common import Row, Types, WatermarkStrategy
from opchain.datastream.functions import MapBatchesFunction
from opchain.runtime.program.operator_specs import MapBatchesSpec
from opchain.testing import OneInputOperatorHarness

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment

ROW = Types.ROW_NAMED(["n"], [Types.LONG()])


class Sized(MapBatchesFunction):
    def open(self, runtime_context: Any) -> None:
        self.calls = 0

    def map_batches(self, batch: Any) -> Any:
        self.calls += 1
        return [(self.calls, *batch)]


def test_records_are_collected_until_a_watermark() -> None:
    with OneInputOperatorHarness(Sized()) as harness:
        harness.process_elements([(1, 10), (2, 20)])
        assert harness.records() == []
        harness.process_watermark(20)
        harness.process_element(3, 30)
        harness.end_input()
        assert harness.records() == [((1, 1, 2), None), ((2, 3), None)]


def test_one_to_one_functions_keep_timestamps() -> None:
    def yielded(batch: list[int]) -> Any:
        yield [-batch[0]]
        yield [-value for value in batch[1:]]

    with OneInputOperatorHarness(MapBatchesSpec(yielded, one_to_one=True)) as harness:
        harness.process_elements([(1, 10), (2, 20), (3, None)])
        harness.end_input()
        assert harness.records() == [(-1, 10), (-2, 20), (-3, None)]


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_has_the_records_that_a_task_processes_together(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        sizes = env.from_sequence(1, 10).map(lambda n: n).map_batches(lambda batch: [len(batch)])
        seen(sizes, "sizes")

    ran = run_form(draw, form, batch_size=4)
    assert ran.records("sizes") == [4, 4, 2]
    assert (10, 3) in ran.counters().values()


@pytest.mark.parametrize("form", FORMS)
def test_no_batch_contains_a_watermark(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda value, _: value
        )
        stamped = env.from_sequence(1, 6).assign_timestamps_and_watermarks(strategy)
        doubled = stamped.map_batches(lambda batch: [2 * n for n in batch], one_to_one=True)
        seen(doubled, "doubled")

    ran = run_form(draw, form, batch_size=2)
    assert ran.records("doubled") == [2, 4, 6, 8, 10, 12]
    assert ran.timestamps("doubled") == [1, 2, 3, 4, 5, 6]


def summed(batch: pa.RecordBatch) -> Any:
    yield pa.record_batch([pa.array([sum(batch.column(0).to_pylist())])], names=["sum"])
    yield pa.table({"sum": [0, 1]})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("output_type", "expected"),
    [(None, [Row(sum=6), Row(sum=0), Row(sum=1)]), (Types.LONG(), [6, 0, 1])],
)
def test_columns_are_passed_to_the_function_as_arrow_batches(
    form: str, output_type: Any, expected: list[Any]
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        rows = env.from_collection([(1,), (2,), (3,)], ROW)
        seen(rows.map_batches(summed, output_type, "arrow"), "sums")

    assert run_form(draw, form).records("sums") == expected


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (lambda _: 5, {}, "returned 5 of type int; a function of map_batches returns a list"),
        (lambda batch: (n for n in batch), {}, "returned 1 of type int"),
        (lambda _: [1], {"one_to_one": True}, "returned 1 for a batch of 2 records"),
        (lambda batch: batch * 2, {"one_to_one": True}, "returned at least 4 for a batch of 2"),
        (
            lambda _: [1],
            {"batch_format": "arrow"},
            r"returned \[1\] of type list; .*RecordBatch or Table",
        ),
        (
            lambda _: pa.record_batch({"a": [1], "b": [2]}),
            {"batch_format": "arrow", "output_type": Types.LONG()},
            "but its output type is not a row type",
        ),
        (lambda batch: batch[0] / 0, {}, "division by zero"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_result_that_is_not_a_batch_is_refused(
    form: str, function: Any, options: dict[str, Any], said: str
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection([1, 2], Types.LONG())
        seen(numbers.map_batches(function, **options), "results")

    error = failure_of(draw, form)
    with pytest.raises(type(error), match=said):
        raise error
    assert "in 'Map Batches' (test_map_batches.py:" in notes_of(error)


def test_a_result_of_none_is_an_empty_batch() -> None:
    with OneInputOperatorHarness(MapBatchesSpec(lambda _: None)) as harness:
        harness.process_element(1)
        harness.end_input()
        assert harness.records() == []
