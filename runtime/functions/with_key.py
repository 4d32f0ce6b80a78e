"""A record together with its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.map_functions import MapFunction
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable


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
