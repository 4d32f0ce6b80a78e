"""Descriptors of states: name, type and settings. Functions request a state with its descriptor.

Flink considers descriptors equal if kind and name are equal. Here the type and the time to live count as well, so
using one name for two different states is an error. Functions in descriptors are not compared.
"""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.callables import as_function
from opchain.runtime.functions.record_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from opchain.runtime.functions.type_variables import S_co
from opchain.runtime.types.type_information import TypeInformation
from opchain.runtime.types.type_variables import ACC, IN_contra, K, OUT_co, T, V
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.functions.state_ttl import StateTtlConfig


def _declared(name: str, type_info: TypeInformation[T] | None) -> TypeInformation[Any]:
    """The type of a state, of its elements, its keys or its values. None is the type of any object.

    Raises:
        TypeError: It is something else, such as `str`, or `Types.STRING` without parentheses.
    """
    if type_info is None:
        return Types.PICKLED_BYTE_ARRAY()
    if not isinstance(type_info, TypeInformation):
        raise TypeError(
            f"the type of state {name!r} is {type_info!r}; it must be a TypeInformation, such as Types.STRING(), or None"
        )
    return type_info


class StateDescriptor(ABC, Generic[S_co]):
    """The name of a state, unique in its operator, and the type of its contents.

    Args:
        name: The name; not empty.
        type_info: The type of the contents, or None for any object.

    Raises:
        TypeError: `type_info` is neither.
    """

    def __init__(self, name: str, type_info: TypeInformation[Any] | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a state is {name!r}; it must be a non-empty string")
        self._name = name
        self._type_info = _declared(name, type_info)
        self._ttl_config: StateTtlConfig | None = None

    @property
    def name(self) -> str:
        """The name of the state."""
        return self._name

    @property
    def type_info(self) -> TypeInformation[Any]:
        """The type of the value, the list, the map, or the accumulator."""
        return self._type_info

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """The time to live. None if the state never expires."""
        return self._ttl_config

    def get_name(self) -> str:
        """The name of the state."""
        return self._name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Sets a time to live. Call it before the descriptor is used to get the state."""
        self._ttl_config = ttl_config

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return (self._name, self._type_info, self._ttl_config) == (
            other._name,
            other._type_info,
            other._ttl_config,
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, {self._type_info!r})"


class ValueStateDescriptor(StateDescriptor[ValueState[T]], Generic[T]):
    """Describes one value.

    Args:
        name: The name; not empty.
        value_type_info: The value's type, or None for any object.
    """

    def __init__(self, name: str, value_type_info: TypeInformation[T] | None = None) -> None:
        super().__init__(name, value_type_info)


def value_descriptor(descriptor: StateDescriptor[Any]) -> ValueStateDescriptor[Any]:
    """A descriptor as one of a value: a list for a ListStateDescriptor, a dictionary for a MapStateDescriptor.

    PyFlink's `get_state` also takes the descriptors of other states this way.
    """
    if isinstance(descriptor, ValueStateDescriptor):
        return descriptor
    found: ValueStateDescriptor[Any] = ValueStateDescriptor(descriptor.name, descriptor.type_info)
    if descriptor.ttl_config is not None:
        found.enable_time_to_live(descriptor.ttl_config)
    return found


class ListStateDescriptor(StateDescriptor[ListState[T]], Generic[T]):
    """Describes a list.

    Args:
        name: The name; not empty.
        elem_type_info: The type of an element, or None for any object.
    """

    def __init__(self, name: str, elem_type_info: TypeInformation[T] | None = None) -> None:
        super().__init__(name, Types.LIST(_declared(name, elem_type_info)))


class MapStateDescriptor(StateDescriptor[MapState[K, V]], Generic[K, V]):
    """Describes a map, as keyed state or broadcast state.

    Args:
        name: The name; not empty.
        key_type_info: The type of the map's keys, or None for any object.
        value_type_info: The type of the map's values, or None for any object.
    """

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation[K] | None = None,
        value_type_info: TypeInformation[V] | None = None,
    ) -> None:
        super().__init__(
            name, Types.MAP(_declared(name, key_type_info), _declared(name, value_type_info))
        )


class ReducingStateDescriptor(StateDescriptor[ReducingState[T]], Generic[T]):
    """Describes a value that a ReduceFunction combines with new elements.

    Args:
        name: The name; not empty.
        reduce_function: A ReduceFunction, or a callable with two parameters. Its `open` is not called.
        type_info: The type of the value, or None for any object.

    Raises:
        TypeError: `reduce_function` is neither.
    """

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        type_info: TypeInformation[T] | None = None,
    ) -> None:
        super().__init__(name, type_info)
        self._reduce_function: ReduceFunction[T] = as_function(
            ReduceFunction, reduce_function, f"reducing state {name!r}"
        )

    def get_reduce_function(self) -> ReduceFunction[T]:
        """The function that combines two values."""
        return self._reduce_function


class AggregatingStateDescriptor(
    StateDescriptor[AggregatingState[IN_contra, OUT_co]], Generic[IN_contra, ACC, OUT_co]
):
    """Describes an accumulator to which an AggregateFunction adds elements.

    Args:
        name: The name; not empty.
        agg_function: The AggregateFunction. Its `open` is not called.
        state_type_info: The type of the accumulator, or None for any object.

    Raises:
        TypeError: `agg_function` is not an AggregateFunction.
    """

    def __init__(
        self,
        name: str,
        agg_function: AggregateFunction[IN_contra, ACC, OUT_co],
        state_type_info: TypeInformation[ACC] | None = None,
    ) -> None:
        super().__init__(name, state_type_info)
        self._agg_function = as_function(
            AggregateFunction, agg_function, f"aggregating state {name!r}"
        )

    def get_agg_function(self) -> AggregateFunction[IN_contra, ACC, OUT_co]:
        """The function that accumulates values."""
        return self._agg_function
