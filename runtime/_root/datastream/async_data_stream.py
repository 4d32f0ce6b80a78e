"""Async operations on a stream. PyFlink: pyflink.datastream.async_data_stream.

Loaded when first asked for: the DSL is part of the compiler, which executors do without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.dsl.async_data_stream import AsyncDataStream

__all__ = [
    "AsyncDataStream",
]

_MODULE_OF = {
    "AsyncDataStream": "opchain.compiler.dsl.async_data_stream",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
