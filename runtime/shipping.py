"""Functions and records as bytes for other processes."""

from __future__ import annotations

import pickle
from typing import Any


def ship(value: Any) -> bytes:
    """Pickles a value by cloudpickle, so that lambdas and functions of `__main__` travel too."""
    import cloudpickle  # noqa: PLC0415 - only the driver ships, and only it needs the package

    return bytes(cloudpickle.dumps(value, protocol=5))


def unship(data: bytes) -> Any:
    """The value again; needs only the standard library and what the value names."""
    return pickle.loads(data)
