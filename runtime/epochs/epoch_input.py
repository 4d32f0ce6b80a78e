"""What a task reads in an epoch.

A source reads what the driver delivers, or, if it is bounded, everything in the first epoch. What comes over
exchanges is read as ever, but the keys of records are noted, for the changes that the checkpoint keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.task.elements import MAX_WATERMARK, RecordBatch
from opchain.runtime.task.task_input import GateInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.epochs.epoch import Epoch
    from opchain.runtime.operators.source import SourceOperator
    from opchain.runtime.task.buffer import Buffer
    from opchain.runtime.task.input_gate import InputElement
    from opchain.runtime.task.input_valves import InputValves
    from opchain.runtime.task.mailbox.default_action import Controller
    from opchain.runtime.task.operator_chain import OperatorChain


class EpochSourceInput:
    """Feeds a chain whose head is a source with what the epoch brings.

    Args:
        operator: The source.
        chain: What is fed.
        deliveries: What the driver has sent to this subtask, in order.
        epoch: The epoch.
    """

    def __init__(
        self,
        operator: SourceOperator,
        chain: OperatorChain,
        deliveries: Iterable[Buffer],
        epoch: Epoch,
    ) -> None:
        self._operator = operator
        self._chain = chain
        self._ends = operator.source.is_bounded and epoch.is_first
        self._batches = operator.batches() if self._ends else self._delivered(deliveries)

    def process_next(self, controller: Controller) -> None:
        """Feeds the next batch; behind a bounded source's records comes the last watermark."""
        batch = next(self._batches, None)
        if batch is None:
            if self._ends:
                self._chain.process_watermark(0, MAX_WATERMARK)
            controller.all_actions_completed()
        elif batch.__class__ is RecordBatch:
            self._chain.process_batch(0, batch.values, batch.timestamps)
        else:
            self._chain.process_batch(0, batch, None)

    def close(self) -> None:
        """Ends the reader, which closes what it has open."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def _delivered(self, deliveries: Iterable[Buffer]) -> Iterator[Any]:
        source, batch_size = self._operator.source, self._chain.program.batch_size
        for delivery in deliveries:
            yield from source.read_delivery(delivery.payload, batch_size)


class EpochGateInput(GateInput):
    """Reads the exchanges of an epoch."""

    def __init__(
        self, elements: Iterable[InputElement], valves: InputValves, chain: OperatorChain
    ) -> None:
        super().__init__(elements, valves, chain)
        self._backend = chain.head.context.keyed_state
        self._selectors = [None if key is None else key.selector for key in chain.head.program.keys]

    def feed(self, item: InputElement) -> None:
        """Feeds one element; a batch's keys count as touched."""
        super().feed(item)
        if self._backend is not None and item.element.__class__ is RecordBatch:
            select = self._selectors[item.input_number]
            if select is not None:
                self._backend.touch(map(select, item.element.values))
