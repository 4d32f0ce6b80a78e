"""The clocks and timers that a function sees."""

from __future__ import annotations

from abc import ABC, abstractmethod


class TimerService(ABC):
    """Reads both clocks and sets timers; all times are milliseconds since the epoch.

    A timer belongs to the current key and fires once, however often the same time is registered.
    On a stream without key the clocks can be read, and setting a timer is an error.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The machine's time."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event time reached so far; -2**63 before the first watermark."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Asks for a call of `on_timer` once the machine's time is at or past the timestamp."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Asks for a call of `on_timer` once the watermark is at or past the timestamp."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Takes back a timer of the current key; nothing happens where there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Takes back a timer of the current key; nothing happens where there is none."""
