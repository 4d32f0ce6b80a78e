"""Ready-made predicates for retry strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sized


def empty_result_predicate(result: Sized | None) -> bool:
    """Asks for another attempt when nothing came back."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Asks for another attempt after any exception."""
    return error is not None


def exception_type_predicate(
    error: BaseException | None,
    expected_error_type: type[BaseException] | tuple[type[BaseException], ...],
) -> bool:
    """Asks for another attempt after some exceptions; bind the second argument to use it.

    >>> from functools import partial
    >>> retry_on = partial(exception_type_predicate, expected_error_type=ConnectionError)
    >>> retry_on(ConnectionResetError()), retry_on(ValueError())
    (True, False)
    """
    return isinstance(error, expected_error_type)
