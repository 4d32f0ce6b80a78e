"""Scalar functions of users. Using any other name raises an error. PyFlink: pyflink.table.udf."""

from opchain.compiler.table.user_functions import UserDefinedScalarFunctionWrapper, udf
from opchain.reexports import reexports
from opchain.runtime.functions.function import RuntimeContext as FunctionContext
from opchain.runtime.functions.user_defined_functions import (
    DelegatingScalarFunction,
    ScalarFunction,
    UserDefinedFunction,
)

__all__ = [
    "DelegatingScalarFunction",
    "FunctionContext",
    "ScalarFunction",
    "UserDefinedFunction",
    "UserDefinedScalarFunctionWrapper",
    "udf",
]

__getattr__ = reexports(__name__)
