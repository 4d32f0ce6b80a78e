"""Table. Using any other name raises an error. PyFlink: pyflink.table.table."""

from opchain.compiler.table.group_windows import GroupWindowedTable, WindowGroupedTable
from opchain.compiler.table.relations import GroupedTable
from opchain.compiler.table.table import Table
from opchain.reexports import reexports

__all__ = ["GroupWindowedTable", "GroupedTable", "Table", "WindowGroupedTable"]

__getattr__ = reexports(__name__)
