"""How unevenly subtasks share the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def skew(counts: Sequence[int]) -> float:
    """The greatest count over the mean: 1.0 is even, and n of n subtasks is one that has all.

    >>> skew([5, 5, 5, 5]), skew([0, 20, 0, 0]), skew([0, 0])
    (1.0, 4.0, 1.0)
    """
    total = sum(counts)
    return max(counts) * len(counts) / total if total > 0 else 1.0
