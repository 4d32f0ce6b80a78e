from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.async_functions import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)


@pytest.mark.parametrize(
    ("result", "retry"), [(None, True), ([], True), ([0], False), ([1, 2], False)]
)
def test_empty_results_ask_for_a_retry(result: Any, retry: bool) -> None:
    assert empty_result_predicate(result) is retry


@pytest.mark.parametrize(("error", "retry"), [(None, False), (ValueError("x"), True)])
def test_any_exception_asks_for_a_retry(error: Any, retry: bool) -> None:
    assert has_exception_predicate(error) is retry


@pytest.mark.parametrize(
    ("error", "kind", "retry"),
    [
        (ConnectionResetError(), ConnectionError, True),
        (ValueError(), ConnectionError, False),
        (ValueError(), (ConnectionError, ValueError), True),
        (None, ValueError, False),
    ],
)
def test_some_exceptions_ask_for_a_retry(error: Any, kind: Any, retry: bool) -> None:
    assert exception_type_predicate(error, kind) is retry
