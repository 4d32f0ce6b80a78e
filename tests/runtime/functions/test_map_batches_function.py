from __future__ import annotations

import pytest

from opchain.datastream.functions import MapBatchesFunction
from opchain.runtime.functions.callables import as_function


def test_a_callable_may_be_a_map_batches_function() -> None:
    assert as_function(MapBatchesFunction, sorted).map_batches([2, 1]) == [1, 2]


def test_map_batches_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        MapBatchesFunction()  # type: ignore[abstract]
