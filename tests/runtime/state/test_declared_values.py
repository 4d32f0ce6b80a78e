"""States refuse values that PyFlink 2.3 fails with, and keep accepted values unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aggregates import Sum

from opchain.common import Types
from opchain.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.operator_state import SubtaskStateStore
from opchain.runtime.time import Time

if TYPE_CHECKING:
    from collections.abc import Callable


INT, STRING, LONG = Types.INT(), Types.STRING(), Types.LONG()
BIG = 2**40

VALUE: Callable[..., StateDescriptor[Any]] = lambda kind: ValueStateDescriptor("s", kind)  # noqa: E731
REFUSED: list[tuple[Any, Callable[[Any], object], str]] = [
    (VALUE(INT), lambda s: s.update(BIG), "state 's': 1099511627776 does not fit into INT"),
    (VALUE(INT), lambda s: s.update("text"), "state 's': 'text' is declared as INT"),
    (VALUE(STRING), lambda s: s.update(1), "state 's': 1 is declared as STRING"),
    (VALUE(Types.BOOLEAN()), lambda s: s.update(300), "state 's': 300 is not a BOOLEAN"),
    (VALUE(Types.TUPLE([INT, STRING])), lambda s: s.update((1, 2)), "2 is declared as STRING"),
    (ListStateDescriptor("s", INT), lambda s: s.add(BIG), "does not fit into INT"),
    (ListStateDescriptor("s", INT), lambda s: s.add_all([1, "x"]), "'x' is declared as INT"),
    (ListStateDescriptor("s", INT), lambda s: s.update([1, BIG]), "does not fit into INT"),
    (ListStateDescriptor("s", INT), lambda s: s.add(None), "None is declared as INT"),
    (MapStateDescriptor("s", LONG, INT), lambda s: s.put(BIG, BIG), "does not fit into INT"),
    (MapStateDescriptor("s", INT, LONG), lambda s: s.put(BIG, BIG), "does not fit into INT"),
    (MapStateDescriptor("s", STRING, INT), lambda s: s.put_all({"a": "x"}), "declared as INT"),
    (MapStateDescriptor("s", STRING, INT), lambda s: s.put_all([("a", "x")]), "declared as INT"),
    (
        ReducingStateDescriptor("s", lambda a, b: a + b, INT),
        lambda s: (s.add(2**31 - 1), s.add(1)),
        "does not fit into INT",
    ),
    (ReducingStateDescriptor("s", lambda a, _: a, INT), lambda s: s.add("x"), "declared as INT"),
    (
        AggregatingStateDescriptor("s", Sum(), INT),
        lambda s: (s.add(2**31 - 1), s.add(1)),
        "does not fit into INT",
    ),
]


def state_of(descriptor: Any, *, ttl: bool) -> Any:
    if ttl:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    backend = HashMapKeyedStateBackend()
    backend.set_current_key("key")
    return backend.state(descriptor)


@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(("descriptor", "write", "message"), REFUSED)
def test_a_value_that_its_declared_type_cannot_hold_is_refused(
    descriptor: Any, write: Callable[[Any], object], message: str, ttl: bool
) -> None:
    with pytest.raises((TypeError, OverflowError), match=message):
        write(state_of(descriptor, ttl=ttl))


def test_broadcast_state_refuses_such_values_too() -> None:
    state = SubtaskStateStore().get_broadcast_state(MapStateDescriptor("rules", STRING, INT))
    with pytest.raises(TypeError, match="state 'rules': 'text' is declared as INT"):
        state.put("a", "text")
    assert state.is_empty()


def test_an_accepted_value_is_kept_unchanged() -> None:
    value = state_of(VALUE(INT), ttl=False)
    value.update(1.7)
    assert value.value() == 1.7
    value.update(None)
    assert value.value() is None
    entries = state_of(MapStateDescriptor("s", INT, INT), ttl=False)
    entries.put(1, None)
    assert list(entries.items()) == [(1, None)]
    assert entries.get_internal_state() is entries
    added = state_of(AggregatingStateDescriptor("s", Sum(), INT), ttl=False)
    added.add(1)
    added.add(2)
    assert added.get() == 3


def test_a_state_of_any_object_is_not_checked() -> None:
    state = state_of(ValueStateDescriptor("s"), ttl=False)
    state.update(object)
    assert "update" not in vars(state)
