"""Folds the records of each key, and emits rows every ten seconds instead of after every record."""

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
    """Folds records, and emits rows at the end of each ten seconds of event time in which records arrived.

    The first record of a key, and the first one after each emission, set the timer. In batch mode it fires once,
    at the end of the key's input.
    """

    @abstractmethod
    def create(self) -> Any:
        """The initial value of a key."""

    @abstractmethod
    def fold(self, folded: Any, value: Any) -> None:
        """Adds a record to the folded value, in place."""

    @abstractmethod
    def rows(self, key: Any, folded: Any) -> Iterator[Row]:
        """The rows of a key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state: the folded value, and whether its timer is set."""
        self.state = runtime_context.get_state(
            ValueStateDescriptor("folded, is due", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> None:
        """Folds a record, and sets the timer if it is not set."""
        folded, is_due = self.state.value() or (self.create(), False)
        if not is_due:
            time = ctx.timestamp()
            end_of_period = time - time % PERIOD_MS + PERIOD_MS - 1
            ctx.timer_service().register_event_time_timer(end_of_period)
        self.fold(folded, value)
        self.state.update((folded, True))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        """Emits the rows of the key."""
        folded, _ = self.state.value()
        self.state.update((folded, False))
        yield from self.rows(ctx.get_current_key(), folded)
