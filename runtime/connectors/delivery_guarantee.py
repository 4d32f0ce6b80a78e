"""What a sink promises when a job fails and starts again."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """How often a record may reach the outside. Flink: DeliveryGuarantee."""

    EXACTLY_ONCE = 0
    """Once, also over failures."""
    AT_LEAST_ONCE = 1
    """At least once: records may come again after a failure."""
    NONE = 2
    """Records may come again, or be lost, after a failure."""
