from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.types.type_information import ResultTypeQueryable
from opchain.runtime.types.types import Types


def test_a_source_may_name_its_type() -> None:
    class Ints(ResultTypeQueryable):
        def get_produced_type(self) -> Any:
            return Types.INT()

    assert Ints().get_produced_type() == Types.INT()


def test_it_must_name_one() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ResultTypeQueryable()  # type: ignore[abstract]
