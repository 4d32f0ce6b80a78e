"""Copies a function at the moment when the program passes it to an operator.

PyFlink pickles a function in that call. So a lambda in a loop keeps the loop variable's value of its iteration, and
each operator gets a separate copy of a shared object. These copies have the same effect. One difference: classes are
not copied, because the program continues to use them.
"""

from __future__ import annotations

import io
import pickle
import weakref
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from opchain.compiler.graph.transformation import user_call_site
from opchain.runtime.errors import GraphError
from opchain.runtime.records.function_pickle import function_pickler

F = TypeVar("F")

_CLASSES: weakref.WeakValueDictionary[int, type] = weakref.WeakValueDictionary()
_SELECTORS: weakref.WeakKeyDictionary[Any, tuple[bytes, Any]] = weakref.WeakKeyDictionary()


class NotCapturable:
    """An object that exists only while the program builds the job: a stream, a table or an environment."""

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled, as in PyFlink.

        Raises:
            GraphError: Always.
        """
        raise GraphError(
            f"a function, or the object of a method, refers to a {type(self).__name__}, which exists only while the "
            "program builds the job. Use connect(), join() or broadcast() for the records of another stream; otherwise "
            "keep plain values"
        )


def captured(functions: F) -> F:
    """Returns a copy with the current values of variables and attributes.

    A function that cannot be pickled is returned as it is. The error comes when the job starts. It names the operator
    and the object that cannot be pickled.

    Raises:
        GraphError: The functions refer to a stream, a table or an environment.
    """
    return _copied(functions)[1]


def captured_selector(selector: F) -> F:
    """Returns a copy, and the same copy again while the selector does not change.

    Plans compare the keys of exchanges by identity.
    """
    data, copy = _copied(selector)
    with suppress(TypeError):  # the selector has no hash, or does not support weak references
        known = _SELECTORS.get(selector)
        if known is not None and known[0] == data:
            return known[1]  # type: ignore[no-any-return]
        _SELECTORS[selector] = data, copy
    return copy


@lru_cache(maxsize=1)
def _pickler() -> Any:
    class Pickler(function_pickler()):  # type: ignore[misc]  # its class is made at run time
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
    except GraphError as error:
        raise GraphError(f"{user_call_site()}: {error}") from None
    except Exception:  # noqa: BLE001 - a value's own __reduce__ may raise anything
        return b"", value


def _class_of(number: int) -> type:
    return _CLASSES[number]
