"""Scalar and table functions of users, which queries call. A query's operator calls them before it computes its expressions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.function import Function
from opchain.runtime.functions.record_functions import FilterFunction, FlatMapFunction, MapFunction
from opchain.runtime.types.coders import coder_converter
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.functions.sql import RowExpression
    from opchain.runtime.types.type_information import TypeInformation


class UserDefinedFunction(Function):
    """A function that queries can call. Flink: UserDefinedFunction."""

    def is_deterministic(self) -> bool:
        """Whether equal arguments give equal results. A query calls such a function once for equal calls."""
        return True


class ScalarFunction(UserDefinedFunction):
    """Turns the values of some columns into one value. NULL is None. Flink: ScalarFunction."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The result for the values of the arguments."""


class DelegatingScalarFunction(ScalarFunction):
    """A plain callable as a ScalarFunction."""

    def __init__(self, func: Any) -> None:
        self.func = func

    def eval(self, *args: Any) -> Any:
        """The result of the callable."""
        return self.func(*args)


class TableFunction(UserDefinedFunction):
    """Turns the values of some columns into any number of rows. Flink: TableFunction."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The rows for the values of the arguments."""


class RowsOfTableFunction(ScalarFunction):
    """A table function as a function that returns the list of its rows.

    Args:
        func: A callable, or an object of a TableFunction.
        width: The number of columns. Rows with fewer values end with NULL.
    """

    def __init__(self, func: Any, width: int) -> None:
        self.func = func
        self.width = width

    def is_deterministic(self) -> bool:
        """Whether the table function is."""
        return not isinstance(self.func, TableFunction) or self.func.is_deterministic()

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens a TableFunction."""
        if isinstance(self.func, TableFunction):
            self.func.open(runtime_context)

    def close(self) -> None:
        """Closes a TableFunction."""
        if isinstance(self.func, TableFunction):
            self.func.close()

    def eval(self, *args: Any) -> list[tuple[Any, ...]]:
        """The rows. As in PyFlink, a tuple that is returned is one row, and None stands for none."""
        found = (self.func.eval if isinstance(self.func, TableFunction) else self.func)(*args)
        if found is None:
            return []
        rows = found if isinstance(found, (list, range, Generator)) else [found]
        return list(map(self._values, rows))

    def _values(self, row: Any) -> tuple[Any, ...]:
        values = tuple(row) if isinstance(row, (tuple, Row)) else (row,)
        return values + (None,) * (self.width - len(values))


class Unnesting(FlatMapFunction[Any, Any]):
    """A row for each row in the last column: the values of the first columns, and the values of that row.

    Args:
        names: The names of the columns of the results.
        kept: The number of first columns.
        keeps_all: Whether a row without rows in its last column has a result, with NULLs.
    """

    def __init__(self, names: Sequence[str], kept: int, *, keeps_all: bool) -> None:
        self.kept = kept
        self.names = list(names)
        self._of_none = [(None,) * (len(names) - kept)] if keeps_all else []

    def flat_map(self, value: Any) -> Iterator[Row]:
        """The resulting rows."""
        values, row = tuple(value), Row(*self.names)
        for each in values[-1] or self._of_none:
            yield row(*values[: self.kept], *each)


class UserCall:
    """A call of a function in a query.

    Args:
        function: The function.
        arguments: The tuple of the arguments. They may be results of earlier calls.
        result_type: The type that results are converted to.
        allows_null: Whether the function may return None.
        shown: The SQL text, for errors.
    """

    def __init__(
        self,
        function: ScalarFunction,
        arguments: RowExpression,
        result_type: TypeInformation[Any],
        shown: str,
        *,
        allows_null: bool,
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.result_type = result_type
        self.shown = shown
        self.allows_null = allows_null

    def __repr__(self) -> str:
        return self.shown


class _WithCalls(Function):
    """Makes calls of functions, and appends their results to the values of a row.

    Args:
        calls: The calls, in order.
        then: Computes the result from the row's values and the results of the calls.
    """

    def __init__(self, calls: Sequence[UserCall], then: RowExpression) -> None:
        self.calls = list(calls)
        self.then = then

    def __repr__(self) -> str:
        return repr(self.then)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens each function once."""
        self._steps = [
            (each, each.arguments, each.function.eval, coder_converter(each.result_type))
            for each in self.calls
        ]
        for function in self._functions():
            function.open(runtime_context)

    def close(self) -> None:
        """Closes each function."""
        for function in self._functions():
            function.close()

    def _functions(self) -> list[ScalarFunction]:
        return list({id(each.function): each.function for each in self.calls}.values())

    def _values(self, row: Any) -> tuple[Any, ...]:
        """The values of the row and of the calls.

        Raises:
            TypeError: A result is not of the declared type.
            ValueError: A result is None, and the declared type is NOT NULL.
        """
        values = tuple(row)
        for call, arguments, function, convert in self._steps:
            result = function(*arguments(values))
            if result is None:
                if not call.allows_null:
                    raise ValueError(
                        f"{call} returned None, and its result_type is NOT NULL; return a value, or declare a type that "
                        "is nullable"
                    )
            elif convert is not None:
                try:
                    result = convert(result)
                except Exception as error:
                    raise TypeError(
                        f"{call} returned a value that is not of its result_type: {error}"
                    ) from error
            values = (*values, result)
        return values


class ProjectionWithCalls(_WithCalls, MapFunction[Any, Any]):
    """SELECT with calls of functions."""

    def map(self, value: Any) -> Any:
        """The resulting row."""
        return self.then(self._values(value))


class PredicateWithCalls(_WithCalls, FilterFunction[Any]):
    """WHERE with calls of functions."""

    def filter(self, value: Any) -> bool:
        """Whether the row passes."""
        return bool(self.then(self._values(value)))
