"""How a stream's records reach the subtasks of the next operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function
from opchain.compiler.dsl.stream import Stream
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner, PartitionerKind
from opchain.compiler.graph.transformation import PartitionTransformation
from opchain.runtime.functions import key_selectors
from opchain.runtime.functions.key_selectors import KeySelector
from opchain.runtime.types.type_variables import K, T

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.dsl.connected_streams import BroadcastStream
    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.runtime.functions.state_descriptors import MapStateDescriptor

_BY_KEY = {PartitionerKind.HASH, PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH}


class Partitioning(Stream[T]):
    """The partitioners. Without one, equal parallelism means forward, else rebalance."""

    def shuffle(self) -> DataStream[T]:
        """Sends each record to a random subtask; the choice is the same in every run."""
        return self.partition(PartitionerKind.SHUFFLE)

    def rebalance(self) -> DataStream[T]:
        """Deals the records out to all subtasks in turn."""
        return self.partition(PartitionerKind.REBALANCE)

    def rescale(self) -> DataStream[T]:
        """Deals the records out in turn to a share of the subtasks: each has its own producers."""
        return self.partition(PartitionerKind.RESCALE)

    def forward(self) -> DataStream[T]:
        """Keeps each record in its subtask; the next operator must have the same parallelism."""
        return self.partition(PartitionerKind.FORWARD)

    def global_(self) -> DataStream[T]:
        """Sends all records to the first subtask.

        Flink: `DataStream.global`, a word that Python keeps for itself; PyFlink has no such method.
        """
        return self.partition(PartitionerKind.GLOBAL)

    @overload
    def broadcast(self) -> DataStream[T]: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any],
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream[T]: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any] | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> DataStream[T] | BroadcastStream[T]:
        """Sends every record to every subtask.

        With descriptors the result is a BroadcastStream: connect a stream to it, and process both
        with these broadcast states.
        """
        descriptors = (broadcast_state_descriptor, *other_broadcast_state_descriptors)
        if descriptors == (None,):
            return self.partition(PartitionerKind.BROADCAST)
        from opchain.compiler.dsl.connected_streams import BroadcastStream  # noqa: PLC0415 - a cycle

        return BroadcastStream(self.partition(PartitionerKind.BROADCAST), descriptors)

    def partition_custom(
        self,
        partitioner: key_selectors.Partitioner[K] | Callable[[K, int], int],
        key_selector: KeySelector[T, K] | Callable[[T], K],
    ) -> DataStream[T]:
        """Sends each record to the subtask that `partitioner(key, number_of_subtasks)` chooses."""
        call = "partition_custom"
        checked_function(partitioner, key_selectors.Partitioner, call, callables=True)
        checked_function(key_selector, KeySelector, call, callables=True)
        return self.partition(
            PartitionerKind.CUSTOM, key_by=KeyBy(key_selector), custom=partitioner
        )

    def partition(
        self,
        kind: PartitionerKind,
        *,
        exchange_mode: ExchangeMode = ExchangeMode.UNDEFINED,
        key_by: KeyBy | None = None,
        custom: Any = None,
    ) -> DataStream[T]:
        """Sets any partitioner, with an exchange mode.

        Flink keeps this internal: a PartitionTransformation made directly, as its table planner does
        for FORWARD_FOR_UNSPECIFIED and FORWARD_FOR_CONSECUTIVE_HASH. Unlike the methods above it
        also works on a keyed stream.

        Args:
            kind: The partitioner.
            exchange_mode: PIPELINED or BATCH force that kind of exchange.
            key_by: The key, for HASH and FORWARD_FOR_CONSECUTIVE_HASH; a keyed stream's by default.
            custom: The function behind CUSTOM.
        """
        checked(kind, PartitionerKind, "partition", "the kind")
        checked(exchange_mode, ExchangeMode, "partition", "the exchange mode")
        if key_by is None and kind in _BY_KEY:
            key_by = self.state_key
            if key_by is None:
                raise ValueError(
                    f"{at_call('partition')}: a {kind.value} partitioner needs a key; "
                    "pass key_by=KeyBy(selector), or call it on a keyed stream"
                )
        transformation = PartitionTransformation(
            self._environment.next_transformation_id(),
            self.transformation,
            Partitioner(kind, key_by, custom),
            exchange_mode,
            call_site=user_call_site(),
        )
        return self._stream_of(transformation)
