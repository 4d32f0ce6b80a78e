"""How a job treats its input: as a stream, or as a whole."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """Chosen with `set_runtime_mode` or the key `execution.runtime-mode`."""

    STREAMING = 0
    """Every update is emitted as it comes."""
    BATCH = 1
    """Only final results are emitted; all sources must be bounded."""
    AUTOMATIC = 2
    """BATCH if all sources are bounded, else STREAMING."""
