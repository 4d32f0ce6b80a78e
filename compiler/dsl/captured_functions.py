"""Functions as they are when the program passes them to an operator.

PyFlink pickles a function in that call. So a lambda in a loop sees the loop variable of its own turn, and every
operator has its own copy of an object that it shares with others. The copies are made the same way, except that
classes stay the same objects, because the program goes on using them.
"""

from __future__ import annotations

import io
import pickle
import weakref
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

F = TypeVar("F")

_CLASSES: weakref.WeakValueDictionary[int, type] = weakref.WeakValueDictionary()
_SELECTORS: weakref.WeakKeyDictionary[Any, tuple[bytes, Any]] = weakref.WeakKeyDictionary()


def captured(functions: F) -> F:
    """A copy with the present values of variables and attributes.

    What cannot be pickled is not copied: the error comes when the job starts, and names the operator and the culprit.
    """
    return _copied(functions)[1]


def captured_selector(selector: F) -> F:
    """The same copy of a selector that has not changed: plans compare the keys of exchanges by identity."""
    data, copy = _copied(selector)
    with suppress(TypeError):  # it has no hash, or takes no weak references
        known = _SELECTORS.get(selector)
        if known is not None and known[0] == data:
            return known[1]  # type: ignore[no-any-return]
        _SELECTORS[selector] = data, copy
    return copy


@lru_cache(maxsize=1)
def _pickler() -> Any:
    """The class of picklers; not at the top of the module, because cloudpickle is slow to import."""
    import cloudpickle  # noqa: PLC0415 - as above

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, type):
                _CLASSES[id(obj)] = obj
                return _class_of, (id(obj),)
            return super().reducer_override(obj)

    return Pickler


def _copied(value: F) -> tuple[bytes, F]:
    file = io.BytesIO()
    try:
        _pickler()(file, pickle.HIGHEST_PROTOCOL).dump(value)
        return file.getvalue(), pickle.loads(file.getvalue())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a value's own __reduce__ may raise anything
        return b"", value


def _class_of(number: int) -> type:
    return _CLASSES[number]
