"""Names of the Table API, which opchain refuses where they are used. PyFlink: pyflink.table.plan_reference."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
