"""What an operator under test emits, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.operators.operator import Output

if TYPE_CHECKING:
    from opchain.runtime.types.output_tag import OutputTag


class EmittedRecord(NamedTuple):
    """A record, and its event time in milliseconds (None where it has none)."""

    value: Any
    timestamp: int | None


class EmittedWatermark(NamedTuple):
    """A watermark that was passed on."""

    timestamp: int


class CapturedOutput(Output):
    """An output that keeps what it gets.

    Attributes:
        elements: Records of the main output and watermarks, as they came.
        by_tag: Records of the side outputs, by tag id.
        statuses: Each change of idleness that was passed on.
    """

    __slots__ = ("by_tag", "elements", "statuses")

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[EmittedRecord | EmittedWatermark] = []
        self.by_tag: dict[str, list[EmittedRecord]] = {}
        self.statuses: list[bool] = []
        self.collect = self._keep
        self.watermark_receivers.append(self._keep_watermark)
        self.idle_receivers.append(self.statuses.append)

    def collect_to(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        """Keeps a record of a side output."""
        self.by_tag.setdefault(tag_id, []).append(EmittedRecord(value, timestamp))

    def records(self, tag: OutputTag[Any] | None = None) -> list[EmittedRecord]:
        """The records of the main output, or of a side output."""
        if tag is not None:
            return list(self.by_tag.get(tag.tag_id, ()))
        return [element for element in self.elements if isinstance(element, EmittedRecord)]

    def clear(self) -> None:
        """Forgets what was kept."""
        self.elements.clear()
        self.by_tag.clear()
        self.statuses.clear()

    def _keep(self, value: Any, timestamp: int | None) -> None:
        self.elements.append(EmittedRecord(value, timestamp))

    def _keep_watermark(self, timestamp: int) -> None:
        self.elements.append(EmittedWatermark(timestamp))
