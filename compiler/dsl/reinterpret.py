"""Taking a stream for keyed that is partitioned by key already."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opchain.compiler.dsl.argument_checks import checked, checked_function, type_of
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.dsl.keyed_stream import KeyedStream
from opchain.compiler.graph.partitioner import KeyBy, PartitionerKind
from opchain.runtime.functions.key_selectors import KeySelector

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.dsl.argument_checks import DeclaredType

K = TypeVar("K")
T = TypeVar("T")


class DataStreamUtils:
    """Flink: `DataStreamUtils`; PyFlink has none."""

    @staticmethod
    def reinterpret_as_keyed_stream(
        stream: DataStream[T],
        key_selector: KeySelector[T, K] | Callable[[T], K],
        key_type: DeclaredType = None,
    ) -> KeyedStream[K, T]:
        """The stream as a keyed one, without moving a record.

        Each record must already be in the subtask that `key_by` with this selector would send it to,
        as behind an operator on such a keyed stream. A record elsewhere fails the job.
        """
        call = "reinterpret_as_keyed_stream"
        checked(stream, DataStream, call, "the stream")
        checked_function(key_selector, KeySelector, call, callables=True)
        key_by = KeyBy(key_selector, type_of(key_type, call))
        return KeyedStream.partitioned(stream, PartitionerKind.FORWARD, key_by)
