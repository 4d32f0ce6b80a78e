"""The version of opchain. PyFlink: pyflink.version."""

from opchain import __version__
from opchain.reexports import reexports

__all__ = ["__version__"]

__getattr__ = reexports(__name__)
