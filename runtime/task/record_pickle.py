"""Pickling of records: fast where pickle can, by value where only cloudpickle can, clear where none can.

A class of the user's main program has no module on an executor: Spark ships it by value, and pickle, which
writes its name, refuses its instances there. They go through cloudpickle, where it is installed. Sender,
receiver and whoever ships the program must use the same cloudpickle: it is its register of classes
that makes the class that arrives the very class that the program there knows.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnpicklableRecordError, short_repr

if TYPE_CHECKING:
    from collections.abc import Sequence

PROTOCOL = 5


def dump_records(data: Any) -> bytes:
    """The pickle of data that holds records.

    Raises:
        Exception: What pickle raises, or cloudpickle where it is installed; the records' own methods may
            raise anything.
    """
    try:
        return pickle.dumps(data, PROTOCOL)
    except MemoryError:
        raise
    except Exception:
        try:
            import cloudpickle  # noqa: PLC0415 - executors may lack it
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise
        pickled: bytes = cloudpickle.dumps(data, PROTOCOL)
        return pickled


def unpicklable_record(records: Sequence[Any]) -> UnpicklableRecordError | None:
    """The error for the first record that cannot be pickled, None if each of them can."""
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
    reason = f"{type(failure).__name__}: {failure}"
    return UnpicklableRecordError(short_repr(records[first], 200), reason)


def _failure(data: Any) -> Exception | None:
    try:
        dump_records(data)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a record's own methods may raise anything
        return error
    return None
