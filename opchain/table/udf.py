"""Scalar and table functions of users. Using any other name raises an error. PyFlink: pyflink.table.udf."""

from opchain.compiler.table.user_functions import (
    UserDefinedScalarFunctionWrapper,
    UserDefinedTableFunctionWrapper,
    udf,
    udtf,
)
from opchain.reexports import reexports
from opchain.runtime.functions.function import RuntimeContext as FunctionContext
from opchain.runtime.functions.user_defined_functions import (
    DelegatingScalarFunction,
    ScalarFunction,
    TableFunction,
    UserDefinedFunction,
)

__all__ = [
    "DelegatingScalarFunction",
    "FunctionContext",
    "ScalarFunction",
    "TableFunction",
    "UserDefinedFunction",
    "UserDefinedScalarFunctionWrapper",
    "UserDefinedTableFunctionWrapper",
    "udf",
    "udtf",
]

__getattr__ = reexports(__name__)
