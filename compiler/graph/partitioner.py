"""How records choose the subtask that receives them: Flink's stream partitioners as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class PartitionerKind(Enum):
    """The partitioners of Flink's `streaming.runtime.partitioner`, the two internal ones included."""

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
        """Whether each producer subtask reaches only some consumer subtasks (`isPointwise`)."""
        return self.is_forward or self is PartitionerKind.RESCALE

    @property
    def ship_strategy(self) -> str:
        """The name on a job edge (`toString` of Flink's partitioner): the three forwards are one."""
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
    """The key selector of one `key_by` call, compared by identity as Flink compares selectors.

    Readers of one `key_by` share a data set; two `key_by` calls on one stream do so only when both
    were given the same selector object. `name` is what plans call the key: by default the selector's
    own name, or "key" for a lambda.
    """

    selector: Any
    key_type: Any = None
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", _own_name(self.selector))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyBy):
            return NotImplemented
        return self.selector is other.selector and bool(self.key_type == other.key_type)

    def __hash__(self) -> int:
        # Only ever used to find an equal one, never to order or to place anything.
        return id(self.selector)


def _own_name(selector: Any) -> str:
    name = getattr(selector, "__name__", type(selector).__name__)
    return "key" if name == "<lambda>" else str(name)


@dataclass(frozen=True, slots=True)
class Partitioner:
    """A partitioner of an edge.

    `key_by` is set for HASH and FORWARD_FOR_CONSECUTIVE_HASH (the HASH that it stands for), and for
    CUSTOM (whose `custom` callable gets the key and the number of channels).
    """

    kind: PartitionerKind
    key_by: KeyBy | None = None
    custom: Any = None

    @property
    def is_forward(self) -> bool:
        """Whether records stay in their subtask."""
        return self.kind.is_forward


class ExchangeMode(Enum):
    """`StreamExchangeMode`: what the plan asks of an exchange beyond the shuffle mode."""

    PIPELINED = "PIPELINED"
    BATCH = "BATCH"
    HYBRID_FULL = "HYBRID_FULL"
    HYBRID_SELECTIVE = "HYBRID_SELECTIVE"
    UNDEFINED = "UNDEFINED"
