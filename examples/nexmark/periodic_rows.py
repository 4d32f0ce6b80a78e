"""Folding the records of a key, with new rows for it every ten seconds instead of with every record."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Row
    from opchain.datastream.functions import RuntimeContext

PERIOD_MS = 10_000


class PeriodicRows(KeyedProcessFunction[Any, Any, "Row"]):
    """Folds records, and shows the result at the end of each ten seconds of event time that had any.

    The first record after the last rows of a key sets the timer. In batch mode it fires once, when the input of
    the key ends.
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
            time = ctx.timestamp()
            end_of_period = time - time % PERIOD_MS + PERIOD_MS - 1
            ctx.timer_service().register_event_time_timer(end_of_period)
        self.fold(folded, value)
        self.state.update((folded, True))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        """Shows what there is."""
        folded, _ = self.state.value()
        self.state.update((folded, False))
        yield from self.rows(ctx.get_current_key(), folded)
