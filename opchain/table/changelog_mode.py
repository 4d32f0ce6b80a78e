"""ChangelogMode. PyFlink: pyflink.table.changelog_mode."""

from opchain.compiler.table.table import ChangelogMode
from opchain.reexports import reexports

__all__ = ["ChangelogMode"]

__getattr__ = reexports(__name__)
