"""The DataSet API of PyFlink 1.13 and earlier: using it raises an error that names the replacement."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
