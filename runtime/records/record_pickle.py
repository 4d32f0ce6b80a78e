"""Pickles records: with pickle if possible, with cloudpickle where classes go by value, otherwise with a clear error.

A class of the user's main program has no importable module on an executor. Spark ships the class by value, and pickle
refuses its instances there, because it writes the name of the class. cloudpickle pickles them, if it is installed.
Sender, receiver and the code that ships the program must use the same cloudpickle: its registry of classes makes sure
that the receiver gets the same class that the program has there.
"""

from __future__ import annotations

import io
import pickle
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnpicklableRecordError, short_repr
from opchain.runtime.records.function_pickle import PROTOCOL, dump_functions, function_pickler
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def dump_records(data: Any) -> bytes:
    """The pickle of data that contains records.

    Raises:
        Exception: An exception of pickle or, if it is installed, cloudpickle. The records' own methods may raise any
            exception.
    """
    try:
        return pickle.dumps(data, PROTOCOL)
    except MemoryError:
        raise
    except Exception as refused:  # noqa: BLE001 - a record's own __reduce__ may raise anything
        try:
            function_pickler()
        except ImportError:  # executors may lack cloudpickle
            raise refused from None
        return dump_functions(data)


class _Flat(pickle.Pickler):
    """Pickles numbers, strings and tuples of them without a memo, in half the time.

    An object that occurs twice is written twice. For immutable values of builtin types, this only costs time. Instances
    of other classes are refused.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, PROTOCOL)
        self.fast = True

    def reducer_override(self, obj: Any) -> Any:
        """Called for every value that is not of a builtin type."""
        raise _NotFlatError(type(obj).__name__)


class _NotFlatError(Exception):
    """The data contains other values than builtin ones."""


def dump_flat(data: Any) -> bytes | None:
    """The pickle of flat data. None if the data is not flat: use `dump_records` then.

    Lists and dicts are accepted. They arrive with equal contents. If a record refers to the same list twice, it arrives
    as two lists.
    """
    file = io.BytesIO()
    try:
        _Flat(file).dump(data)
    except (_NotFlatError, ValueError, RecursionError, pickle.PicklingError):
        return None  # ValueError: a cycle
    return file.getvalue()


def looks_flat(records: Sequence[Any]) -> bool:
    """Whether the first, the middle and the last record are builtin values, or tuples of builtin values."""
    if not records:
        return True
    places = (0, len(records) // 2, -1)
    return all(map(_is_flat, map(records.__getitem__, places)))


def _is_flat(record: Any) -> bool:
    kind = record.__class__
    if kind is tuple:
        return all(item.__class__ in _SCALARS for item in record)
    return kind in _SCALARS


_SCALARS = frozenset({int, str, float, bool, bytes, type(None)})


def unpicklable_record(records: Sequence[Any]) -> UnpicklableRecordError | None:
    """The error for the first record that cannot be pickled. None if all can."""
    if _failure(records) is None:
        return None
    first, last = 0, len(records)
    while last - first > 1:
        middle = (first + last) // 2
        if _failure(records[first:middle]) is None:
            first = middle
        else:
            last = middle
    failure = _failure(records[first])
    if failure is None:
        return None
    place, value = _unpicklable_part(records[first])
    reason = f"{type(failure).__name__}: {failure}"
    if isinstance(value, GeneratorType):
        instead = "" if place else ", or use flat_map to emit each value"
        reason = f"a generator: return a list instead{instead}"
    if place:
        reason = f"{place}: {reason}"
    return UnpicklableRecordError(short_repr(records[first], 200), reason)


def _unpicklable_part(record: Any) -> tuple[str, Any]:
    """The innermost part of a record that cannot be pickled, and its place: `field 2, 'name'`."""
    places: list[str] = []
    value = record
    for _ in range(_DEEPEST):
        found = next((part for part in _parts(value) if _failure(part[1]) is not None), None)
        if found is None:
            break
        places.append(found[0])
        value = found[1]
    return ", ".join(places), value


_DEEPEST = 5
"""The maximum depth of the search: a record may contain itself."""


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"value of {short_repr(key)}", part) for key, part in value.items()]
    if isinstance(value, (tuple, list, Row)):
        names = getattr(value, "_fields", None) or range(len(value))
        return [(f"field {name!r}", part) for name, part in zip(names, value, strict=False)]
    return [(f"attribute {name!r}", part) for name, part in getattr(value, "__dict__", {}).items()]


def _failure(data: Any) -> Exception | None:
    try:
        dump_records(data)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a record's own methods may raise anything
        return error
    return None
