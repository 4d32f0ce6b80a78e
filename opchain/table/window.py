"""Windows of the Table API. Using any other name raises an error. PyFlink: pyflink.table.window."""

from opchain.compiler.table.group_windows import GroupWindow, Session, Slide, Tumble
from opchain.reexports import reexports

__all__ = ["GroupWindow", "Session", "Slide", "Tumble"]

__getattr__ = reexports(__name__)
