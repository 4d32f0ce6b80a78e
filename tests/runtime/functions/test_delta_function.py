from __future__ import annotations

import pytest

from opchain.runtime.functions.record_functions import DeltaFunction


class Apart(DeltaFunction[float]):
    def get_delta(self, old_data_point: float, new_data_point: float) -> float:
        return abs(new_data_point - old_data_point)


def test_a_delta_function_returns_the_delta() -> None:
    assert Apart().get_delta(1.5, 4) == 2.5


def test_get_delta_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        DeltaFunction()  # type: ignore[abstract]
