"""Checks values that functions write to a state against the declared type of the state.

PyFlink's cache keeps a written value unchanged, and encodes it by the declared type when the cache is flushed. So a
state of type INT returns 1.7 unchanged, and the job fails later for 2**40 or "text". Here such a value is refused when
it is written. States of a type that accepts any value are not checked.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.record_functions import AggregateFunction
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from opchain.runtime.types.coders import coder_converter, fitting_each
from opchain.runtime.types.container_types import ListTypeInfo, MapTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opchain.runtime.types.type_information import TypeInformation

    Check = Callable[[Any], object]


def checked_type(declared: TypeInformation[Any] | None) -> str | None:
    """The declared type as text, or None if writes are not checked against it."""
    kinds = (
        (declared.key_type_info, declared.value_type_info)
        if isinstance(declared, MapTypeInfo)
        else (declared.element_type if isinstance(declared, ListTypeInfo) else declared,)
    )
    return repr(declared) if any(map(coder_converter, kinds)) else None


def check_writes(state: Any, descriptor: StateDescriptor[Any]) -> None:
    """Wraps the write methods of a state, so that they check each value against the type of its descriptor.

    Raises (when a value is written):
        TypeError: The value is not an instance of the declared type.
        OverflowError: A number does not fit into the type.
    """
    kind: Any = descriptor.type_info
    if isinstance(descriptor, MapStateDescriptor):
        check_key = _check_of(descriptor, kind.key_type_info)
        check_value = _check_of(descriptor, kind.value_type_info)
        if check_key or check_value:
            _check_map(state, check_key or _accept, check_value or _accept)
        return
    is_list = isinstance(descriptor, ListStateDescriptor)
    check = _check_of(descriptor, kind.element_type if is_list else kind)
    if check is None:
        return
    if is_list:
        _check_list(state, check, fitting_each(kind.element_type))
    elif isinstance(descriptor, ReducingStateDescriptor):
        state.add = _checked_write(check, state.add)
    elif not isinstance(descriptor, AggregatingStateDescriptor):
        state.update = _checked_write(check, state.update)


def with_checked_function(descriptor: Any) -> Any:
    """A copy of the descriptor of a reducing or aggregating state, with a function that checks its results."""
    check = _check_of(descriptor, descriptor.type_info)
    if check is None:
        return descriptor
    if isinstance(descriptor, ReducingStateDescriptor):
        reduce = descriptor.get_reduce_function().reduce
        return ReducingStateDescriptor(
            descriptor.name, lambda a, b: _checked(check, reduce(a, b)), descriptor.type_info
        )
    checked = _CheckedAggregation(descriptor.get_agg_function(), check)
    return AggregatingStateDescriptor(descriptor.name, checked, descriptor.type_info)


def functions_of(descriptor: Any) -> dict[str, Callable[..., Any]]:
    """The functions of a reducing or aggregating state, as generated code names them.

    "combined" adds a value, and "checked" returns its argument if it has the declared type.
    """
    checked = partial(_checked, _check_of(descriptor, descriptor.type_info) or _accept)
    if isinstance(descriptor, ReducingStateDescriptor):
        return {"combined": descriptor.get_reduce_function().reduce, "checked": checked}
    function = descriptor.get_agg_function()
    return {
        "create": function.create_accumulator,
        "combined": function.add,
        "result": function.get_result,
        "checked": checked,
    }


class _CheckedAggregation(AggregateFunction[Any, Any, Any]):
    """An aggregate function whose accumulators are checked."""

    def __init__(self, function: AggregateFunction[Any, Any, Any], check: Check) -> None:
        self._function = function
        self._check = check

    def create_accumulator(self) -> Any:
        return self._function.create_accumulator()

    def get_result(self, accumulator: Any) -> Any:
        return self._function.get_result(accumulator)

    def add(self, value: Any, accumulator: Any) -> Any:
        return _checked(self._check, self._function.add(value, accumulator))

    def merge(self, a: Any, b: Any) -> Any:
        return _checked(self._check, self._function.merge(a, b))


def _check_of(descriptor: StateDescriptor[Any], kind: TypeInformation[Any]) -> Check | None:
    convert = coder_converter(kind)
    if convert is None:
        return None

    def check(value: Any) -> None:
        try:
            convert(value)
        except Exception as error:
            error.args = (f"state '{descriptor.name}': {error}",)
            raise

    return check


def _accept(value: Any) -> None:
    pass


def _checked(check: Check, value: Any) -> Any:
    if value is not None:
        check(value)
    return value


def _checked_write(check: Check, write: Check) -> Check:
    def checked(value: Any) -> None:
        if value is not None:  # None clears the state
            check(value)
        write(value)

    return checked


def _check_list(state: Any, check: Check, fit: Callable[[list[Any]], bool]) -> None:
    add, add_all, update = state.add, state.add_all, state.update

    def checked(values: Iterable[Any]) -> list[Any]:
        elements = list(values)
        if not fit(elements):
            for element in elements:
                check(element)
        return elements

    def checked_add(value: Any) -> None:
        check(value)
        add(value)

    state.add = checked_add
    state.add_all = lambda values: add_all(checked(values))
    state.update = lambda values: update(checked(values))


def _check_map(state: Any, check_key: Check, check_value: Check) -> None:
    put, put_all = state.put, state.put_all

    def checked_put(key: Any, value: Any) -> None:
        check_key(key)
        _checked(check_value, value)
        put(key, value)

    def checked_put_all(values: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        entries = dict(values)
        for key, value in entries.items():
            check_key(key)
            _checked(check_value, value)
        put_all(entries)

    state.put, state.put_all = checked_put, checked_put_all
