"""The watermarks and statuses of a task's inputs, each combined over the input's channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.records.elements import Watermark, WatermarkStatus
from opchain.runtime.task.input.watermark_valve import WatermarkValve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.program.vertex_program import ChainedSourceProgram, InputProgram


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

    def progress(self) -> dict[int, WatermarkValve]:
        """The valves themselves, by input number: what a checkpoint keeps."""
        return self._valves

    def restore(self, valves: dict[int, WatermarkValve]) -> None:
        """Resumes where valves with as many channels stopped."""
        self._valves = valves

    def hold(self, input_number: int, watermark: int) -> None:
        """Lets an input begin at a watermark: with other channels than before nobody knows more."""
        self._valves[input_number] = WatermarkValve(
            self._valves[input_number].channel_count, watermark
        )

    def watermark(self, input_number: int) -> int:
        """The current watermark of an input, in milliseconds. Flink's gauge `currentInput<N>Watermark`."""
        return self._valves[input_number].watermark
