from __future__ import annotations

import pytest

from opchain.common import Types
from opchain.datastream.state import StateTtlConfig
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keyed.state_table import StateTable, has_ttl, kind_of


def value_table() -> StateTable:
    return StateTable("s", "ValueStateDescriptor", has_ttl=False, descriptor=None)


def test_a_namespace_is_created_on_request_and_removed_when_empty() -> None:
    table = value_table()
    assert table.space("w") is table.space("w")
    table.space("w")["k"] = 1
    table.leave("w")
    assert table.space("w") == {"k": 1}
    table.space("w").clear()
    table.leave("w")
    assert list(table.spaces) == [VOID]


def test_void_and_the_current_namespace_are_not_removed() -> None:
    table = value_table()
    table.current = ("w", 1)
    table.space(("w", 1))
    for namespace in (VOID, ("w", 1), "unknown"):
        table.leave(namespace)
    assert list(table.spaces) == [VOID, ("w", 1)]


def test_later_descriptors_must_equal_the_first_one() -> None:
    table = value_table()
    table.require(ValueStateDescriptor("s", Types.LONG()), "here")
    table.require(ValueStateDescriptor("s", Types.LONG()), "here")
    with pytest.raises(
        StateError, match=r"here: state 's' is registered as .*Long.* requested as .*String"
    ):
        table.require(ValueStateDescriptor("s", Types.STRING()), "here")


def test_a_kind_that_differs_from_that_of_the_snapshot_is_an_error() -> None:
    with pytest.raises(StateError, match=r"registered as ValueStateDescriptor .* another name"):
        value_table().require(ListStateDescriptor("s"), "here")


def test_has_ttl_is_true_for_an_enabled_time_to_live() -> None:
    descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("s")
    assert not has_ttl(descriptor)
    builder = StateTtlConfig.new_builder(1)
    descriptor.enable_time_to_live(builder.build())
    assert has_ttl(descriptor)
    descriptor.enable_time_to_live(
        builder.set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    )
    assert not has_ttl(descriptor)
    assert kind_of(descriptor) == "ValueStateDescriptor"
