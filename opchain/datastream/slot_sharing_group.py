"""SlotSharingGroup and MemorySize. PyFlink: pyflink.datastream.slot_sharing_group."""

from __future__ import annotations

from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
from opchain.reexports import reexports
from opchain.runtime.configuration.options import MemorySize

__all__ = [
    "MemorySize",
    "SlotSharingGroup",
]

__getattr__ = reexports(__name__)
