from __future__ import annotations

from opchain.runtime.time import TimeDomain


def test_there_are_two_clocks() -> None:
    assert [(domain.name, domain.value) for domain in TimeDomain] == [
        ("EVENT_TIME", 0),
        ("PROCESSING_TIME", 1),
    ]
