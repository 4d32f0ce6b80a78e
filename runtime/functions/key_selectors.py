"""Functions that extract a key or choose a partition, and records with their key."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.functions.record_functions import MapFunction
from opchain.runtime.types.row import Row
from opchain.runtime.types.type_variables import IN_contra, KEY_co, KEY_contra

if TYPE_CHECKING:
    from collections.abc import Callable


class KeySelector(Function, Generic[IN_contra, KEY_co]):
    """Extracts a record's key.

    The key must be the same whenever and wherever it is extracted from an equal record, and of a type
    with a stable hash: int, str, bytes, bool, float, tuples and dataclasses of these, ...
    """

    @abstractmethod
    def get_key(self, value: IN_contra) -> KEY_co:
        """The key; never None."""


class NullByteKeySelector(KeySelector["Any", int]):
    """Gives every record the key 0: the one key behind `window_all`."""

    def get_key(self, value: Any) -> int:  # noqa: ARG002 - that is the point
        """0, whatever the record."""
        return 0


class Partitioner(Function, Generic[KEY_contra]):
    """Chooses the receiving subtask of a record, for `partition_custom`."""

    @abstractmethod
    def partition(self, key: KEY_contra, num_partitions: int) -> int:
        """The subtask's number, from 0 to num_partitions - 1."""


class WithKey(MapFunction[Any, Row]):
    """Gives rows of the key and the record, `f0` and `f1`: what a keyed stream of PyFlink consists of.

    >>> WithKey(len).map("four")
    Row(f0=4, f1='four')
    """

    def __init__(self, key_selector: Callable[[Any], Any]) -> None:
        self.key_selector = key_selector

    def map(self, value: Any) -> Row:
        """The row of one record."""
        return Row(f0=self.key_selector(value), f1=value)
