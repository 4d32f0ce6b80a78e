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


def test_they_work_with_and_without_type_parameters() -> None:
    assert First().get_key(("a", 1)) == "a"
    assert Modulo().partition(7, 4) == 3


@pytest.mark.parametrize("value", [None, "a", [1]])
def test_the_key_behind_window_all_is_one_for_all(value: Any) -> None:
    assert NullByteKeySelector().get_key(value) == 0


@pytest.mark.parametrize("kind", [KeySelector, Partitioner])
def test_contracts_are_abstract(kind: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()
