"""What all metrics have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Metric(ABC):
    """A number, or several, that a function keeps while it runs. Flink: `Metric`.

    Made by the MetricGroup that it is registered in; used in the thread of its task.
    """

    __slots__ = ()

    @abstractmethod
    def snapshot(self) -> Any:
        """What it shows now, as a small picklable value: taken when the task has ended."""
