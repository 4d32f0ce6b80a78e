"""TableConfig. Using any other name raises an error. PyFlink: pyflink.table.table_config."""

from opchain.compiler.table.settings import TableConfig
from opchain.reexports import reexports

__all__ = ["TableConfig"]

__getattr__ = reexports(__name__)
