"""Wrappers of Java objects. PyFlink: pyflink.common.utils."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.java_objects import JavaObjectWrapper

__all__ = [
    "JavaObjectWrapper",
]

__getattr__ = reexports(__name__)
