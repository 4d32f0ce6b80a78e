"""Windows over a whole partition: all records of a subtask or of a key, at the end of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import checked_function
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.runtime.functions.record_functions import MapPartitionFunction
from opchain.runtime.program.operator_specs import FullWindowSpec, MapPartitionSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.data_stream import DataStream

# As Flink's plans show it, whatever the function.
_KEYED_DESCRIPTION = (
    "Window(GlobalWindows(trigger=EndOfStreamTrigger), EndOfStreamTrigger, "
    "KeyedMapPartitionWindowFunction)"
)

T = TypeVar("T")
R = TypeVar("R")


class PartitionWindowedStream(Generic[T]):
    """All records of each subtask, or of each key on a keyed stream, as one window.

    Flink: `NonKeyedPartitionWindowedStream` and `KeyedPartitionWindowedStream`.
    """

    def __init__(self, stream: DataStream[T]) -> None:
        self._stream = stream

    def map_partition(
        self,
        map_partition_function: MapPartitionFunction[T, R] | Callable[[Iterable[T]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Evaluates the records of each partition once the input has ended."""
        checked_function(
            map_partition_function, MapPartitionFunction, "map_partition", callables=True
        )
        if self._stream.state_key is not None:
            keyed = self._stream.transform(FullWindowSpec(map_partition_function), output_type)
            return keyed.set_description(_KEYED_DESCRIPTION)
        # Flink: the operator has the parallelism of its input, as if the user had set it, and never
        # chains.
        stream = self._stream.transform(
            MapPartitionSpec(map_partition_function),
            output_type,
            parallelism=self._stream.get_parallelism(),
            parallelism_configured=True,
        )
        return stream.set_chaining_strategy(ChainingStrategy.NEVER)
