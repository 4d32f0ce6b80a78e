"""Operators on several streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.runtime.functions.on_timer import has_on_timer
from opchain.runtime.operators.specs.operator_spec import OperatorSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.output_tag import OutputTag
    from opchain.runtime.state.descriptors import MapStateDescriptor


@dataclass(frozen=True, slots=True)
class CoMapSpec(OperatorSpec):
    """`connect(...).map`."""

    kind: ClassVar[str] = "co_map"
    default_name: ClassVar[str] = "Co-Map"
    function: Any

    def reads_timestamps(self) -> bool:
        """No: records keep theirs."""
        return False


@dataclass(frozen=True, slots=True)
class CoFlatMapSpec(OperatorSpec):
    """`connect(...).flat_map`."""

    kind: ClassVar[str] = "co_flat_map"
    default_name: ClassVar[str] = "Co-Flat Map"
    function: Any

    def reads_timestamps(self) -> bool:
        """No: records keep theirs."""
        return False


@dataclass(frozen=True, slots=True)
class CoProcessSpec(OperatorSpec):
    """`connect(...).process` with a CoProcessFunction."""

    kind: ClassVar[str] = "co_process"
    default_name: ClassVar[str] = "Co-Process"
    function: Any


@dataclass(frozen=True, slots=True)
class KeyedCoProcessSpec(OperatorSpec):
    """`connect(...).process` with a KeyedCoProcessFunction."""

    kind: ClassVar[str] = "keyed_co_process"
    default_name: ClassVar[str] = "Co-Keyed-Process"
    function: Any

    def makes_timestamps(self) -> bool:
        """Where its timers give results."""
        return has_on_timer(self.function)


@dataclass(frozen=True, slots=True)
class BroadcastProcessSpec(OperatorSpec):
    """`connect(broadcast).process` on a stream without key."""

    kind: ClassVar[str] = "broadcast_process"
    default_name: ClassVar[str] = "Co-Process-Broadcast"
    function: Any
    descriptors: tuple[MapStateDescriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyedBroadcastProcessSpec(OperatorSpec):
    """`connect(broadcast).process` on a keyed stream."""

    kind: ClassVar[str] = "keyed_broadcast_process"
    default_name: ClassVar[str] = "Co-Process-Broadcast-Keyed"
    function: Any
    descriptors: tuple[MapStateDescriptor, ...] = ()

    def makes_timestamps(self) -> bool:
        """Where its timers give results."""
        return has_on_timer(self.function)


@dataclass(frozen=True, slots=True)
class IntervalJoinSpec(OperatorSpec):
    """`interval_join`: pairs whose timestamps differ by `lower_ms` to `upper_ms` (right minus left)."""

    kind: ClassVar[str] = "interval_join"
    default_name: ClassVar[str] = "Interval Join"
    function: Any
    lower_ms: int
    upper_ms: int
    lower_inclusive: bool = True
    upper_inclusive: bool = True
    left_late_tag: OutputTag | None = None
    right_late_tag: OutputTag | None = None

    def makes_timestamps(self) -> bool:
        """Yes: that of the window or pair."""
        return True


@dataclass(frozen=True, slots=True)
class MultiInputSpec(OperatorSpec):
    """An operator with any number of inputs: `functions[i]` flat-maps the records of input i."""

    kind: ClassVar[str] = "multi_input"
    default_name: ClassVar[str] = "Multiple Input Operator"
    functions: tuple[Callable[[Any], Any], ...] = field(default=())
