"""Expression and the units of times. Using any other name raises an error. PyFlink: pyflink.table.expression."""

from opchain.compiler.table.expression import Expression, TimeIntervalUnit, TimePointUnit
from opchain.reexports import reexports

__all__ = ["Expression", "TimeIntervalUnit", "TimePointUnit"]

__getattr__ = reexports(__name__)
