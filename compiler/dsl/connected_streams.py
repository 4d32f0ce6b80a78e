"""Several streams before one operator: ConnectedStreams, BroadcastConnectedStream, and any number of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import (
    DeclaredType,
    at_call,
    checked,
    checked_function,
    checked_stream,
    type_of,
)
from opchain.compiler.dsl.captured_functions import captured
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.graph.transformation import (
    ChainingStrategy,
    OperatorTransformation,
    user_call_site,
)
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from opchain.runtime.functions.record_functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FlatMapFunction,
)
from opchain.runtime.functions.state_descriptors import MapStateDescriptor
from opchain.runtime.program.operator_specs import (
    BroadcastProcessSpec,
    CoFlatMapSpec,
    CoMapSpec,
    CoProcessSpec,
    KeyedBroadcastProcessSpec,
    KeyedCoProcessSpec,
    MultiInputSpec,
    OperatorSpec,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opchain.compiler.dsl.stream import Stream
    from opchain.runtime.functions.key_selectors import KeySelector


def with_two_inputs(
    spec: OperatorSpec, first: Stream[Any], second: Stream[Any], output_type: DeclaredType
) -> DataStream[Any]:
    """Adds an operator that reads both streams. The state key of each input is that of its stream.

    Flink: `ConnectedStreams.transform`.
    """
    environment = first.get_execution_environment()
    transformation = OperatorTransformation(
        environment.next_transformation_id(),
        spec.default_name,
        (first.transformation, second.transformation),
        spec=captured(spec),
        parallelism=environment.get_parallelism(),
        key_bys=(first.state_key, second.state_key),
        call_site=user_call_site(),
        output_type=type_of(output_type, spec.kind),
    )
    environment.add_operator(transformation)
    return DataStream(environment, transformation)


T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
R = TypeVar("R")


class BroadcastStream(Generic[T]):
    """A stream whose records go to every subtask, and the broadcast states that its records fill.

    Use it with `other.connect(broadcast_stream)`.
    """

    def __init__(
        self,
        input_stream: DataStream[T],
        broadcast_state_descriptors: Sequence[MapStateDescriptor[Any, Any] | None],
    ) -> None:
        names: set[str] = set()
        self.broadcast_state_descriptors: list[MapStateDescriptor[Any, Any]] = []
        for given in broadcast_state_descriptors:
            descriptor = checked(given, MapStateDescriptor, "broadcast", "a state descriptor")
            if descriptor.get_name() in names:
                raise ValueError(
                    f"{at_call('broadcast')}: two state descriptors are named "
                    f"'{descriptor.get_name()}'; each broadcast state needs its own name"
                )
            names.add(descriptor.get_name())
            self.broadcast_state_descriptors.append(descriptor)
        self.input_stream = input_stream


class BroadcastConnectedStream(Generic[T1, T2]):
    """A stream, keyed or not, connected with a broadcast stream."""

    def __init__(
        self,
        non_broadcast_stream: DataStream[T1],
        broadcast_stream: BroadcastStream[T2],
        broadcast_state_descriptors: Sequence[MapStateDescriptor[Any, Any]],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)

    def process(
        self,
        func: BroadcastProcessFunction[T1, T2, R] | KeyedBroadcastProcessFunction[Any, T1, T2, R],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Processes the records of both sides with a function, which writes and reads the broadcast states.

        Raises:
            TypeError: The function is for keyed streams and the stream has no key, or the other way round.
        """
        kinds = (BroadcastProcessFunction, KeyedBroadcastProcessFunction)
        checked_function(func, kinds, "process")
        stream = self.non_broadcast_stream
        is_keyed_function = isinstance(func, KeyedBroadcastProcessFunction)
        if is_keyed_function is not (stream.state_key is not None):
            fitting = kinds[stream.state_key is not None].__name__
            raise TypeError(
                f"{at_call('process')}: {stream.transformation.label} is a stream "
                f"{'with' if stream.state_key is not None else 'without'} key and takes a "
                f"{fitting}, not {type(func).__name__}"
            )
        descriptors = tuple(self.broadcast_state_descriptors)
        make = KeyedBroadcastProcessSpec if is_keyed_function else BroadcastProcessSpec
        return with_two_inputs(
            make(func, descriptors), stream, self.broadcast_stream.input_stream, output_type
        )


K = TypeVar("K")


class ConnectedStreams(Generic[T1, T2]):
    """Two streams for one operator, which has state for both sides.

    Either side may be keyed. If both are keyed, their keys must have the same type.
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
        """Turns each record of either side into one record. A result of None emits nothing."""
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
        """Processes each record with a function, which also gets its timestamp and timers.

        As in PyFlink, the streams decide whether there is a key, and not the function. If both streams are keyed, a
        CoProcessFunction has keyed state and timers too. A KeyedCoProcessFunction is also accepted on streams without
        keys. It then raises a TypeError when it uses the key or timers.

        Raises:
            GraphError: The function is a KeyedCoProcessFunction, but only one side has a key.
        """
        checked_function(func, (CoProcessFunction, KeyedCoProcessFunction), "process")
        is_keyed_function = isinstance(func, KeyedCoProcessFunction)
        unkeyed = [
            (number, stream)
            for number, stream in ((1, self.stream1), (2, self.stream2))
            if stream.state_key is None
        ]
        if not unkeyed:
            processed = self._processed(KeyedCoProcessSpec(func), output_type, "process")
            return processed if is_keyed_function else processed.name(CoProcessSpec.default_name)
        if is_keyed_function and len(unkeyed) == 1:
            ((number, stream),) = unkeyed
            raise GraphError(
                f"{at_call('process')}: {type(func).__name__} is a KeyedCoProcessFunction, but "
                f"input {number}, {stream.transformation.label}, has no key; call key_by() on both inputs, "
                "or write a CoProcessFunction"
            )
        return self._processed(CoProcessSpec(func), output_type, "process")

    def _processed(
        self, spec: OperatorSpec, output_type: DeclaredType, call: str
    ) -> DataStream[Any]:
        key1, key2 = self.stream1.state_key, self.stream2.state_key
        types = [key.key_type for key in (key1, key2) if key is not None]
        if len(types) == 2 and None not in types and types[0] != types[1]:  # noqa: PLR2004 - both
            raise GraphError(
                f"{at_call(call)}: the keys of the two inputs are declared as {types[0]!r} and "
                f"{types[1]!r}; declare the same type for both"
            )
        return with_two_inputs(spec, self.stream1, self.stream2, output_type)


def multiple_input(
    streams: Sequence[DataStream[Any]],
    functions: Sequence[FlatMapFunction[Any, R] | Callable[[Any], Iterable[R]]],
    output_type: DeclaredType = None,
) -> DataStream[R]:
    """Flat-maps each stream with its own function, all in one operator.

    Sources in front of it run in the same vertex (HEAD_WITH_SOURCES). This is the only operator with several inputs
    that is chained to its sources.

    Flink: `MultipleInputTransformation`, or `KeyedMultipleInputTransformation` if all streams are keyed. In Flink, only
    the table planner creates them.
    """
    call = "multiple_input"
    if not streams or len(streams) != len(functions):
        raise ValueError(
            f"{at_call(call)} got {len(streams)} streams and {len(functions)} functions; "
            "it needs at least one stream, and one function per stream"
        )
    first = streams[0]
    for stream, function in zip(streams, functions):  # noqa: B905 - checked above
        checked_stream(stream, DataStream, first, call)
        checked_function(function, FlatMapFunction, call, callables=True)
    environment = first.get_execution_environment()
    keys = [stream.state_key for stream in streams]
    transformation = OperatorTransformation(
        environment.next_transformation_id(),
        MultiInputSpec.default_name,
        [stream.transformation for stream in streams],
        spec=captured(MultiInputSpec(tuple(functions))),  # type: ignore[arg-type]  # FlatMapFunctions too
        parallelism=environment.get_parallelism(),
        key_bys=keys if None not in keys else (),
        call_site=user_call_site(),
        output_type=type_of(output_type, call),
    )
    transformation.chaining_strategy = ChainingStrategy.HEAD_WITH_SOURCES
    environment.add_operator(transformation)
    return DataStream(environment, transformation)
