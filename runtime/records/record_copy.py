"""Keeping records private: what Flink's copying outputs do when object reuse is off.

A function may keep a reference to what it returned (in a field, in state) and change it later, or yield
one list again and again; and two consumers of one stream may each change what they get. So a record
of a mutable type is copied when it leaves a function that cannot be seen through. Records of
immutable types, nearly all, cost one look at their class.
"""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import fractions
import uuid
from typing import Any

from opchain.runtime.types.row import Row

FROZEN: frozenset[type] = frozenset(
    {
        int,
        str,
        float,
        bool,
        bytes,
        complex,
        type(None),
        range,
        decimal.Decimal,
        fractions.Fraction,
        uuid.UUID,
        dt.date,
        dt.time,
        dt.datetime,
        dt.timedelta,
        dt.timezone,
    }
)
"""Types whose instances can never change; exact types, a subclass may have mutable attributes."""


def private(value: Any) -> Any:
    """The value itself where nobody can change it or nothing can copy it, else a deep copy.

    >>> row = (1, "a")
    >>> private(row) is row
    True
    >>> shared = [1]
    >>> private(shared) is shared, private((1, shared))[1] is shared
    (False, False)
    """
    kind = value.__class__
    if kind in FROZEN:
        return value
    if kind is tuple:
        for item in value:
            if item.__class__ not in FROZEN and (
                item.__class__ is not tuple or private(item) is not item
            ):
                break
        else:
            return value
    if kind is Row and all(item.__class__ in FROZEN for item in value):
        return copy.copy(value)  # as deep, and six times as fast
    try:
        return copy.deepcopy(value)
    except TypeError:
        # A lock, a file, a connection: there is only the one, and it stays in its task.
        return value
