"""Drives an element queue by a list of steps, and keeps what leaves it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from opchain.runtime.operators.async_wait.queues import ElementQueue, QueuedRecord

Step = tuple[str, int]

STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.sampled_from(
            ["record", "record", "watermark", "marker", "complete", "complete", "take"]
        ),
        st.integers(0, 20),
    ),
    max_size=60,
)
"""Random steps. The number of a "complete" chooses one of the records that wait."""


class Trace:
    """What happened: elements by number in the order of coming, of completing and of leaving."""

    def __init__(self, queue: ElementQueue) -> None:
        self.queue = queue
        self.kinds: list[str] = []
        self.completed: list[int] = []
        self.left: list[int] = []
        self._waiting: dict[int, QueuedRecord] = {}

    def run(self, steps: list[Step]) -> None:
        for kind, choice in steps:
            self.step(kind, choice)

    def step(self, kind: str, choice: int) -> None:
        number = len(self.kinds)
        if kind == "record":
            self.kinds.append(kind)
            self._waiting[number] = self.queue.put_record(number, None)
        elif kind in ("watermark", "marker"):
            self.kinds.append(kind)
            is_boundary = kind == "watermark"
            self.queue.put_mark(partial(self.left.append, number), is_boundary=is_boundary)
        elif kind == "complete" and self._waiting:
            self.complete(list(self._waiting)[choice % len(self._waiting)])
        elif kind == "take":
            self.take_all()

    def complete(self, number: int) -> None:
        self.completed.append(number)
        self.queue.complete(self._waiting.pop(number), [number])

    def complete_all(self) -> None:
        for number in list(self._waiting):
            self.complete(number)

    def take_all(self) -> None:
        def collect(value: Any, timestamp: int | None) -> None:
            self.left.append(value)

        while (element := self.queue.take()) is not None:
            element.emit(collect)
