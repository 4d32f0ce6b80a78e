"""Asks for a value when somebody looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.metrics.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN = frozenset({bool, int, float, str, type(None)})


@dataclass(frozen=True, slots=True)
class GaugeFailure:
    """In place of the value of a gauge whose function raised: the job itself is none the worse."""

    error: str

    def as_plain(self) -> dict[str, Any]:
        """The error by that name."""
        return {"error": self.error}


@dataclass(frozen=True, slots=True)
class GaugeValue:
    """What the gauge of one subtask showed at the end."""

    value: bool | float | str | GaugeFailure | None


class Gauge(Metric):
    """A function without arguments that gives the value. Flink: `Gauge`.

    It is called once, when the task has processed everything and is not closed yet. Values other than
    numbers and texts are reported by their `repr`. Subtasks' values are kept one by one.

    >>> Gauge(lambda: 7).snapshot()
    GaugeValue(value=7)
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def get_value(self) -> Any:
        """What the function gives now."""
        return self._read()

    def snapshot(self) -> GaugeValue:
        """The value now, or how asking for it failed."""
        try:
            value = self._read()
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            return GaugeValue(GaugeFailure(short_repr(error, 200)))
        return GaugeValue(value if type(value) in _PLAIN else short_repr(value))
