from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.datastream import ProcessWindowFunction, StreamExecutionEnvironment


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("window", "expected"),
    [((3,), [6, 15]), ((2, 1), [3, 5, 7, 9, 11, 13]), ((3, 2), [6, 12, 18])],
)
def test_a_count_window_has_a_fixed_number_of_records(
    window: tuple[int, ...], expected: Any, form: str
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection([1, 2, 3, 4, 5, 6, 7])
        seen(numbers.count_window_all(*window).reduce(lambda a, b: a + b), "sums")

    ran = run_form(draw, form)
    assert ran.records("sums") == expected


class Numbered(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().id, list(elements)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_each_key_has_its_own_windows(mode: str, form: str) -> None:
    values = [(number * number % 5, number) for number in range(40)]

    def draw(env: StreamExecutionEnvironment) -> None:
        windows = env.from_collection(values).key_by(lambda pair: pair[0]).count_window(3)
        seen(windows.process(Numbered()), "lists")
        seen(windows.reduce(lambda a, b: (a[0], a[1] + b[1])), "sums")

    ran = run_form(draw, form, mode=mode)
    lists = [
        (key, number, own[number * 3 : number * 3 + 3])
        for key in (0, 1, 4)
        for own in [[pair for pair in values if pair[0] == key]]
        for number in range(len(own) // 3)
    ]
    assert sorted(ran.records("lists")) == lists
    sums = [(key, sum(pair[1] for pair in pairs)) for key, _, pairs in lists]
    assert sorted(ran.records("sums")) == sorted(sums)


def test_a_size_below_one_is_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ValueError, match=r"count_window_all.*: the size is 0"):
        env.from_collection([1]).count_window_all(0)
