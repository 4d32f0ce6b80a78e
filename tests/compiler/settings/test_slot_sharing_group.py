"""What is accepted and refused is what Flink 2.3's SlotSharingGroup accepts and refuses."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
from opchain.runtime.configuration.options import MemorySize


def builder() -> Any:
    return SlotSharingGroup.builder("a")


def test_a_slot_sharing_group_needs_only_a_name() -> None:
    group = builder().build()
    assert group.get_name() == "a"
    assert group.get_cpu_cores() is group.get_task_heap_memory() is None
    assert group.get_task_off_heap_memory() is group.get_managed_memory() is None
    assert group.get_external_resources() == {}


def test_a_group_with_cores_and_heap_has_defaults_for_other_resources() -> None:
    group = builder().set_cpu_cores(1.5).set_task_heap_memory_mb(10).build()
    assert group.get_cpu_cores() == 1.5
    assert group.get_task_heap_memory() == MemorySize.parse("10 mb")
    assert group.get_task_off_heap_memory() == group.get_managed_memory() == MemorySize(0)


def test_every_resource_of_a_slot_sharing_group_can_be_set() -> None:
    group = (
        builder()
        .set_cpu_cores(1)
        .set_task_heap_memory(MemorySize(7))
        .set_task_off_heap_memory(MemorySize(8))
        .set_managed_memory(MemorySize(9))
        .set_external_resource("gpu", 1)
        .set_external_resource("gpu", 2)
        .set_external_resource("fpga", 0)
        .build()
    )
    assert group.get_task_heap_memory() == MemorySize(7)
    assert group.get_task_off_heap_memory() == MemorySize(8)
    assert group.get_managed_memory() == MemorySize(9)
    assert group.get_external_resources() == {"gpu": 2.0, "fpga": 0.0}
    other = builder().set_cpu_cores(1).set_task_heap_memory_mb(1)
    other.set_task_off_heap_memory_mb(2).set_managed_memory_mb(3)
    assert other.build().get_task_off_heap_memory() == MemorySize.of_mebi_bytes(2)
    assert other.build().get_managed_memory() == MemorySize.of_mebi_bytes(3)


INCOMPLETE: dict[str, Any] = {
    "cores": lambda b: b.set_cpu_cores(1),
    "heap": lambda b: b.set_task_heap_memory_mb(1),
    "off heap": lambda b: b.set_task_off_heap_memory_mb(1),
    "managed": lambda b: b.set_managed_memory_mb(1),
    "external": lambda b: b.set_external_resource("gpu", 1),
    "off heap of 0": lambda b: b.set_cpu_cores(1).set_task_off_heap_memory_mb(0),
}


@pytest.mark.parametrize("name_some", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_resources_of_a_group_need_both_cores_and_heap(name_some: Any) -> None:
    with pytest.raises(
        ValueError, match="'a' asks for resources, but not for both CPU cores and task"
    ):
        name_some(builder()).build()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda b: b.set_cpu_cores(0), "0 CPU cores"),
        (lambda b: b.set_cpu_cores(-1), "-1 CPU cores"),
        (lambda b: b.set_task_heap_memory_mb(0), "0 mb of task heap memory"),
        (lambda b: b.set_task_heap_memory_mb(-1), "-1 mb of task heap memory"),
        (lambda b: b.set_task_heap_memory(MemorySize(0)), "0 bytes of task heap memory"),
        (lambda b: b.set_external_resource("gpu", -1), "-1 of external resource 'gpu'"),
    ],
)
def test_invalid_amounts_of_resources_are_refused(ask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"slot sharing group 'a' asks for {message}"):
        ask(builder())


def test_slot_sharing_groups_compare_by_value_and_can_be_pickled() -> None:
    with_resources = builder().set_cpu_cores(1).set_task_heap_memory_mb(10)
    groups = [builder().build(), with_resources.build(), SlotSharingGroup.builder("b").build()]
    for group in groups:
        copy = pickle.loads(pickle.dumps(group))
        assert copy == group
        assert hash(copy) == hash(group)
        assert groups.count(group) == 1
    one = builder().set_cpu_cores(1).set_task_heap_memory_mb(1)
    one.set_external_resource("a", 1).set_external_resource("b", 2)
    two = builder().set_cpu_cores(1).set_task_heap_memory_mb(1)
    two.set_external_resource("b", 2).set_external_resource("a", 1)
    assert one.build() == two.build()


def test_the_name_of_a_slot_sharing_group_must_be_a_string() -> None:
    with pytest.raises(TypeError, match="the name of a slot sharing group is 5, not a str"):
        SlotSharingGroup.builder(5)  # type: ignore[arg-type]
