"""Retries after a lost connection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opchain.runtime.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.types.type_variables import T

_RETRY_AFTER_S = 1.0


def retried(
    action: Callable[[], T],
    lost: type[Exception],
    prepare: Callable[[], None],
    retries: int,
    where: str,
) -> T:
    """Runs a function, and retries it after a lost connection: at first immediately, then after increasing pauses.

    Args:
        action: The function.
        lost: The exception of a lost connection.
        prepare: Called before each retry.
        retries: The maximum number of retries.
        where: The operator, for errors.

    Raises:
        SinkError: The last attempt failed.
    """
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(_RETRY_AFTER_S * (attempt - 1))
            prepare()
        try:
            return action()
        except lost as error:
            failure = error
    raise SinkError(
        f"{where}: all {retries + 1} attempts at its database failed; the last error is: "
        f"{' '.join(str(failure).split())}"
    ) from failure
