"""Copies records where two pieces of code could otherwise change the same object.

As in PyFlink, functions of a chain pass records by reference: a map passes its result to the next map. Records
are copied at a fork, for all readers but the last. They are also copied when they are stored: in a list that waits for
an exchange or a sink, in a window, or in the state of a reduce. A function may keep a record that it emitted, and
change it later or emit it again. PyFlink serializes records at these places.

Most records have immutable types, which only need a check of the class. Code generation often proves that no other code
refers to a record, and then makes no copy (compiler/codegen/rules/drop_copies.py).
"""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import uuid
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

PASSES_REFERENCES = frozenset({"map", "filter", "flat_map", "process", "assign_watermarks"})
"""Operators that get records without copies, because they do not keep them."""

EMITS_REFERENCES = frozenset(
    {
        *("map", "flat_map", "process", "keyed_process"),
        *("co_map", "co_flat_map", "co_process", "keyed_co_process", "multi_input"),
        *("broadcast_process", "keyed_broadcast_process", "async_wait"),
        *("map_batches", "map_partition", "full_window"),
    }
)
"""Operators whose function creates records, which are only copied if they are kept."""

EMITS_STATE = frozenset({"reduce", "combined_reduce", "window", "interval_join"})
"""Operators that may emit a record from their state. Downstream functions may change records, so they get a copy."""

IMMUTABLE: frozenset[type] = frozenset(
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
"""Immutable types. They must match exactly: a subclass may have mutable attributes."""


@lru_cache(maxsize=1024)
def is_plain_class(kind: type) -> bool:
    """Whether instances only have the attributes in `__dict__`, and a deep copy copies only these."""
    return (
        all(getattr(kind, name, None) is getattr(object, name, None) for name in _OF_COPIES)
        and kind.__dictoffset__ != 0
        and not any(vars(base).get("__slots__") for base in kind.__mro__)
        and kind not in copyreg.dispatch_table
    )


_OF_COPIES = (
    *("__new__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__deepcopy__"),
    "__getattribute__",
)


def emits_shared(operators: Sequence[Any], index: int) -> bool:
    """Whether a function that emits records may still have references to them.

    `operators` are the programs of a chain.
    """
    while operators[index].spec.kind in ("filter", "assign_watermarks"):
        index = operators[index].parent
        if index < 0:
            return False
    return operators[index].spec.kind in EMITS_REFERENCES


@dataclasses.dataclass
class _Field:
    value: Any


def plain_value(value: Any) -> Any:
    """The value of a field in the dictionary that `dataclasses.asdict` makes.

    >>> plain_value([1, _Field(2)])
    [1, {'value': 2}]
    """
    return value if value.__class__ in IMMUTABLE else dataclasses.asdict(_Field(value))["value"]


@lru_cache(maxsize=1024)
def _slots_of_frozen(kind: type) -> tuple[str, ...] | None:
    """The slots of a frozen dataclass, None for other classes."""
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        return None
    declared = chain.from_iterable(vars(base).get("__slots__", ()) for base in kind.__mro__)
    return tuple(name for name in declared if name not in {"__dict__", "__weakref__"})


def _is_frozen(value: Any, depth: int = 8) -> bool:
    """Whether neither a value nor any part of it can change. A value with more levels than `depth` counts as one that can.

    >>> _is_frozen((1, ("a", None))), _is_frozen((1, []))
    (True, False)
    """
    kind = value.__class__
    if kind in IMMUTABLE:
        return True
    if kind is tuple or (isinstance(value, tuple) and not kind.__dictoffset__):
        parts = value  # a named tuple has no attributes of its own
    else:
        slots = _slots_of_frozen(kind)
        if slots is None:
            return isinstance(kind, enum.EnumMeta)
        parts = [getattr(value, name, None) for name in slots]
        if kind.__dictoffset__:
            parts += value.__dict__.values()
    for part in parts:
        if part.__class__ not in IMMUTABLE and not (depth and _is_frozen(part, depth - 1)):
            return False
    return True


def _copied(value: Any, memo: dict[int, Any]) -> Any:  # noqa: C901 - one branch a class
    """As `copy.deepcopy`, but several times as fast for the classes that most records have."""
    kind = value.__class__
    known = memo.get(id(value))
    if known is not None:
        return known
    places: Any
    if kind is list:
        copied = places = value.copy()
    elif kind is Row:
        copied = places = copy.copy(value)
    elif kind is dict and IMMUTABLE.issuperset(map(type, value)):
        copied = places = value.copy()
    elif kind is set and IMMUTABLE.issuperset(map(type, value)):
        copied, places = value.copy(), ()
    elif _is_frozen(value):
        return value
    elif kind is tuple:
        return memo.setdefault(id(value), tuple([_copied(item, memo) for item in value]))
    elif is_plain_class(kind):
        copied = object.__new__(kind)
        places = copied.__dict__
        places.update(value.__dict__)
    else:
        return copy.deepcopy(value, memo)
    memo[id(value)] = copied
    is_named = places.__class__ is dict
    if not IMMUTABLE.issuperset(map(type, places.values() if is_named else places)):
        for place, item in places.items() if is_named else enumerate(places):
            if item.__class__ not in IMMUTABLE:
                places[place] = _copied(item, memo)
    return copied


def own_copy(value: Any) -> Any:
    """A deep copy of a value, or the value itself if it is immutable or can't be copied.

    >>> row = (1, "a")
    >>> own_copy(row) is row
    True
    >>> shared = [1]
    >>> own_copy(shared) is shared, own_copy((1, shared))[1] is shared
    (False, False)
    """
    if value.__class__ in IMMUTABLE or (isinstance(value, tuple) and _is_frozen(value)):
        return value  # most records
    try:
        return _copied(value, {})
    except TypeError:
        # A lock, a file or a connection can't be copied, and stays in its task.
        return value
