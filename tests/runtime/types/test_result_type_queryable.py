from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.types.type_information import ResultTypeQueryable
from opchain.runtime.types.types import Types


def test_get_produced_type_is_the_type_of_the_source() -> None:
    class Ints(ResultTypeQueryable):
        def get_produced_type(self) -> Any:
            return Types.INT()

    assert Ints().get_produced_type() == Types.INT()


def test_get_produced_type_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ResultTypeQueryable()  # type: ignore[abstract]
