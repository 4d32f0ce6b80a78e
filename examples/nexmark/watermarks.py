"""A watermark after every event, to see exactly what late data are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.time import MIN_LONG_VALUE
from opchain.runtime.watermarks.generators import WatermarkGenerator

if TYPE_CHECKING:
    from opchain.runtime.watermarks.generators import WatermarkOutput

DELAY_MS = 4_000


class WatermarkAfterEveryEvent(WatermarkGenerator[Any]):
    """Trails the greatest time by 4 seconds; an event itself still sees the watermark before it."""

    def __init__(self) -> None:
        self._greatest = MIN_LONG_VALUE

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Emits a watermark where the event is ahead of all before it."""
        if event_timestamp > self._greatest:
            self._greatest = event_timestamp
            output.emit_watermark(event_timestamp - DELAY_MS)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing: there is never more to say."""
