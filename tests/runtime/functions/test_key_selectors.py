from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.key_selectors import KeySelector, NullByteKeySelector, Partitioner


class First(KeySelector[tuple[str, int], str]):
    def get_key(self, value: tuple[str, int]) -> str:
        return value[0]


class Modulo(Partitioner):  # type: ignore[type-arg]
    def partition(self, key: Any, num_partitions: int) -> int:
        return int(key) % num_partitions


def test_key_selectors_work_with_and_without_type_parameters() -> None:
    assert First().get_key(("a", 1)) == "a"
    assert Modulo().partition(7, 4) == 3


@pytest.mark.parametrize("value", [None, "a", [1]])
def test_null_byte_key_selector_gives_all_values_the_same_key(value: Any) -> None:
    assert NullByteKeySelector().get_key(value) == 0


@pytest.mark.parametrize("kind", [KeySelector, Partitioner])
def test_key_selector_and_partitioner_are_abstract(kind: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()
