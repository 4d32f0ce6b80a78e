"""Operators on one keyed stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.runtime.functions.on_timer import has_on_timer
from opchain.runtime.operators.specs.operator_spec import OperatorSpec

if TYPE_CHECKING:
    from opchain.runtime.output_tag import OutputTag
    from opchain.runtime.windows.assigners import WindowAssigner
    from opchain.runtime.windows.evictors import Evictor
    from opchain.runtime.windows.triggers import Trigger


@dataclass(frozen=True, slots=True)
class ReduceSpec(OperatorSpec):
    """`reduce` on a keyed stream, and the rolling `sum`, `min`, `max`, `min_by`, `max_by`."""

    kind: ClassVar[str] = "reduce"
    default_name: ClassVar[str] = "Keyed Reduce"
    function: Any

    def reads_timestamps(self) -> bool:
        """No: records keep theirs."""
        return False


@dataclass(frozen=True, slots=True)
class CombinedReduceSpec(ReduceSpec):
    """In batch mode, a reduce whose senders have combined records: it gets (key, value) pairs.

    A combined value need not have the key of what it was combined from. Only executors know this spec.
    """

    kind: ClassVar[str] = "combined_reduce"


@dataclass(frozen=True, slots=True)
class KeyedProcessSpec(OperatorSpec):
    """`process` on a keyed stream."""

    kind: ClassVar[str] = "keyed_process"
    default_name: ClassVar[str] = "KeyedProcess"
    function: Any

    def makes_timestamps(self) -> bool:
        """Where its timers give results."""
        return has_on_timer(self.function)


@dataclass(frozen=True, slots=True)
class WindowSpec(OperatorSpec):
    """A window and what is computed over it.

    Exactly one of these shapes: `reduce` or `aggregate` (incremental), each with an optional
    `function` behind it, or `function` alone over the buffered elements. `function` is a
    WindowFunction or ProcessWindowFunction (or their `All` forms for `window_all`).
    """

    kind: ClassVar[str] = "window"
    default_name: ClassVar[str] = "Window"
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag | None = None
    reduce: Any = None
    aggregate: Any = None
    function: Any = None
    is_all: bool = False

    def makes_timestamps(self) -> bool:
        """Yes: that of the window or pair."""
        return True


@dataclass(frozen=True, slots=True)
class FullWindowSpec(OperatorSpec):
    """`full_window_partition().map_partition` on a keyed stream: one call per key, at the end."""

    kind: ClassVar[str] = "full_window"
    default_name: ClassVar[str] = "GlobalWindows"
    emits_only_at_end: ClassVar[bool] = True
    function: Any

    def makes_timestamps(self) -> bool:
        """Yes: that of the window or pair."""
        return True
