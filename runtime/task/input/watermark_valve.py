"""The watermark and the status of a task's inputs, combined over the channels of each input.

Flink: `StatusWatermarkValve`, since the version in which an input that becomes idle gets the largest watermark of
its channels. Earlier versions depended on the order in which the channels became idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.records.elements import MIN_WATERMARK, Watermark, WatermarkStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.runtime.program.vertex_program import ChainedSourceProgram, InputProgram


class WatermarkValve:
    """Emits the smallest watermark of the aligned channels of an input.

    A channel is aligned while it is active and its watermark is at least the emitted one. A channel that becomes active
    again with a lower watermark is not aligned until it has caught up. So the emitted watermark never decreases. When
    all channels are idle, the valve emits the largest watermark of the channels, and then the status IDLE.
    """

    def __init__(self, channels: int, watermark: int = MIN_WATERMARK) -> None:
        self.channel_count = channels
        self._watermarks = [watermark] * channels
        self._is_active = [True] * channels
        self._is_aligned = [True] * channels
        # The number of aligned channels whose watermark equals `watermark`. No aligned channel is below it, so the
        # minimum rises only when this number becomes 0. Until then no search is needed.
        self._holding_back = channels
        self.watermark = watermark
        """The last emitted watermark."""
        self.is_idle = False

    def input_watermark(self, channel: int, timestamp: int) -> Watermark | None:
        """Takes a channel's watermark. Returns the new watermark of the input, if it rises.

        Ignores a watermark of an idle channel, and a watermark that is not above the channel's last one.
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
        """Takes a channel's status. Returns the watermark and the status to emit, in this order."""
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


class InputValves:
    """A valve per input number, over the channels of all edges with that number.

    A chained source is a channel of its input too. The edges of a union are one input and share a valve. Several inputs
    (`connect`) have a valve each, and the operator takes the minimum of their watermarks, as Flink's
    `IndexedCombinedWatermarkStatus`.
    """

    def __init__(
        self,
        inputs: Sequence[InputProgram],
        subtask: int,
        parallelism: int,
        chained_sources: Sequence[ChainedSourceProgram] = (),
    ) -> None:
        self._positions: dict[int, int] = {}
        channels: dict[int, int] = {}
        for edge in inputs:
            for channel in edge.channels_of(subtask, parallelism):
                self._positions[channel] = channels.setdefault(edge.input_number, 0)
                channels[edge.input_number] += 1
        for source in chained_sources:
            self._positions[source.channel] = channels.setdefault(source.input_number, 0)
            channels[source.input_number] += 1
        self._valves = {number: WatermarkValve(count) for number, count in channels.items()}

    def combine(
        self, input_number: int, channel: int, element: Watermark | WatermarkStatus
    ) -> tuple[Watermark | WatermarkStatus, ...]:
        """Takes an element of a channel. Returns the elements of the input: none, one or two."""
        valve, position = self._valves[input_number], self._positions[channel]
        if isinstance(element, WatermarkStatus):
            return valve.input_status(position, element)
        risen = valve.input_watermark(position, element.timestamp)
        return () if risen is None else (risen,)

    def by_input(self) -> dict[int, WatermarkValve]:
        """The valves by input number, for a checkpoint."""
        return self._valves

    def restore(self, valves: dict[int, WatermarkValve]) -> None:
        """Restores the state of valves with the same number of channels."""
        self._valves = valves

    def hold(self, input_number: int, watermark: int) -> None:
        """Makes an input begin at a watermark, after a restore with other channels."""
        self._valves[input_number] = WatermarkValve(
            self._valves[input_number].channel_count, watermark
        )

    def watermark(self, input_number: int) -> int:
        """The current watermark of an input, in milliseconds. Flink's gauge `currentInput<N>Watermark`."""
        return self._valves[input_number].watermark
