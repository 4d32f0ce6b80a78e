from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.async_functions import AsyncBatchFunction, AsyncFunction
from opchain.runtime.operators.async_wait.calls import invocation_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class Letters(AsyncFunction[str, str]):
    async def async_invoke(self, value: str) -> Any:
        return value.split()

    def timeout(self, value: str) -> Any:
        return None if value == "none" else [f"no {value}"]


class LettersOfAll(AsyncBatchFunction[str, str]):
    max_batch_size = 3

    async def async_invoke_batch(self, values: Sequence[str]) -> Any:
        return (value.split() for value in values)

    def timeout(self, values: Sequence[str]) -> Any:
        return [[f"no {value}"] for value in values[:2]]


async def letters(value: str) -> list[str]:
    return value.split()


@pytest.mark.parametrize("function", [Letters(), letters], ids=["function", "coroutine function"])
def test_an_invocation_for_one_record_has_its_results(function: Any) -> None:
    invocation = invocation_of(function)
    assert invocation.batch_size == 1
    argument = invocation.argument(["a b"])
    assert argument == "a b"
    returned = asyncio.run(invocation.call(argument))
    assert invocation.results_of_call(returned, argument) == [["a", "b"]]


def test_an_invocation_for_a_batch_has_the_results_of_each_record() -> None:
    invocation = invocation_of(LettersOfAll())
    assert invocation.batch_size == 3
    argument = invocation.argument(["a b", "c"])
    returned = asyncio.run(invocation.call(argument))
    assert invocation.results_of_call(returned, argument) == [["a", "b"], ["c"]]


def test_timeout_may_return_results() -> None:
    assert invocation_of(Letters()).results_in_place("a") == [["no a"]]
    assert invocation_of(LettersOfAll()).results_in_place(["a", "b"]) == [["no a"], ["no b"]]


def test_timeout_of_a_coroutine_function_raises_a_timeout_error() -> None:
    with pytest.raises(TimeoutError, match="'letters' gave no result for 'a' within the timeout"):
        invocation_of(letters).results_in_place("a")


@pytest.mark.parametrize(
    ("returned", "what"), [(None, "cannot be none"), (3, "should be of list type")]
)
def test_results_must_be_iterable(returned: Any, what: str) -> None:
    with pytest.raises(
        TypeError,
        match=f"AsyncFunction {what}, but 'Letters.async_invoke' returned {returned} for 'a'; return",
    ):
        invocation_of(Letters()).results_of_call(returned, "a")
    with pytest.raises(TypeError, match=r"'LettersOfAll.async_invoke_batch' returned"):
        invocation_of(LettersOfAll()).results_of_call([["a"], returned], ["a", "b"])


def test_results_of_timeout_must_be_iterable_too() -> None:
    with pytest.raises(TypeError, match=r"'Letters.timeout' returned None for 'none'"):
        invocation_of(Letters()).results_in_place("none")


def test_a_batch_must_have_results_for_each_record() -> None:
    with pytest.raises(
        ValueError,
        match=r"'LettersOfAll.timeout' returned results for 2 records, but was called with 3",
    ):
        invocation_of(LettersOfAll()).results_in_place(["a", "b", "c"])


def test_results_of_generators_are_stored() -> None:
    ((results,),) = [invocation_of(Letters()).results_of_call((c for c in "ab"), "x")]
    assert [list(results), list(results)] == [["a", "b"], ["a", "b"]]
