from __future__ import annotations

import pytest

from opchain.runtime.functions.callables import as_function
from opchain.runtime.functions.record_functions import MapPartitionFunction


def test_a_callable_may_be_a_map_partition_function() -> None:
    function = as_function(MapPartitionFunction, lambda values: [sum(values)])
    assert list(function.map_partition([1, 2, 3]) or ()) == [6]


def test_map_partition_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        MapPartitionFunction()  # type: ignore[abstract]
