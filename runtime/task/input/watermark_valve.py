"""The watermark and the status of a task's inputs, combined over the channels of each input.

Flink: `StatusWatermarkValve`, since the version in which an input that becomes idle gets the largest watermark of
its channels. Earlier versions depended on the order in which the channels became idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.records.elements import (
    MIN_WATERMARK,
    CheckpointBarrier,
    Watermark,
    WatermarkStatus,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.program.vertex_program import ChainedSourceProgram, InputProgram


class WatermarkValve:
    """Emits the smallest watermark of the aligned channels of an input.

    A channel is aligned while it is active and its watermark is at least the emitted one. A channel that becomes active
    again with a lower watermark is not aligned until it has caught up. So the emitted watermark never decreases. When
    all channels are idle, the valve emits the largest watermark of the channels, and then the status IDLE.

    In an epoch, a channel is open until its barrier, because it may have records that have not been read. An open
    channel counts like an aligned one, even if it is idle. Otherwise its records would be late if the task reads
    another channel first.
    """

    def __init__(self, channels: int, watermark: int = MIN_WATERMARK) -> None:
        self.channel_count = channels
        self._watermarks = [watermark] * channels
        self._is_active = [True] * channels
        self._open: set[int] = set()
        # The number of channels for which `_holds_back` is true. The minimum rises only when this number becomes 0.
        # Until then no search is needed.
        self._holding_back = channels
        self.watermark = watermark
        """The last emitted watermark."""
        self.is_idle = False

    @property
    def is_open(self) -> bool:
        """Whether the barrier of the epoch is missing in a channel."""
        return bool(self._open)

    def begin_epoch(self) -> None:
        """Opens all channels."""
        self._open = set(range(self.channel_count))
        self._holding_back = sum(map(self._holds_back, self._open))

    def input_watermark(self, channel: int, timestamp: int) -> Watermark | None:
        """Takes a channel's watermark. Returns the new watermark of the input, if it rises.

        Ignores a watermark of an idle channel, and a watermark that is not above the channel's last one.
        """
        if not self._is_active[channel] or timestamp <= self._watermarks[channel]:
            return None
        held_back = self._holds_back(channel)
        self._watermarks[channel] = timestamp
        self._holding_back += self._holds_back(channel) - held_back
        return self._rise_to_minimum()

    def input_status(
        self, channel: int, status: WatermarkStatus
    ) -> tuple[Watermark | WatermarkStatus, ...]:
        """Takes a channel's status. Returns the watermark and the status to emit, in this order."""
        if (status is WatermarkStatus.ACTIVE) == self._is_active[channel]:
            return ()
        if status is WatermarkStatus.ACTIVE:
            return self._activate(channel)
        held_back = self._holds_back(channel)
        self._is_active[channel] = False
        return self._stop_waiting(channel, held_back=held_back)

    def input_barrier(self, channel: int) -> tuple[Watermark | WatermarkStatus, ...]:
        """Takes a channel's barrier, which closes it. Returns the watermark and the status to emit, in this order."""
        held_back = self._holds_back(channel)
        self._open.remove(channel)
        return self._stop_waiting(channel, held_back=held_back)

    def _activate(self, channel: int) -> tuple[WatermarkStatus, ...]:
        held_back = self._holds_back(channel)
        self._is_active[channel] = True
        self._holding_back += self._holds_back(channel) - held_back
        if not self.is_idle:
            return ()
        self.is_idle = False
        return (WatermarkStatus.ACTIVE,)

    def _stop_waiting(
        self, channel: int, *, held_back: bool
    ) -> tuple[Watermark | WatermarkStatus, ...]:
        """Returns the watermark and the status to emit after a channel has become idle or closed."""
        released = held_back and not self._holds_back(channel)
        self._holding_back -= released
        if not (self.is_idle or self._open or any(self._is_active)):
            self.is_idle = True
            flushed = self._rise_to(max(self._watermarks))
            return (WatermarkStatus.IDLE,) if flushed is None else (flushed, WatermarkStatus.IDLE)
        risen = self._rise_to_minimum() if released else None
        return () if risen is None else (risen,)

    def _holds_back(self, channel: int) -> bool:
        """Whether the emitted watermark cannot rise before this channel changes."""
        watermark = self._watermarks[channel]
        if channel in self._open:
            return watermark <= self.watermark
        return self._is_active[channel] and watermark == self.watermark

    def _rise_to_minimum(self) -> Watermark | None:
        if self._holding_back:
            return None
        counted = [
            watermark
            for channel, watermark in enumerate(self._watermarks)
            if channel in self._open or (self._is_active[channel] and watermark >= self.watermark)
        ]
        if not counted:
            return None
        minimum = min(counted)
        self._holding_back = counted.count(minimum)
        return self._rise_to(minimum)

    def _rise_to(self, watermark: int) -> Watermark | None:
        if watermark <= self.watermark:
            return None
        self.watermark = watermark
        return Watermark(watermark)


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
        self,
        input_number: int,
        channel: int,
        element: Watermark | WatermarkStatus | CheckpointBarrier,
    ) -> tuple[Watermark | WatermarkStatus, ...]:
        """Takes an element of a channel. Returns the elements of the input: none, one or two."""
        valve, position = self._valves[input_number], self._positions[channel]
        if isinstance(element, WatermarkStatus):
            return valve.input_status(position, element)
        if isinstance(element, CheckpointBarrier):
            return valve.input_barrier(position)
        risen = valve.input_watermark(position, element.timestamp)
        return () if risen is None else (risen,)

    def begin_epoch(self) -> None:
        """Opens all channels."""
        for valve in self._valves.values():
            valve.begin_epoch()

    def is_open(self, input_number: int) -> bool:
        """Whether the barrier of the epoch is missing in a channel of the input."""
        return self._valves[input_number].is_open

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
