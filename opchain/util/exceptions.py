"""Exceptions of PyFlink's calls into Java. PyFlink: pyflink.util.exceptions.

Programs name them in `except` clauses. opchain never raises them, because it does not call Java.
"""

from __future__ import annotations

from opchain.reexports import reexports


class JavaException(Exception):  # noqa: N818 - PyFlink's name
    """An exception of Java code."""

    def __init__(self, stack_trace: str) -> None:
        super().__init__(stack_trace)
        self.stack_trace = stack_trace


class TableException(JavaException):
    """An error of the Table API."""


class CatalogException(JavaException):
    """An error of a catalog."""


class DatabaseAlreadyExistException(JavaException):
    """The database already exists."""


class DatabaseNotEmptyException(JavaException):
    """The database to be dropped still has tables."""


class DatabaseNotExistException(JavaException):
    """The database does not exist."""


class FunctionAlreadyExistException(JavaException):
    """The function already exists."""


class FunctionNotExistException(JavaException):
    """The function does not exist."""


class ModelAlreadyExistException(JavaException):
    """The model already exists."""


class ModelNotExistException(JavaException):
    """The model does not exist."""


class PartitionAlreadyExistsException(JavaException):
    """The partition already exists."""


class PartitionNotExistException(JavaException):
    """The partition does not exist."""


class PartitionSpecInvalidException(JavaException):
    """The partition specification does not match its table."""


class TableAlreadyExistException(JavaException):
    """The table already exists."""


class TableNotExistException(JavaException):
    """The table does not exist."""


class TableNotPartitionedException(JavaException):
    """The table is not partitioned."""


__getattr__ = reexports(__name__)
