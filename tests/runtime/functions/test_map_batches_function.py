from __future__ import annotations

import pytest

from opchain.datastream.functions import MapBatchesFunction
from opchain.runtime.functions.callables import as_function


def test_a_callable_of_one_batch_is_one() -> None:
    assert as_function(MapBatchesFunction, sorted).map_batches([2, 1]) == [1, 2]


def test_it_has_no_method_of_its_own() -> None:
    with pytest.raises(TypeError, match="abstract"):
        MapBatchesFunction()  # type: ignore[abstract]
