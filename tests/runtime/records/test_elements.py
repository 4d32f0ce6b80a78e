from __future__ import annotations

import dataclasses

import pytest

from opchain.runtime.records import elements


@pytest.mark.parametrize(
    "element",
    [
        elements.RecordBatch([1]),
        elements.Watermark(1),
        elements.LatencyMarker(1, "a", 0),
        elements.CheckpointBarrier(1, 2),
        elements.EndOfInput(),
    ],
)
def test_elements_are_immutable_and_have_no_dict(element: object) -> None:
    assert not hasattr(element, "__dict__")
    assert dataclasses.replace(element) == element
    for field in dataclasses.fields(element):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(element, field.name, None)


def test_the_bounds_are_those_of_long_in_java() -> None:
    assert elements.MIN_WATERMARK == -9_223_372_036_854_775_808
    assert elements.MAX_WATERMARK == 9_223_372_036_854_775_807
