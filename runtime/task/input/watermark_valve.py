"""Which watermark, and which status, an input has, given those of its channels.

Flink: `StatusWatermarkValve`, in the form it has since an input that falls idle always gets the largest
watermark of its channels (before, that depended on the order in which the channels fell idle).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.records.elements import MIN_WATERMARK, Watermark, WatermarkStatus

if TYPE_CHECKING:
    from collections.abc import Iterable


class WatermarkValve:
    """Lets through the smallest watermark of the channels that take part.

    A channel takes part ("is aligned") while it is active and not behind what was let through. A channel
    that comes back from idleness behind that point is waited for by nobody, until it has caught up.
    What comes out never falls. When all channels are idle, nobody can hold back any longer: the largest
    watermark is let through, then the status IDLE.
    """

    def __init__(self, channels: int, watermark: int = MIN_WATERMARK) -> None:
        self.channel_count = channels
        self._watermarks = [watermark] * channels
        self._is_active = [True] * channels
        self._is_aligned = [True] * channels
        # The aligned channels that stand at `watermark`. An aligned channel is never below it, so only
        # when this falls to 0 can the minimum have risen: nothing is searched for before that.
        self._holding_back = channels
        self.watermark = watermark
        """The last watermark that was let through."""
        self.is_idle = False

    def input_watermark(self, channel: int, timestamp: int) -> Watermark | None:
        """Takes a channel's watermark; the new watermark of the input, if it rises.

        One that is not above the channel's last is ignored, and so is one from an idle channel.
        """
        previous = self._watermarks[channel]
        if not self._is_active[channel] or timestamp <= previous:
            return None
        self._watermarks[channel] = timestamp
        if self._is_aligned[channel]:
            if previous == self.watermark:
                self._holding_back -= 1
        elif timestamp >= self.watermark:
            self._align(channel)
        return self._rise_to_minimum()

    def input_status(
        self, channel: int, status: WatermarkStatus
    ) -> tuple[Watermark | WatermarkStatus, ...]:
        """Takes a channel's status; what goes out, in this order: a watermark, a status."""
        if (status is WatermarkStatus.ACTIVE) == self._is_active[channel]:
            return ()
        if status is WatermarkStatus.ACTIVE:
            return self._activate(channel)
        return self._idle(channel)

    def _activate(self, channel: int) -> tuple[WatermarkStatus, ...]:
        self._is_active[channel] = True
        if self._watermarks[channel] >= self.watermark:
            self._align(channel)
        if not self.is_idle:
            return ()
        self.is_idle = False
        return (WatermarkStatus.ACTIVE,)

    def _idle(self, channel: int) -> tuple[Watermark | WatermarkStatus, ...]:
        self._is_active[channel] = False
        held_back = self._is_aligned[channel] and self._watermarks[channel] == self.watermark
        self._is_aligned[channel] = False
        self._holding_back -= held_back
        if not any(self._is_active):
            self.is_idle = True
            flushed = self._rise_to(self._watermarks)
            return (WatermarkStatus.IDLE,) if flushed is None else (flushed, WatermarkStatus.IDLE)
        risen = self._rise_to_minimum() if held_back else None
        return () if risen is None else (risen,)

    def _align(self, channel: int) -> None:
        self._is_aligned[channel] = True
        self._holding_back += self._watermarks[channel] == self.watermark

    def _rise_to_minimum(self) -> Watermark | None:
        if self._holding_back:
            return None
        aligned = [
            watermark
            for watermark, is_aligned in zip(self._watermarks, self._is_aligned, strict=True)
            if is_aligned
        ]
        if not aligned:
            return None
        minimum = min(aligned)
        self._holding_back = aligned.count(minimum)
        return self._rise_to((minimum,))

    def _rise_to(self, watermarks: Iterable[int]) -> Watermark | None:
        largest = max(watermarks)
        if largest <= self.watermark:
            return None
        self.watermark = largest
        return Watermark(largest)
