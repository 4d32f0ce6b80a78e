"""Broadcast state: a stream that every subtask sees beside its share of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function
from opchain.compiler.dsl.two_inputs import with_two_inputs
from opchain.runtime.functions.broadcast_process_functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from opchain.runtime.operators.specs import BroadcastProcessSpec, KeyedBroadcastProcessSpec
from opchain.runtime.state.descriptors import MapStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.declared_types import DeclaredType

T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
R = TypeVar("R")


class BroadcastStream(Generic[T]):
    """A stream whose records go to every subtask, with the states that they will fill.

    The one thing to do with it is `other.connect(broadcast_stream)`.
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
    """A stream, keyed or not, beside a broadcast one."""

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
        """Gives the records of both sides to a function, which fills and reads the broadcast states.

        Raises:
            TypeError: The function is a keyed one and the stream is not, or the other way round.
        """
        kinds = (BroadcastProcessFunction, KeyedBroadcastProcessFunction)
        checked_function(func, kinds, "process")
        stream = self.non_broadcast_stream
        is_keyed_function = isinstance(func, KeyedBroadcastProcessFunction)
        if is_keyed_function is not (stream.state_key is not None):
            fitting = kinds[stream.state_key is not None].__name__
            raise TypeError(
                f"{at_call('process')}: '{stream.transformation.name}' "
                f"({stream.transformation.call_site}) is a stream "
                f"{'with' if stream.state_key is not None else 'without'} key and takes a "
                f"{fitting}, not {type(func).__name__}"
            )
        descriptors = tuple(self.broadcast_state_descriptors)
        make = KeyedBroadcastProcessSpec if is_keyed_function else BroadcastProcessSpec
        return with_two_inputs(
            make(func, descriptors), stream, self.broadcast_stream.input_stream, output_type
        )
