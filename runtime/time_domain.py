"""Which clock a timer follows."""

from __future__ import annotations

from enum import Enum


class TimeDomain(Enum):
    """Event time follows the watermark, processing time the clock of the machine."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
