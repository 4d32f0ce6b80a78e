"""Window joins: `first.join(second).where(..).equal_to(..).window(..).apply(..)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import checked_function
from opchain.compiler.dsl.co_grouped_streams import KeyedPair, WindowedPair
from opchain.runtime.functions.co_grouping import JoinCoGroupFunction
from opchain.runtime.functions.join_functions import FlatJoinFunction, JoinFunction
from opchain.runtime.type_variables import W

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.declared_types import DeclaredType
    from opchain.runtime.functions.key_selectors import KeySelector
    from opchain.runtime.windows.assigners import WindowAssigner

K = TypeVar("K")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
R = TypeVar("R")


class JoinedStreams(Generic[T1, T2]):
    """Two streams that wait for their keys. Flink: `JoinedStreams`."""

    def __init__(self, input1: DataStream[T1], input2: DataStream[T2]) -> None:
        self._streams = (input1, input2)

    def where(
        self, key_selector: KeySelector[T1, K] | Callable[[T1], K], key_type: DeclaredType = None
    ) -> JoinWhere[K, T1, T2]:
        """Sets the first stream's key."""
        return JoinWhere(KeyedPair(*self._streams, key_selector, key_type))


class JoinWhere(Generic[K, T1, T2]):
    """Waits for the second stream's key. Flink: `JoinedStreams.Where`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def equal_to(
        self, key_selector: KeySelector[T2, K] | Callable[[T2], K], key_type: DeclaredType = None
    ) -> JoinEqualTo[K, T1, T2]:
        """Sets the second stream's key."""
        return JoinEqualTo(self._pair.equal_to(key_selector, key_type))


class JoinEqualTo(Generic[K, T1, T2]):
    """Waits for the windows. Flink: `JoinedStreams.Where.EqualTo`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def window(self, assigner: WindowAssigner[Any, W]) -> WindowedJoin[K, T1, T2, W]:
        """Sets the windows in which records meet; the assigner sees `(1 or 2, record)`."""
        return WindowedJoin(self._pair, assigner)


class WindowedJoin(WindowedPair[K, T1, T2, W]):
    """Waits for the function. Flink: `JoinedStreams.WithWindow`."""

    def apply(
        self,
        function: JoinFunction[T1, T2, R] | FlatJoinFunction[T1, T2, R] | Callable[[T1, T2], R],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives each pair that meets in a window under a key to a function.

        A plain callable stands for a JoinFunction: it returns the pair's one record.
        """
        checked_function(function, (JoinFunction, FlatJoinFunction), "apply", callables=True)
        return self.co_grouped(JoinCoGroupFunction(function), output_type)
