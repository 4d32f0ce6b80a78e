"""Simple functions written into the loop, where that is provably the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over parameters, in place of a call."""

    parameters: tuple[str, ...]
    text: str
    is_fresh: bool

    def applied_to(self, *arguments: str) -> str:
        """The expression with variables for its parameters."""
        raise NotImplementedError


def expression_of(_function: Any) -> Expression | None:
    """The expression that a function's call can be replaced with, or None."""
    return None
