"""EnvironmentSettings. Using any other name raises an error. PyFlink: pyflink.table.environment_settings."""

from opchain.compiler.table.settings import EnvironmentSettings
from opchain.reexports import reexports

__all__ = ["EnvironmentSettings"]

__getattr__ = reexports(__name__)
