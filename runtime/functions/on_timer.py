"""Which process functions set timers that give results: those with an `on_timer` of their own."""

from __future__ import annotations

from typing import Any


def has_on_timer(function: Any) -> bool:
    """Whether the function's class, or one between it and the class that it extends, has an `on_timer`.

    Results of timers have the timer's timestamp, whether records have one or not.
    """
    owners = (kind for kind in type(function).__mro__ if "on_timer" in vars(kind))
    owner = next(owners, None)
    return owner is not None and not owner.__module__.startswith("opchain.runtime.functions.")
