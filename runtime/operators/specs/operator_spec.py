"""The root of all specs: what the compiler asks of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """The root of all specs."""

    kind: ClassVar[str] = "operator"
    default_name: ClassVar[str] = "Operator"
    is_yielding: ClassVar[bool] = False
    emits_only_at_end: ClassVar[bool] = False
    takes_batches: ClassVar[bool] = False

    def changes_records(self) -> bool:
        """Whether the operator may change the objects that it gets, beyond making new ones."""
        return True

    def reads_timestamps(self) -> bool:
        """Whether the operator looks at the timestamps of its records."""
        return True

    def makes_timestamps(self) -> bool:
        """Whether records get new timestamps here; others pass on those that come in."""
        return False

    def brings_timestamps(self) -> bool:
        """Whether what a source reads has timestamps already."""
        return False
