from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from forms import FORMS, run_form, seen

from opchain.datastream import StreamExecutionEnvironment

if TYPE_CHECKING:
    from typing import Any


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("window", "expected"),
    [((3,), [6, 15]), ((2, 1), [3, 5, 7, 9, 11, 13]), ((3, 2), [6, 12, 18])],
)
def test_a_window_has_so_many_records(window: tuple[int, ...], expected: Any, form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection([1, 2, 3, 4, 5, 6, 7])
        seen(numbers.count_window_all(*window).reduce(lambda a, b: a + b), "sums")

    ran = run_form(draw, form)
    assert ran.records("sums") == expected


def test_a_size_below_one_is_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ValueError, match=r"count_window_all.*: the size is 0"):
        env.from_collection([1]).count_window_all(0)
