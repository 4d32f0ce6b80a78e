from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.functions.async_functions import (
    NO_RETRY_STRATEGY,
    AsyncBatchFunction,
    AsyncFunction,
    AsyncFunctionDescriptor,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Twice(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0)
        return [value, value]


class TwiceEach(AsyncBatchFunction[int, int]):
    async def async_invoke_batch(self, values: Sequence[int]) -> list[list[int]]:
        return [[value, value] for value in values]


def test_async_invoke_returns_results_from_a_coroutine() -> None:
    assert asyncio.run(Twice().async_invoke(3)) == [3, 3]
    assert asyncio.run(TwiceEach().async_invoke_batch([1, 2])) == [[1, 1], [2, 2]]


def test_timeout_fails_with_the_record_unless_overridden() -> None:
    with pytest.raises(TimeoutError, match="'Twice' gave no result for 3"):
        Twice().timeout(3)
    with pytest.raises(TimeoutError, match="gave no results for 2 records, the first 5"):
        TwiceEach().timeout([5, 6])


def test_an_async_function_descriptor_has_the_output_mode() -> None:
    mode = AsyncFunctionDescriptor.OutputMode
    descriptor = AsyncFunctionDescriptor(Twice(), 1000, 100, NO_RETRY_STRATEGY, mode.ORDERED)
    assert descriptor.output_mode is mode["ORDERED"]
    assert [member.name for member in mode] == ["ORDERED", "UNORDERED"]
