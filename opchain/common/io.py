"""InputFormat, which is a Java object in Flink. PyFlink: pyflink.common.io."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.java_objects import InputFormat

__all__ = [
    "InputFormat",
]

__getattr__ = reexports(__name__)
