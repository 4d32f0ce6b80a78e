"""Pickles functions and classes by value, with cloudpickle.

cloudpickle 3.1.3 replaces the file name of a function by `<dynamic-code>`. Then tracebacks do not show the lines of the
function, and the compiler does not find its source. So the file name is pickled separately.

cloudpickle cannot pickle a `functools.cached_property`, which has a lock in Python 3.11 and older, or a function of
`functools.singledispatch`, whose cache has weak references. It pickles a function of `functools.lru_cache` by name, so
other processes do not find one of `__main__`. So all three are reduced here.
"""

from __future__ import annotations

import io
import sys
from functools import cached_property, lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOL = 5

_CACHED = type(lru_cache(len))


@lru_cache(maxsize=1)
def function_pickler() -> Any:
    """The class of picklers. cloudpickle is imported at the first call, because its import is slow.

    Raises:
        ImportError: cloudpickle is not installed.
    """
    import cloudpickle  # noqa: PLC0415 - as above

    class FunctionPickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, CodeType):
                make, arguments = self.dispatch_table[CodeType](obj)
                return _code, (make, arguments, obj.co_filename)
            if isinstance(obj, cached_property):
                return type(obj), (obj.func,), {"attrname": obj.attrname}
            if type(obj) is WeakKeyDictionary:
                return WeakKeyDictionary, (), None, None, iter(list(obj.items()))
            if type(obj) is _CACHED and not _is_found(obj, cloudpickle):
                parameters = obj.cache_parameters()
                return _cached, (obj.__wrapped__, parameters["maxsize"], parameters["typed"])
            return super().reducer_override(obj)

    return FunctionPickler


def _is_found(function: Any, cloudpickle: Any) -> bool:
    """Whether other processes find a function by its name: in a module that is not sent by value."""
    place: Any = sys.modules.get(function.__module__)
    if place is None or function.__module__ in (
        "__main__",
        *cloudpickle.list_registry_pickle_by_value(),
    ):
        return False
    for name in function.__qualname__.split("."):
        place = getattr(place, name, None)
    return place is function


def _cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    return lru_cache(maxsize, typed)(function)


def dump_functions(value: Any) -> bytes:
    """The pickle of a value. Functions and classes of `__main__`, and lambdas, are pickled by value."""
    file = io.BytesIO()
    function_pickler()(file, PROTOCOL).dump(value)
    return file.getvalue()


def _code(make: Callable[..., CodeType], arguments: tuple[Any, ...], file_name: str) -> CodeType:
    return make(*arguments).replace(co_filename=file_name)
