"""Partitioners, which choose the receiving subtask of each record: Flink's stream partitioners as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from opchain.runtime.types.types import Types


class PartitionerKind(Enum):
    """The partitioners of Flink's `streaming.runtime.partitioner`, including the two internal ones."""

    FORWARD = "FORWARD"
    FORWARD_FOR_UNSPECIFIED = "FORWARD_FOR_UNSPECIFIED"
    FORWARD_FOR_CONSECUTIVE_HASH = "FORWARD_FOR_CONSECUTIVE_HASH"
    REBALANCE = "REBALANCE"
    RESCALE = "RESCALE"
    SHUFFLE = "SHUFFLE"
    BROADCAST = "BROADCAST"
    GLOBAL = "GLOBAL"
    CUSTOM = "CUSTOM"
    HASH = "HASH"

    @property
    def is_forward(self) -> bool:
        """Whether it is one of Flink's `ForwardPartitioner` classes."""
        return self in _FORWARD_KINDS

    @property
    def is_pointwise(self) -> bool:
        """Whether each producer subtask sends to only some consumer subtasks (Flink: `isPointwise`)."""
        return self.is_forward or self is PartitionerKind.RESCALE

    @property
    def ship_strategy(self) -> str:
        """The name on a job edge (Flink: `toString`). The three forward partitioners share a name."""
        return "FORWARD" if self.is_forward else self.value


_FORWARD_KINDS = frozenset(
    {
        PartitionerKind.FORWARD,
        PartitionerKind.FORWARD_FOR_UNSPECIFIED,
        PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class KeyBy:
    """The key selector of a `key_by` call. Compared by identity, as in Flink.

    Readers of one `key_by` share a data set. Two `key_by` calls on a stream only do so if both get the same selector
    object. `name` is the name of the key in plans. Default: the name of the selector, or "key" for a lambda.
    """

    selector: Any
    key_type: Any = None
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", _own_name(self.selector))

    @property
    def type_text(self) -> str:
        """The type of the key as text. A key without a declared type is pickled."""
        return repr(Types.PICKLED_BYTE_ARRAY() if self.key_type is None else self.key_type)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyBy):
            return NotImplemented
        return self.selector is other.selector and bool(self.key_type == other.key_type)

    def __hash__(self) -> int:
        # The hash is only used for lookups, never for an order or a placement.
        return id(self.selector)


def _own_name(selector: Any) -> str:
    name = getattr(selector, "__name__", type(selector).__name__)
    return "key" if name == "<lambda>" else str(name)


@dataclass(frozen=True, slots=True)
class Partitioner:
    """The partitioner of an edge.

    `key_by` is set for HASH, for FORWARD_FOR_CONSECUTIVE_HASH (which replaces a HASH), and for CUSTOM, whose `custom`
    callable gets the key and the number of channels.
    """

    kind: PartitionerKind
    key_by: KeyBy | None = None
    custom: Any = None

    @property
    def is_forward(self) -> bool:
        """Whether records stay in their subtask."""
        return self.kind.is_forward


class ExchangeMode(Enum):
    """Whether an exchange is pipelined or blocking. Flink: `StreamExchangeMode`."""

    PIPELINED = "PIPELINED"
    BATCH = "BATCH"
    HYBRID_FULL = "HYBRID_FULL"
    HYBRID_SELECTIVE = "HYBRID_SELECTIVE"
    UNDEFINED = "UNDEFINED"
