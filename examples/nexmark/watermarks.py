"""Watermarks after every event, which make late data deterministic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.time import MIN_LONG_VALUE
from opchain.runtime.watermarks.generators import WatermarkGenerator

if TYPE_CHECKING:
    from opchain.runtime.watermarks.generators import WatermarkOutput

DELAY_MS = 4_000


class WatermarkAfterEveryEvent(WatermarkGenerator[Any]):
    """Watermarks 4 seconds behind the greatest time. An event arrives before its own watermark."""

    def __init__(self) -> None:
        self._greatest = MIN_LONG_VALUE

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Emits a watermark if the event has the greatest time so far."""
        if event_timestamp > self._greatest:
            self._greatest = event_timestamp
            output.emit_watermark(event_timestamp - DELAY_MS)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Does nothing: `on_event` emits all watermarks."""
