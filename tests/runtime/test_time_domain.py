from __future__ import annotations

from opchain.runtime.time import TimeDomain


def test_time_domain_has_event_time_and_processing_time() -> None:
    assert [(domain.name, domain.value) for domain in TimeDomain] == [
        ("EVENT_TIME", 0),
        ("PROCESSING_TIME", 1),
    ]
