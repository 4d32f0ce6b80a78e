"""ResultKind. PyFlink: pyflink.table.result_kind."""

from opchain.compiler.table.table_result import ResultKind
from opchain.reexports import reexports

__all__ = ["ResultKind"]

__getattr__ = reexports(__name__)
