"""TableConfig; opchain refuses the other names where they are used. PyFlink: pyflink.table.table_config."""

from opchain.compiler.table.settings import TableConfig
from opchain.reexports import reexports

__all__ = ["TableConfig"]

__getattr__ = reexports(__name__)
