from __future__ import annotations

from opchain.runtime.program.vertex_program import SlotResources, largest


def test_the_largest_resources_suffice_for_all_slots() -> None:
    slots = [
        SlotResources("small", 0.5, 100, (("gpu", 1.0),)),
        SlotResources("big", 2.0, 50, (("fpga", 2.0), ("gpu", 0.5))),
        SlotResources("small", 0.5, 100, (("gpu", 1.0),)),
    ]
    assert largest(slots) == SlotResources("small, big", 2.0, 100, (("fpga", 2.0), ("gpu", 1.0)))


def test_largest_of_no_slots_is_none() -> None:
    assert largest([]) is None
