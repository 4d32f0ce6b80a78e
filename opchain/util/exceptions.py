"""The exceptions of PyFlink's calls into Java. PyFlink: pyflink.util.exceptions.

Programs name them in `except` clauses. Nothing here raises them, since nothing here calls Java.
"""

from __future__ import annotations

from opchain.reexports import reexports


class JavaException(Exception):  # noqa: N818 - PyFlink's name
    """An exception of Java code."""

    def __init__(self, stack_trace: str) -> None:
        super().__init__(stack_trace)
        self.stack_trace = stack_trace


class TableException(JavaException):
    """A failure of the Table API."""


class CatalogException(JavaException):
    """A failure of a catalog."""


class DatabaseAlreadyExistException(JavaException):
    """A database exists already."""


class DatabaseNotEmptyException(JavaException):
    """A database to be dropped has tables."""


class DatabaseNotExistException(JavaException):
    """A database does not exist."""


class FunctionAlreadyExistException(JavaException):
    """A function exists already."""


class FunctionNotExistException(JavaException):
    """A function does not exist."""


class ModelAlreadyExistException(JavaException):
    """A model exists already."""


class ModelNotExistException(JavaException):
    """A model does not exist."""


class PartitionAlreadyExistsException(JavaException):
    """A partition exists already."""


class PartitionNotExistException(JavaException):
    """A partition does not exist."""


class PartitionSpecInvalidException(JavaException):
    """A partition specification does not fit its table."""


class TableAlreadyExistException(JavaException):
    """A table exists already."""


class TableNotExistException(JavaException):
    """A table does not exist."""


class TableNotPartitionedException(JavaException):
    """A table is not partitioned."""


__getattr__ = reexports(__name__)
