"""The base class of window assigners, which choose the windows of a record.

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
    """Assigns each record to zero or more windows.

    The name of the class is the name of the operator in plans, as in Flink.
    """

    class WindowAssignerContext(ABC):
        """Gives an assigner access to its task."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The current time of the machine in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The context of the window operator, with state of the current key. Only in PyFlink, not in Flink."""

        def get_operator_state_store(self) -> OperatorStateStore:
            """The operator state, for assigners that have state per subtask. Not in Flink."""
            raise NotImplementedError(f"{type(self).__name__} has no operator state")

    @abstractmethod
    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """Returns the windows of a record.

        Args:
            element: The record.
            timestamp: Its event time in milliseconds; -2**63 for a record without timestamp.
            context: Access to the task.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[Any, W]:
        """The trigger for streams that set none.

        Args:
            env: The StreamExecutionEnvironment.
        """

    @property
    def plan_name(self) -> str:
        """The text of the assigner in the operator's description."""
        return str(self)

    def get_window_serializer(self) -> TypeSerializer[W]:
        """PyFlink's serializer of the windows. It is never called here, because windows are pickled."""
        return PickledWindowSerializer()

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end in event time. Only such windows have allowed lateness and late records."""


class MergingWindowAssigner(WindowAssigner[T_contra, W]):
    """An assigner whose windows can be merged, such as session windows."""

    class MergeCallback(ABC, Generic[W_contra]):
        """Receives the windows to merge."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W_contra], merge_result: W_contra) -> None:
            """Called with the windows to merge, and the resulting window."""

    @abstractmethod
    def merge_windows(
        self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]
    ) -> None:
        """Finds windows to merge, and calls the callback once for each group."""
