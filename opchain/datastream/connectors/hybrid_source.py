"""Hybrid sources: not supported. PyFlink: pyflink.datastream.connectors.hybrid_source."""

from __future__ import annotations

from typing import NoReturn

from opchain.runtime.connectors.refused_connector import refuse_name

_NAMES = frozenset(
    {
        "HybridSource",
        "HybridSourceBuilder",
    }
)


def __getattr__(name: str) -> NoReturn:
    refuse_name(name, _NAMES, __name__)
