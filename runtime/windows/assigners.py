"""The contract of a window assigner, which chooses the windows of a record.

The assigners are in time_windows.py and global_windows.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.type_variables import W, W_contra
from opchain.runtime.functions.window import PickledWindowSerializer
from opchain.runtime.types.type_variables import T_contra

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.functions.state import OperatorStateStore
    from opchain.runtime.types.type_information import TypeSerializer
    from opchain.runtime.windows.triggers import Trigger


class WindowAssigner(ABC, Generic[T_contra, W]):
    """Puts each record into zero or more windows.

    The class's name is the operator's name in the plan, as in Flink.
    """

    class WindowAssignerContext(ABC):
        """Information about the task for an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The machine's time in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The window operator's context, with state of the current key. PyFlink only."""

        def get_operator_state_store(self) -> OperatorStateStore:
            """State of the subtask, which assigners with something to remember keep theirs in. Not in Flink."""
            raise NotImplementedError(f"{type(self).__name__} has no operator state")

    @abstractmethod
    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a record.

        Args:
            element: The record.
            timestamp: Its event time in milliseconds; -2**63 where it has none.
            context: See WindowAssignerContext.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[Any, W]:
        """The trigger of a stream that doesn't name one.

        Args:
            env: The StreamExecutionEnvironment.
        """

    @property
    def plan_name(self) -> str:
        """The assigner in the name of the operator."""
        return str(self)

    def get_window_serializer(self) -> TypeSerializer[W]:
        """How PyFlink stores the windows. Here they are pickled, and this is never asked."""
        return PickledWindowSerializer()

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by event time: lateness and late records exist only then."""


class MergingWindowAssigner(WindowAssigner[T_contra, W]):
    """An assigner whose windows grow together, such as sessions."""

    class MergeCallback(ABC, Generic[W_contra]):
        """Takes the windows that an assigner merges."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W_contra], merge_result: W_contra) -> None:
            """Says that these windows become that one."""

    @abstractmethod
    def merge_windows(
        self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]
    ) -> None:
        """Looks for windows that belong together, and reports each group of them once."""
