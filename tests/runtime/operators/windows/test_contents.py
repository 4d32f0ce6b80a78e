from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.record_functions import AggregateFunction
from opchain.runtime.operators.windows.window_state import (
    AggregatedContents,
    BufferedContents,
    Contents,
    ReducedContents,
    contents_of,
)
from opchain.runtime.program.operator_specs import WindowSpec
from opchain.runtime.windows.time_windows import TumblingEventTimeWindows


class Average(AggregateFunction[float, tuple[float, int], float]):
    def create_accumulator(self) -> tuple[float, int]:
        return 0, 0

    def add(self, value: float, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float | None:  # type: ignore[override]
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


REDUCED = ReducedContents(lambda a, b: f"{a}{b}")
AGGREGATED = AggregatedContents(Average())
BUFFERED = BufferedContents()


@pytest.mark.parametrize(
    ("contents", "records", "held", "elements"),
    [
        (REDUCED, ["a"], "a", ("a",)),
        (REDUCED, ["a", "b", "c"], "abc", ("abc",)),
        (AGGREGATED, [1, 2, 6], (9, 3), (3,)),
        (BUFFERED, [1, 1, 2], [1, 1, 2], [1, 1, 2]),
        (BUFFERED, [None], [None], [None]),
        (REDUCED, [None], None, None),
        (REDUCED, [None, "a"], "a", ("a",)),
        (REDUCED, ["a", None], "aNone", ("aNone",)),
    ],
)
def test_contents_hold_and_return_the_elements_or_the_aggregate(
    contents: Contents, records: list[Any], held: Any, elements: Any
) -> None:
    kept = None
    for record in records:
        kept = contents.added(kept, record)
    assert kept == held
    assert contents.elements(held) == elements


@pytest.mark.parametrize(
    ("contents", "held", "others", "merged"),
    [
        (REDUCED, "a", "b", "ab"),
        (AGGREGATED, (5, 1), (7, 2), (12, 3)),
        (BUFFERED, [1, 2], [0], [1, 2, 0]),
    ],
)
def test_contents_of_merged_windows_are_combined(
    contents: Contents, held: Any, others: Any, merged: Any
) -> None:
    assert contents.merge(held, others) == merged


def test_an_aggregate_result_of_none_is_no_element() -> None:
    assert AGGREGATED.elements((0, 0)) is None
    assert AGGREGATED.elements(None) is None


@pytest.mark.parametrize(
    ("contents", "records", "elements"),
    [
        (REDUCED, ["a", "b"], ("ab",)),
        (REDUCED, [], None),
        (AGGREGATED, [1, 3], (2,)),
        (AGGREGATED, [], None),
        (BUFFERED, [1, 2], [1, 2]),
        (BUFFERED, [], []),
    ],
)
def test_elements_kept_by_an_evictor_are_aggregated_at_once(
    contents: Contents, records: list[Any], elements: Any
) -> None:
    assert contents.fold(records) == elements


def test_a_window_function_gets_its_own_copy_of_the_elements() -> None:
    held = [1]
    BUFFERED.elements(held).append(2)  # type: ignore[union-attr]
    assert held == [1]


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ({"reduce": max, "function": print}, ReducedContents),
        ({"aggregate": Average()}, AggregatedContents),
        ({"function": print}, BufferedContents),
    ],
)
def test_the_functions_of_a_spec_decide_the_kind_of_contents(
    shape: dict[str, Any], kind: type
) -> None:
    assigner = TumblingEventTimeWindows.of(10)
    spec = WindowSpec(assigner=assigner, trigger=assigner.get_default_trigger(), **shape)
    assert type(contents_of(spec)) is kind
