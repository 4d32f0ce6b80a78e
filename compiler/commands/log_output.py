"""What opchain logs, on standard error: nothing below warnings, unless the user asks for it."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = (logging.INFO, logging.DEBUG)
"""By how often `-v` was said."""


@contextmanager
def logging_to_stderr(verbosity: int) -> Iterator[None]:
    """Within the block the loggers `opchain.*` write to standard error; 0 leaves all as it is.

    They write there alone: a program that configures logging would show each line twice.
    """
    if not verbosity:
        yield
        return
    logger = logging.getLogger("opchain")
    before = logger.level, logger.propagate
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s.%(msecs)03d %(name)s: %(message)s", "%H:%M:%S")
    )
    logger.addHandler(handler)
    logger.setLevel(LEVELS[min(verbosity, len(LEVELS)) - 1])
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
