"""The context of a program. PyFlink: pyflink.datastream.stream_execution_environment.

Loaded when first asked for: the DSL is part of the compiler, which executors do without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.dsl.environment import StreamExecutionEnvironment

__all__ = [
    "StreamExecutionEnvironment",
]

_MODULE_OF = {
    "StreamExecutionEnvironment": "opchain.compiler.dsl.environment",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
