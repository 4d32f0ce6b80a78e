from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.record_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Pair(JoinFunction[int, str, tuple[int, str]]):
    def join(self, first: int, second: str) -> tuple[int, str]:
        return first, second


class Left(CoGroupFunction[int, str, int]):
    def co_group(self, first: Iterable[int], second: Iterable[str]) -> Iterator[int]:
        if not list(second):
            yield from first


class Both(ProcessJoinFunction):  # type: ignore[type-arg]
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


def test_functions_work_with_and_without_type_parameters() -> None:
    context: Any = None
    assert Pair().join(1, "a") == (1, "a")
    assert [*Left().co_group([1, 2], []), *Left().co_group([3], ["x"])] == [1, 2]
    assert list(Both().process_element(1, 2, context)) == [(1, 2)]


def test_the_context_of_an_interval_join_has_three_timestamps() -> None:
    assert ProcessJoinFunction.Context.__abstractmethods__ == {
        "get_left_timestamp",
        "get_right_timestamp",
        "get_timestamp",
    }


@pytest.mark.parametrize("kind", [JoinFunction, FlatJoinFunction, CoGroupFunction])
def test_join_and_co_group_functions_are_abstract(kind: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()
