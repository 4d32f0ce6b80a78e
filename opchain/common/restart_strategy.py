"""Restart strategies. PyFlink: pyflink.common.restart_strategy."""

from __future__ import annotations

from opchain.compiler.settings.restart_strategy import (
    RestartStrategies,
    RestartStrategyConfiguration,
)
from opchain.reexports import reexports

__all__ = [
    "RestartStrategies",
    "RestartStrategyConfiguration",
]

__getattr__ = reexports(__name__)
