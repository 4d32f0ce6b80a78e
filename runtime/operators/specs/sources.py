"""Sources: those that are read, and those that run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.runtime.operators.specs.operator_spec import OperatorSpec

if TYPE_CHECKING:
    from opchain.runtime.connectors.source import Source
    from opchain.runtime.watermarks.strategy import WatermarkStrategy


@dataclass(frozen=True, slots=True)
class SourceSpec(OperatorSpec):
    """A source of `from_source`, `from_collection`, `from_sequence`, ...; chains as FLIP-27 sources do."""

    kind: ClassVar[str] = "source"
    default_name: ClassVar[str] = "Sequence Source"
    source: Source[Any]
    watermark_strategy: WatermarkStrategy | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether the source ends by itself."""
        return self.source.is_bounded

    def makes_timestamps(self) -> bool:
        """Whether a strategy assigns them, or the connector brings them along."""
        strategy = self.watermark_strategy
        assigns = strategy is not None and strategy.timestamp_assigner is not None
        return assigns or self.source.has_timestamps

    def brings_timestamps(self) -> bool:
        """As the connector says."""
        return self.source.has_timestamps


@dataclass(frozen=True, slots=True)
class LegacySourceSpec(OperatorSpec):
    """A SourceFunction of `add_source`: unbounded, and heads a chain of its own thread."""

    kind: ClassVar[str] = "legacy_source"
    default_name: ClassVar[str] = "Custom Source"
    function: Any
    is_parallel: bool = False
    is_bounded: bool = False

    def makes_timestamps(self) -> bool:
        """Maybe: the function may collect with timestamps."""
        return True

    def brings_timestamps(self) -> bool:
        """Maybe, likewise."""
        return True


@dataclass(frozen=True, slots=True)
class InputFormatSourceSpec(LegacySourceSpec):
    """A legacy source over splits: what `from_collection` is in PyFlink.

    Flink: `InputFormatSourceFunction`. `function` is a Source, and runs as that of a SourceSpec;
    only the graph tells the two apart.
    """

    kind: ClassVar[str] = "input_format_source"
    default_name: ClassVar[str] = "Collection Source"
    function: Source[Any]

    def makes_timestamps(self) -> bool:
        """As the connector says."""
        return self.function.has_timestamps

    def brings_timestamps(self) -> bool:
        """As the connector says."""
        return self.function.has_timestamps
