from __future__ import annotations

import pytest

from opchain.runtime.functions.callables import as_function
from opchain.runtime.functions.record_functions import MapPartitionFunction


def test_a_callable_may_stand_for_it() -> None:
    function = as_function(MapPartitionFunction, lambda values: [sum(values)])
    assert list(function.map_partition([1, 2, 3]) or ()) == [6]


def test_it_must_be_written() -> None:
    with pytest.raises(TypeError, match="abstract"):
        MapPartitionFunction()  # type: ignore[abstract]
