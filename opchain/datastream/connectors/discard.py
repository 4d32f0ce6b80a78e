"""Sinks that discard all records. Java: both classes DiscardingSink. Not in PyFlink."""

from __future__ import annotations

from opchain.runtime.connectors.simple_sinks import DiscardingSink, DiscardingSinkFunction

__all__ = [
    "DiscardingSink",
    "DiscardingSinkFunction",
]
