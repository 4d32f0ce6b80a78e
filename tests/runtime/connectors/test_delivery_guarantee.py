from __future__ import annotations

from opchain.runtime.functions.sink import DeliveryGuarantee


def test_the_values_are_those_of_pyflink() -> None:
    assert {each.name: each.value for each in DeliveryGuarantee} == {
        "EXACTLY_ONCE": 0,
        "AT_LEAST_ONCE": 1,
        "NONE": 2,
    }
