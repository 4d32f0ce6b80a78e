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
def test_empty_result_predicate_retries_on_empty_results(result: Any, retry: bool) -> None:
    assert empty_result_predicate(result) is retry


@pytest.mark.parametrize(("error", "retry"), [(None, False), (ValueError("x"), True)])
def test_has_exception_predicate_retries_on_any_exception(error: Any, retry: bool) -> None:
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
def test_exception_type_predicate_retries_on_exceptions_of_a_type(
    error: Any, kind: Any, retry: bool
) -> None:
    assert exception_type_predicate(error, kind) is retry
