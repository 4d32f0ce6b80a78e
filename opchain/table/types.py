"""DataTypes. Using any other name raises an error. PyFlink: pyflink.table.types."""

from opchain.compiler.table.data_types import DataTypes
from opchain.reexports import reexports

__all__ = ["DataTypes"]

__getattr__ = reexports(__name__)
