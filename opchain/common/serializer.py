"""TypeSerializer, the base class of users' serializers. PyFlink: pyflink.common.serializer."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.types.type_information import TypeSerializer, VoidNamespaceSerializer, void

__all__ = [
    "TypeSerializer",
    "VoidNamespaceSerializer",
    "void",
]

__getattr__ = reexports(__name__)
