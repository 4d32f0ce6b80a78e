"""Folding the records of a key, with new rows for it once per watermark instead of once per record."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream.functions import RuntimeContext

    from examples.nexmark.model import Row


class FoldPerWatermark(KeyedProcessFunction[Any, Any, "Row"]):
    """Folds records, and shows the result when the watermark advances.

    The first record of a key since its last rows sets a timer for the next watermark, whatever that will be. In
    batch mode it fires when the key's input ends.
    """

    @abstractmethod
    def create(self) -> Any:
        """What a key begins with."""

    @abstractmethod
    def fold(self, folded: Any, value: Any) -> None:
        """Takes a record in."""

    @abstractmethod
    def rows(self, key: Any, folded: Any) -> Iterator[Row]:
        """What there is to show of a key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state: what is folded, and whether it is to be shown."""
        self.state = runtime_context.get_state(
            ValueStateDescriptor("folded, is due", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> None:
        """Takes a record in."""
        folded, is_due = self.state.value() or (self.create(), False)
        if not is_due:
            timers = ctx.timer_service()
            timers.register_event_time_timer(timers.current_watermark() + 1)
        self.fold(folded, value)
        self.state.update((folded, True))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:  # noqa: ARG002 - the contract
        """Shows what there is."""
        folded, _ = self.state.value()
        self.state.update((folded, False))
        yield from self.rows(ctx.get_current_key(), folded)
