"""ConnectedStreams: two streams of different types before one operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import at_call, checked_function
from opchain.compiler.dsl.two_inputs import with_two_inputs
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.map_functions import CoFlatMapFunction, CoMapFunction
from opchain.runtime.functions.process_functions import CoProcessFunction, KeyedCoProcessFunction
from opchain.runtime.operators.specs import (
    CoFlatMapSpec,
    CoMapSpec,
    CoProcessSpec,
    KeyedCoProcessSpec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.declared_types import DeclaredType
    from opchain.runtime.functions.key_selectors import KeySelector
    from opchain.runtime.operators.specs import OperatorSpec

K = TypeVar("K")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
R = TypeVar("R")


class ConnectedStreams(Generic[T1, T2]):
    """Two streams that one operator will process, with state that both sides see.

    Either side may be keyed; where both are, their keys must be of one type.
    """

    def __init__(self, stream1: DataStream[T1], stream2: DataStream[T2]) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: KeySelector[T1, K] | Callable[[T1], K],
        key_selector2: KeySelector[T2, K] | Callable[[T2], K],
        key_type: DeclaredType = None,
    ) -> ConnectedStreams[T1, T2]:
        """Keys both sides, so that records of equal keys share state and timers."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type),
            self.stream2.key_by(key_selector2, key_type),
        )

    def map(
        self, func: CoMapFunction[T1, T2, R], output_type: DeclaredType = None
    ) -> DataStream[R]:
        """Turns each record of either side into one, or into none where the result is None."""
        checked_function(func, CoMapFunction, "map")
        return self._processed(CoMapSpec(func), output_type, "map")

    def flat_map(
        self, func: CoFlatMapFunction[T1, T2, R], output_type: DeclaredType = None
    ) -> DataStream[R]:
        """Turns each record of either side into any number of records."""
        checked_function(func, CoFlatMapFunction, "flat_map")
        return self._processed(CoFlatMapSpec(func), output_type, "flat_map")

    def process(
        self,
        func: CoProcessFunction[T1, T2, R] | KeyedCoProcessFunction[Any, T1, T2, R],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives each record, with its timestamp and the clocks, to a function.

        Raises:
            GraphError: The function is a KeyedCoProcessFunction, and a side has no key.
        """
        checked_function(func, (CoProcessFunction, KeyedCoProcessFunction), "process")
        if isinstance(func, CoProcessFunction):
            return self._processed(CoProcessSpec(func), output_type, "process")
        for number, stream in ((1, self.stream1), (2, self.stream2)):
            if stream.state_key is None:
                raise GraphError(
                    f"{at_call('process')}: {type(func).__name__} is a KeyedCoProcessFunction, but "
                    f"input {number}, '{stream.transformation.name}' "
                    f"({stream.transformation.call_site}), has no key; call key_by() on both inputs, "
                    "or write a CoProcessFunction"
                )
        return self._processed(KeyedCoProcessSpec(func), output_type, "process")

    def _processed(
        self, spec: OperatorSpec, output_type: DeclaredType, call: str
    ) -> DataStream[Any]:
        key1, key2 = self.stream1.state_key, self.stream2.state_key
        types = [key.key_type for key in (key1, key2) if key is not None]
        if len(types) == 2 and None not in types and types[0] != types[1]:  # noqa: PLR2004 - both
            raise GraphError(
                f"{at_call(call)}: the keys of the two inputs are declared as {types[0]!r} and "
                f"{types[1]!r}; both must be of one type"
            )
        return with_two_inputs(spec, self.stream1, self.stream2, output_type)
