"""TablePipeline. PyFlink: pyflink.table.table_pipeline."""

from opchain.compiler.table.table import TablePipeline
from opchain.reexports import reexports

__all__ = ["TablePipeline"]

__getattr__ = reexports(__name__)
