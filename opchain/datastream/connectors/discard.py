"""Sinks that drop what they get; PyFlink has none. Java: DiscardingSink, old and new."""

from __future__ import annotations

from opchain.runtime.connectors.simple_sinks import DiscardingSink, DiscardingSinkFunction

__all__ = [
    "DiscardingSink",
    "DiscardingSinkFunction",
]
