"""Window joins and co-groups: `first.join(second).where(..).equal_to(..).window(..).apply(..)`, and `co_group`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import at_call, checked_function, type_of
from opchain.compiler.dsl.windowed_stream import WindowDefinition
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.co_grouping import (
    FIRST,
    SECOND,
    CoGroupWindowFunction,
    InputTagger,
    JoinCoGroupFunction,
    UnionKeySelector,
)
from opchain.runtime.functions.key_selectors import KeySelector
from opchain.runtime.functions.record_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
)
from opchain.runtime.functions.type_variables import W
from opchain.runtime.program.operator_specs import MapSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.windowed_stream import WindowedStream
    from opchain.runtime.windows.assigners import WindowAssigner


K = TypeVar("K")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
R = TypeVar("R")


class KeyedPair(Generic[K, T1, T2]):
    """Two streams, and the key selectors that pair their records."""

    def __init__(
        self, stream1: DataStream[T1], stream2: DataStream[T2], key_selector1: Any, key_type: Any
    ) -> None:
        checked_function(key_selector1, KeySelector, "where", callables=True)
        self._stream1 = stream1
        self._stream2 = stream2
        self._selector1 = key_selector1
        self._selector2: Any = None
        self._key_type = type_of(key_type, "where")

    def equal_to(self, key_selector2: Any, key_type: DeclaredType) -> KeyedPair[K, T1, T2]:
        """Sets the second stream's key."""
        checked_function(key_selector2, KeySelector, "equal_to", callables=True)
        second = type_of(key_type, "equal_to")
        if self._key_type is not None and second is not None and self._key_type != second:
            raise GraphError(
                f"{at_call('equal_to')}: the keys are declared as {self._key_type!r} in where() and "
                f"{second!r} here; declare the same type for both"
            )
        self._key_type = self._key_type or second
        self._selector2 = key_selector2
        return self

    def environment(self) -> Any:
        """The streams' environment."""
        return self._stream1.get_execution_environment()

    def windowed(self, assigner: WindowAssigner[Any, W]) -> WindowedStream[K, Any, W]:
        """Both streams in one, keyed and windowed: two taggers, a union, a key-by, a window."""
        first = _tagged(self._stream1, FIRST)
        second = _tagged(self._stream2, SECOND)
        selector = UnionKeySelector(self._selector1, self._selector2)
        return first.union(second).key_by(selector, self._key_type).window(assigner)


def _tagged(stream: DataStream[Any], number: int) -> DataStream[tuple[int, Any]]:
    # Flink gives a tagger the parallelism of its input, so that the two chain.
    return stream.transform(MapSpec(InputTagger(number)), parallelism=stream.get_parallelism())


class CoGroupedStreams(Generic[T1, T2]):
    """Two streams that wait for their keys. Flink: `CoGroupedStreams`."""

    def __init__(self, input1: DataStream[T1], input2: DataStream[T2]) -> None:
        self._streams = (input1, input2)

    def where(
        self, key_selector: KeySelector[T1, K] | Callable[[T1], K], key_type: DeclaredType = None
    ) -> CoGroupWhere[K, T1, T2]:
        """Sets the first stream's key."""
        return CoGroupWhere(KeyedPair(*self._streams, key_selector, key_type))


class CoGroupWhere(Generic[K, T1, T2]):
    """Waits for the second stream's key. Flink: `CoGroupedStreams.Where`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def equal_to(
        self, key_selector: KeySelector[T2, K] | Callable[[T2], K], key_type: DeclaredType = None
    ) -> CoGroupEqualTo[K, T1, T2]:
        """Sets the second stream's key."""
        return CoGroupEqualTo(self._pair.equal_to(key_selector, key_type))


class CoGroupEqualTo(Generic[K, T1, T2]):
    """Waits for the windows. Flink: `CoGroupedStreams.Where.EqualTo`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def window(self, assigner: WindowAssigner[Any, W]) -> WindowedCoGroup[K, T1, T2, W]:
        """Sets the windows in which records meet; the assigner sees `(1 or 2, record)`."""
        return WindowedCoGroup(self._pair, assigner)


class WindowedPair(WindowDefinition[Any, W], Generic[K, T1, T2, W]):
    """Two streams, their keys and their windows."""

    def __init__(self, pair: KeyedPair[K, T1, T2], assigner: WindowAssigner[Any, W]) -> None:
        super().__init__(pair.environment(), assigner)
        self._pair = pair

    def co_grouped(
        self, function: CoGroupFunction[Any, Any, Any], output_type: DeclaredType
    ) -> DataStream[Any]:
        """Builds the operators of a co-group."""
        windowed = self._pair.windowed(self._assigner)
        # The windowed stream takes over what was set here.
        windowed.take_over(self)
        return windowed.apply(CoGroupWindowFunction(function), output_type)


class WindowedCoGroup(WindowedPair[K, T1, T2, W]):
    """Waits for the function. Flink: `CoGroupedStreams.WithWindow`."""

    def apply(
        self,
        function: CoGroupFunction[T1, T2, R] | Callable[[Iterable[T1], Iterable[T2]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives the records of both streams that meet in a window under a key to a function."""
        checked_function(function, CoGroupFunction, "apply", callables=True)
        return self.co_grouped(function, output_type)  # type: ignore[arg-type]  # or a callable


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
