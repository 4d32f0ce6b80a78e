"""Sources that run inside the task of an operator with several inputs.

There is no exchange between such a source and the operator. Otherwise it is an input like any other. Its elements have
the number of the input, and pass through a watermark valve on their own channel.

Flink: HEAD_WITH_SOURCES; `OperatorChain.createChainedSources`, `StreamTaskSourceInput`.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.operator import OperatorContext, Output
from opchain.runtime.operators.source import NOTHING_YET_S, SourceOperator
from opchain.runtime.records.elements import (
    MAX_WATERMARK,
    EndOfInput,
    NothingYet,
    RecordBatch,
    StreamElement,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.task.input.input_gate import InputElement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.program.vertex_program import (
        ChainedSourceProgram,
        InputProgram,
        OperatorProgram,
    )


class ChainedSource:
    """One source, which emits elements."""

    def __init__(
        self,
        program: ChainedSourceProgram,
        make_context: Callable[[OperatorProgram], OperatorContext],
    ) -> None:
        self.program = program
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._waiting: deque[StreamElement] = deque()
        output = Output(
            collect=self._collect,
            watermark_receivers=[self._take_watermark],
            idle_receivers=[self._take_status],
            marker_receivers=[self._waiting.append],
        )
        self.operator = SourceOperator(program.operator, make_context(program.operator), output)

    def elements(self) -> Iterator[StreamElement]:
        """Reads this subtask's splits; ends with the last watermark and the end of input."""
        operator = self.operator
        for batch in operator.batches():
            values, timestamps = _parts(batch)
            if not len(values):
                yield from self._wait(batch)
                continue
            operator.count(len(values), len(values))
            if operator.strategy is None:
                self._waiting.append(
                    RecordBatch(list(values), None if timestamps is None else list(timestamps))
                )
            else:
                operator.process_batch(0, values, timestamps)
                operator.on_batch_end()
                self._cut()
            yield from self._taken()
        operator.process_watermark(MAX_WATERMARK)
        operator.context.quiesce()
        operator.finish()
        yield from self._taken()
        yield EndOfInput()

    def _wait(self, batch: Any) -> Iterator[StreamElement]:
        """Makes the task wait. In batch mode it waits here, because no key is processed before the end of the input."""
        wait_s = getattr(batch, "wait_s", NOTHING_YET_S)
        if self.operator.context.task.vertex.is_batch:
            time.sleep(wait_s)
            return
        self.operator.on_batch_end()
        self._cut()
        yield from self._taken()
        yield NothingYet(wait_s)

    def _taken(self) -> Iterator[StreamElement]:
        # Not a loop over the list: mail may append a latency marker between two elements.
        while self._waiting:
            yield self._waiting.popleft()

    def _collect(self, value: Any, timestamp: int | None) -> None:
        self._values.append(value)
        self._timestamps.append(timestamp)

    def _take_watermark(self, timestamp: int) -> None:
        self._cut()
        self._waiting.append(Watermark(timestamp))

    def _take_status(self, is_idle: bool) -> None:
        self._cut()
        self._waiting.append(WatermarkStatus.IDLE if is_idle else WatermarkStatus.ACTIVE)

    def _cut(self) -> None:
        """Ends a batch."""
        if self._values:
            self._waiting.append(RecordBatch(self._values, self._timestamps))
            self._values, self._timestamps = [], []


class ChainedSources:
    """The sources inside one task. Most tasks have none."""

    def __init__(
        self,
        programs: Sequence[ChainedSourceProgram],
        make_context: Callable[[OperatorProgram], OperatorContext],
    ) -> None:
        self._sources = [ChainedSource(program, make_context) for program in programs]
        self._read: InterleavedInputs | None = None

    @property
    def operators(self) -> list[SourceOperator]:
        """The operators, by index."""
        return [source.operator for source in self._sources]

    def open(self) -> None:
        """Opens the sources, after the chain."""
        for operator in self.operators:
            operator.open()

    def elements_with(
        self,
        gate: Iterable[InputElement],
        gate_inputs: Sequence[InputProgram],
        input_watermarks: Sequence[int],
    ) -> Iterable[InputElement]:
        """All elements that the task reads, from the gate and from the sources."""
        if not self._sources:
            return gate
        numbers = [edge.input_number for edge in gate_inputs]
        self._read = InterleavedInputs(gate, numbers, self._sources, input_watermarks)
        return self._read

    def close(self) -> None:
        """Closes the readers of the sources."""
        if self._read is not None:
            self._read.close()


@dataclass(slots=True)
class _Reader:
    """An input that is read in turns."""

    elements: Iterator[InputElement]
    inputs: tuple[int, ...]
    turns: int = 0
    nothing_yet: InputElement | None = None
    """Set while the input is passed over, because it has no records yet."""


class InterleavedInputs:
    """The elements of an input gate and of chained sources, in turns. Can be iterated once.

    The task reads next from the input with the lowest watermark; if several have it, from the input with the fewest turns
    so far. So inputs advance together in event time, and equal input is read in the same order. Flink reads any input
    that has data. An input that has no records yet is passed over, until another input has an element.

    Args:
        gate: The elements of the exchanges.
        gate_inputs: The numbers of the inputs of the gate.
        sources: The chained sources.
        input_watermarks: The current watermark of each input, which the task updates.
    """

    def __init__(
        self,
        gate: Iterable[InputElement],
        gate_inputs: Iterable[int],
        sources: Sequence[ChainedSource],
        input_watermarks: Sequence[int],
    ) -> None:
        self._input_watermarks = input_watermarks
        self._readers = [_Reader(iter(gate), tuple(sorted(set(gate_inputs))))]
        for source in sources:
            number, channel = source.program.input_number, source.program.channel
            # A generator for each source. Closing the generator closes the reader of the source.
            self._readers.append(_Reader(_numbered(source.elements(), number, channel), (number,)))

    def __iter__(self) -> Iterator[InputElement]:
        """Reads the inputs in turns."""
        left = list(self._readers)
        while left:
            ready = [reader for reader in left if reader.nothing_yet is None]
            if ready:
                reader = min(ready, key=self._place)
                element = next(reader.elements, None)
                if element is None:
                    left.remove(reader)
                    continue
                if element.element.__class__ is NothingYet:
                    reader.nothing_yet = element
                    continue
                reader.turns += 1
            else:
                element = min((each.nothing_yet for each in left if each.nothing_yet), key=_wait_s)
            for each in left:
                each.nothing_yet = None
            yield element

    def close(self) -> None:
        """Closes the readers of the sources."""
        for reader in self._readers:
            close = getattr(reader.elements, "close", None)
            if close is not None:
                close()

    def _place(self, reader: _Reader) -> tuple[int, int]:
        watermarks = [self._input_watermarks[number] for number in reader.inputs]
        return min(watermarks, default=MAX_WATERMARK), reader.turns


def _wait_s(item: InputElement) -> float:
    """How long the task waits after a NothingYet."""
    assert isinstance(item.element, NothingYet)
    return item.element.wait_s


def _numbered(
    elements: Iterator[StreamElement], input_number: int, channel: int
) -> Iterator[InputElement]:
    for element in elements:
        yield InputElement(input_number, channel, element)


def _parts(batch: Any) -> tuple[Sequence[Any], Sequence[int | None] | None]:
    """The records of a batch, and their timestamps if the source sets them."""
    return (batch.values, batch.timestamps) if isinstance(batch, RecordBatch) else (batch, None)
