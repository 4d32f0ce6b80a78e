from __future__ import annotations

from opchain.runtime.program.vertex_program import SlotResources, largest


def test_the_largest_suffices_for_all() -> None:
    slots = [
        SlotResources("small", 0.5, 100, (("gpu", 1.0),)),
        SlotResources("big", 2.0, 50, (("fpga", 2.0), ("gpu", 0.5))),
        SlotResources("small", 0.5, 100, (("gpu", 1.0),)),
    ]
    assert largest(slots) == SlotResources("small, big", 2.0, 100, (("fpga", 2.0), ("gpu", 1.0)))


def test_of_nothing_there_is_no_largest() -> None:
    assert largest([]) is None
