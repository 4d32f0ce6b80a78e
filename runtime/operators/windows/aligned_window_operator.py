"""Tumbling and sliding event-time windows with the default trigger: the common case, made cheap.

These windows begin and end at the same times for all keys. So there is one dictionary per window, from
key to contents (a pane), and one entry in a queue of ends for the whole window; a record costs a
subtraction and two look-ups, and firing a window walks its dictionary. The general WindowOperator
asks a trigger, through a context, for each record, and keeps timers for each key.

What comes out is the same, in the same order: windows fire in the order of their ends, and in each
window the keys in the order in which they first came, which is the order of the general operator's
timers. Flink leaves the order of equal timers open.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.constants import MIN_LONG_VALUE
from opchain.runtime.operators.windows.contents import BufferedContents, contents_of
from opchain.runtime.operators.windows.evaluation import has_clear
from opchain.runtime.operators.windows.keyed_window_operator import KeyedWindowOperator
from opchain.runtime.operators.windows.window_state import CONTENTS, declare_contents
from opchain.runtime.state.key_identity import key_of
from opchain.runtime.windows.time_triggers import EventTimeTrigger
from opchain.runtime.windows.time_windows import (
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    check_timestamp,
)
from opchain.runtime.windows.window import TimeWindow

if TYPE_CHECKING:
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.task.vertex_program import OperatorProgram


def is_aligned(spec: WindowSpec) -> bool:
    """Whether the operator below runs a spec; the general one runs them all.

    With lateness, windows are dropped while others fire; where the function has a `clear`, the general
    operator keeps that in order.
    """
    return (
        type(spec.assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)
        and type(spec.trigger) is EventTimeTrigger
        and spec.evictor is None
        and not (spec.allowed_lateness_ms and has_clear(spec.function))
    )


class AlignedWindowOperator(KeyedWindowOperator):
    """Panes by the start of their window.

    `panes` are the windows that the watermark has not passed. With allowed lateness, windows that have
    fired stay in `fired` until they are over for good, and fire again with each record.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        assigner = self.spec.assigner
        assert isinstance(assigner, (TumblingEventTimeWindows, SlidingEventTimeWindows))
        self.size, self.slide, self.offset = assigner.pace
        declare_contents(self)
        self.contents = contents_of(self.spec)
        self.panes: dict[int, dict[Any, Any]] = {}
        self.fired: dict[int, dict[Any, Any]] = {}
        self._starts: list[int] = []
        self._fired_starts: list[int] = []
        self.plain, self.identify = self.backend.identity.plain, self.backend.identity.of
        self._key: Any = None

    @property
    def current_key(self) -> Any:
        """The key of the record or window at hand."""
        return None if self._key is None else key_of(self._key)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Puts the record into its windows, the latest first."""
        key = self.select_key(value)
        if key.__class__ not in self.plain:
            key = self.identify(key)
        self._key = key
        if timestamp is None:
            self.refuse(value)
        latest = timestamp - (timestamp - self.offset) % self.slide
        if timestamp - latest >= self.size:
            self.skip(value, timestamp)  # it lies between two windows
        for start in range(latest, timestamp - self.size, -self.slide):
            pane = self.panes.get(start)
            if pane is None:
                pane = self.pane_for(start, key, value, timestamp)
                if pane is None:
                    continue
            self.contents.add(pane, key, value)

    def refuse(self, value: Any) -> NoReturn:
        """Refuses a record without timestamp."""
        check_timestamp(value, MIN_LONG_VALUE, self.spec.assigner)
        raise AssertionError

    def pane_for(self, start: int, key: Any, value: Any, timestamp: int) -> dict[Any, Any] | None:
        """The pane of a window that is not open; None where the record needs none any more.

        A window that is new is opened. One that has fired takes the record and fires again, for this
        key. Into one that is over for good nothing goes: a record for which that is true of its
        latest window went into none.
        """
        watermark = self.current_watermark
        window = TimeWindow(start, start + self.size)
        if start <= MIN_LONG_VALUE:
            self.refuse(value)
        if self.lateness.is_window_late(window, watermark):
            if timestamp - start < self.slide:
                self.skip(value, timestamp)
            return None
        pane = self.backend.table(CONTENTS, window)
        if window.max_timestamp() > watermark:
            self.panes[start] = pane
            heapq.heappush(self._starts, start)
            return pane
        if start not in self.fired:
            self._keep(start, pane)
        self.contents.add(pane, key, value)
        self._fire(window, {key: pane[key]})
        return None

    def process_watermark(self, watermark: int) -> None:
        """Fires the windows that the watermark passes, in the order of their ends, and drops old ones."""
        self.current_watermark = watermark
        starts = self._starts
        while starts and starts[0] + self.size - 1 <= watermark:
            start = heapq.heappop(starts)
            window = TimeWindow(start, start + self.size)
            pane = self.panes.pop(start)
            self._fire(window, pane)
            if self.lateness.allowed_ms:
                self._keep(start, pane)
            else:
                self._drop(window, pane)
        starts = self._fired_starts
        while starts:
            window = TimeWindow(starts[0], starts[0] + self.size)
            if not self.lateness.is_window_late(window, watermark):
                break
            self._drop(window, self.fired.pop(heapq.heappop(starts)))
        super().process_watermark(watermark)

    def _keep(self, start: int, pane: dict[Any, Any]) -> None:
        self.fired[start] = pane
        heapq.heappush(self._fired_starts, start)

    def _fire(self, window: TimeWindow, pane: dict[Any, Any]) -> None:
        contents = self.contents
        if isinstance(contents, BufferedContents) or self.evaluation.has_function:
            self._evaluate(window, pane)
            return
        collect, last = self.output.collect, window.max_timestamp()
        result_of = contents.result
        for self._key, held in pane.items():
            result = result_of(held)
            if result is not None:
                collect(result, last)

    def _evaluate(self, window: TimeWindow, pane: dict[Any, Any]) -> None:
        backend, evaluation = self.backend, self.evaluation
        clears = evaluation.clears and not self.lateness.allowed_ms
        elements_of = self.contents.elements
        for self._key, held in pane.items():
            backend.set_current_state_key(self._key)
            elements = elements_of(held)
            if elements is not None:
                evaluation.emit(backend.current_key, window, elements)
            if clears:
                evaluation.clear(window)

    def _drop(self, window: TimeWindow, pane: dict[Any, Any]) -> None:
        pane.clear()
        self.backend.leave(CONTENTS, window)
