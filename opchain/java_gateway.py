"""PyFlink's access to Flink's JVM. opchain has no such JVM, so every call raises an error.

PyFlink: pyflink.java_gateway.
"""

from __future__ import annotations

from logging import WARN
from typing import Any, NoReturn

from opchain.reexports import reexports
from opchain.runtime.java_objects import no_java

__all__ = ["WARN", "get_gateway", "is_launch_gateway_disabled", "launch_gateway"]


def get_gateway() -> NoReturn:
    """Not supported.

    Raises:
        UnsupportedFeatureError: Always.
    """
    raise no_java("get_gateway()", "what a program calls in Java must be written in Python")


def launch_gateway(*arguments: Any) -> NoReturn:  # noqa: ARG001 - refused whatever they are
    """Not supported.

    Raises:
        UnsupportedFeatureError: Always.
    """
    raise no_java("launch_gateway()")


def is_launch_gateway_disabled() -> NoReturn:
    """Not supported.

    Raises:
        UnsupportedFeatureError: Always.
    """
    raise no_java("is_launch_gateway_disabled()")


__getattr__ = reexports(__name__)
