"""Ctrl-C that comes where it is looked for.

Python raises KeyboardInterrupt between any two instructions of the main thread. Between those of `threading` it
leaves locks behind that nobody releases, or comes out as "release unlocked lock", and a thread that was about to
start never does. So who starts a thread and waits for it holds Ctrl-C, and looks for it by turns.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from typing_extensions import Self

LOOK_EVERY_S = 0.1
"""How late Ctrl-C may be seen."""


class HeldInterrupts:
    """Within the block SIGINT's handler is called as ever, but what it raises waits.

    Only in the main thread, where handlers run, and only where Python has one: elsewhere nothing changes.

    Attributes:
        has_come: Whether Ctrl-C has come, or may have: from before its handler is called. pyspark's cancels all
            jobs of Spark's, which then fail, before it raises.
    """

    def __init__(self) -> None:
        self.has_come = False
        self._previous: Any = None
        self._held: list[BaseException] = []

    def __enter__(self) -> Self:
        """Takes the handler's place."""
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if callable(previous):
                self._previous = previous
                signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Gives the handler its place back, and raises what waits, unless something is raised already."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if error is None:
            self._raise_held()

    def wait(self, event: threading.Event, longest_s: float | None = None) -> None:
        """Waits for an event.

        Args:
            event: What is waited for.
            longest_s: The longest time to wait; None for as long as it takes.

        Raises:
            KeyboardInterrupt: Ctrl-C came first; or what else its handler raises.
        """
        end = None if longest_s is None else time.monotonic() + longest_s
        while not event.is_set():
            self._raise_held()
            left = LOOK_EVERY_S if end is None else min(LOOK_EVERY_S, end - time.monotonic())
            if left <= 0:
                return
            event.wait(left)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True
        try:
            self._previous(number, frame)
        except BaseException as error:  # noqa: BLE001 - raised where it is looked for
            self._held.append(error)
        else:
            self.has_come = bool(self._held)

    def _raise_held(self) -> None:
        if self._held:
            raise self._held.pop(0)
