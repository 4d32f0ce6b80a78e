"""Connectors of PyFlink that are not here: their modules can be imported, and say so when a name is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


def refuse_name(name: str, names: AbstractSet[str], module: str) -> NoReturn:
    """What a module's `__getattr__` does.

    Args:
        name: What is asked for.
        names: What PyFlink's module has.
        module: The module's `__name__`.

    Raises:
        UnsupportedFeatureError: PyFlink has it.
        AttributeError: It does not.
    """
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise UnsupportedFeatureError(
        f"{module}.{name} is not supported: the connector runs in Flink's JVM; read and write files, or "
        "write a Source or a Sink of opchain.datastream.connectors.base"
    )
