"""An operator with timers: a backend, a clock and a service; it keeps what fires."""

from __future__ import annotations

from typing import Any

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keys.key_groups import key_group_range
from opchain.runtime.state.timers.timer_services import TimerServices
from opchain.runtime.testing.operator_harness import ManualClock


class Operator:
    """A backend, a clock and a service; keeps what fires, with the key that was current."""

    def __init__(
        self,
        parallelism: int = 1,
        subtask: int = 0,
        *,
        is_batch: bool = False,
        snapshots: Any = None,
        now: int = 0,
    ) -> None:
        self.clock = ManualClock(now)
        self.processor = MailboxProcessor(lambda _: None)
        self.backend = HashMapKeyedStateBackend(16, key_group_range(16, parallelism, subtask))
        self.services = TimerServices(
            self.backend,
            ProcessingTimeService(self.clock, self.processor.mailbox_executor(0)),
            is_batch=is_batch,
            where="'count' (job.py:3)",
        )
        if snapshots is not None:
            self.services.restore(snapshots)
        self.fired: list[Any] = []
        self.reaction: Any = lambda *_: None
        self.timers = self.services.service("timers", self)

    def on_event_time(self, time: int, namespace: Any) -> None:
        self.fired.append(("event", time, self.backend.current_key))
        self.reaction("event", time, namespace)

    def on_processing_time(self, time: int, namespace: Any) -> None:
        self.fired.append(("processing", time, self.backend.current_key))
        self.reaction("processing", time, namespace)

    def register(self, domain: str, time: int, key: Any = "k", namespace: Any = VOID) -> None:
        self.backend.set_current_key(key)
        getattr(self.timers, f"register_{domain}_time_timer")(namespace, time)

    def delete(self, domain: str, time: int, key: Any = "k") -> None:
        self.backend.set_current_key(key)
        getattr(self.timers, f"delete_{domain}_time_timer")(VOID, time)

    def run_mail(self) -> None:
        while self.processor.mailbox_executor().try_yield():
            pass

    def advance_to(self, now: int) -> None:
        self.clock.advance_to(now)
        self.run_mail()

    def reach(self, domain: str, time: int) -> list[Any]:
        """What fires when a clock reaches a time."""
        self.fired.clear()
        if domain == "event":
            self.services.advance_watermark(time)
        else:
            self.advance_to(time)
        return list(self.fired)
