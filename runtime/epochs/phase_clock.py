"""Where the time of epochs goes: one phase ends where the next begins, so that nothing is left out."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class PhaseClock:
    """Measures phases, from its making on.

    Attributes:
        durations_ms: What has ended since `begin_epoch`, by phase.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._since = clock()
        self.durations_ms: dict[str, float] = {}

    def begin_epoch(self) -> None:
        """Forgets the phases of the epoch before; time since its last one belongs to the next that ends."""
        self.durations_ms = {}

    def ends(self, phase: str) -> None:
        """Ends a phase; one that comes again has the sum."""
        now = self._clock()
        spent_ms = 1000 * (now - self._since)
        self.durations_ms[phase] = self.durations_ms.get(phase, 0.0) + spent_ms
        self._since = now
