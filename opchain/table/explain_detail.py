"""ExplainDetail. PyFlink: pyflink.table.explain_detail."""

from opchain.compiler.table.explain import ExplainDetail
from opchain.reexports import reexports

__all__ = ["ExplainDetail"]

__getattr__ = reexports(__name__)
