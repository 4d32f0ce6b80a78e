"""Keeps Python's collector of cycles away while state is written or read in bulk.

Snapshots and restores make many objects that live until the end, and no cycles. Each batch of them has the
collector look at more of what the process holds: with a million keys, a restore took four times as
long, a snapshot twice, and the changes of 1,000 keys five times.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def collector_paused() -> Iterator[None]:
    """Turns the collector off, and on again where it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
