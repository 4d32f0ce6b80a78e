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


class InputValves:
    """A valve per input number, over the channels of all edges with that number.

    A chained source is an input's channel too. The edges of a union share one valve: they are one input,
    and only all of their channels together make it idle. Several inputs (`connect`) have a valve each; their watermarks come out apart, and the
    operator combines them by their minimum, as Flink's `IndexedCombinedWatermarkStatus`.
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
        """Takes what came on a channel; what that means for the input: nothing, or one or two elements."""
        valve, position = self._valves[input_number], self._positions[channel]
        if isinstance(element, WatermarkStatus):
            return valve.input_status(position, element)
        risen = valve.input_watermark(position, element.timestamp)
        return () if risen is None else (risen,)

    def by_input(self) -> dict[int, WatermarkValve]:
        """The valves themselves, by input number: what a checkpoint keeps."""
        return self._valves

    def restore(self, valves: dict[int, WatermarkValve]) -> None:
        """Restores the state of valves with the same number of channels."""
        self._valves = valves

    def hold(self, input_number: int, watermark: int) -> None:
        """Lets an input begin at a watermark. With other channels than before, no more is known."""
        self._valves[input_number] = WatermarkValve(
            self._valves[input_number].channel_count, watermark
        )

    def watermark(self, input_number: int) -> int:
        """The current watermark of an input, in milliseconds. Flink's gauge `currentInput<N>Watermark`."""
        return self._valves[input_number].watermark
