"""What a task reads in an epoch.

A source reads what the driver delivers, or, if it is bounded, everything in its first epoch. What comes over
exchanges is read as ever, but the keys of records are noted, for the changes that the checkpoint keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.records.elements import RecordBatch
from opchain.runtime.task.input.task_input import GateInput, SourceInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.operators.source import SourceOperator
    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.task.input.input_gate import InputElement
    from opchain.runtime.task.input.input_valves import InputValves
    from opchain.runtime.task.operator_chain import OperatorChain


def source_input(
    operator: SourceOperator,
    chain: OperatorChain,
    deliveries: Iterable[Buffer],
    *,
    is_first: bool,
    drains: bool = False,
) -> SourceInput:
    """What a source reads in an epoch.

    Args:
        operator: The source.
        chain: What is fed.
        deliveries: What the driver has sent to this subtask, in order.
        is_first: Whether it is the source's first epoch: a bounded one is read now.
        drains: Whether event time ends behind it.
    """
    if operator.source.is_bounded and is_first:
        return SourceInput(operator.batches(), chain)
    payloads = (delivery.payload for delivery in deliveries)
    source = operator.source
    return SourceInput(
        operator.delivered_batches(payloads), chain, ends=lambda: drains or source.has_ended
    )


class EpochGateInput(GateInput):
    """Reads the exchanges of an epoch."""

    def __init__(
        self, elements: Iterable[InputElement], valves: InputValves, chain: OperatorChain
    ) -> None:
        super().__init__(elements, valves, chain)
        self._backend = chain.head.context.keyed_state
        self._selectors = chain.head.program.selectors

    def feed(self, item: InputElement) -> None:
        """Feeds one element; a batch's keys count as touched."""
        super().feed(item)
        if self._backend is not None and item.element.__class__ is RecordBatch:
            select = self._selectors[item.input_number]
            if select is not None:
                self._backend.touch(map(select, item.element.values))
