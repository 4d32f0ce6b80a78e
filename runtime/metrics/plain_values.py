"""Values of metrics as JSON knows them."""

from __future__ import annotations

import math
from typing import Any


def plain_values(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers, texts, lists, and dicts of these."""
    return {name: plain_value(value) for name, value in values.items()}


def plain_value(value: Any) -> Any:
    """One value; those that are several numbers say it themselves. NaN is None, which JSON has."""
    as_plain = getattr(value, "as_plain", None)
    if as_plain is not None:
        return as_plain()
    return None if isinstance(value, float) and not math.isfinite(value) else value
