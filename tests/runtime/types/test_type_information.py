from __future__ import annotations

import pytest

from opchain.runtime.time import Instant
from opchain.runtime.types.type_information import (
    BasicType,
    BasicTypeInfo,
    InstantTypeInfo,
    TypeInformation,
)


@pytest.mark.parametrize("basic_type", BasicType)
def test_every_basic_type_has_a_factory(basic_type: BasicType) -> None:
    made = getattr(BasicTypeInfo, f"{basic_type.name}_TYPE_INFO")()
    assert made.basic_type is basic_type
    assert made.need_conversion() == (basic_type is BasicType.INSTANT)


def test_a_pickled_type_describes_any_object() -> None:
    anything: TypeInformation[object] = TypeInformation()
    record = object()
    assert anything.java_class == "Object"
    assert not anything.need_conversion()
    assert anything.from_internal_type(anything.to_internal_type(record)) is record


@pytest.mark.parametrize("millis", [0, 1_500, -1, -1_500])
def test_an_instant_is_stored_as_microseconds(millis: int) -> None:
    made = InstantTypeInfo(BasicType.INSTANT)
    instant = Instant.of_epoch_milli(millis)
    assert made.to_internal_type(instant) == millis * 1_000
    assert made.from_internal_type(millis * 1_000) == instant


def test_an_instant_of_none_is_not_converted() -> None:
    made = InstantTypeInfo(BasicType.INSTANT)
    assert made.to_internal_type(None) is None
    assert made.from_internal_type(None) is None
