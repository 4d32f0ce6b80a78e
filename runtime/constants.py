"""Bounds of Flink's 64-bit timestamps, and the name of the main output."""

from __future__ import annotations

MAX_LONG_VALUE = 2**63 - 1
"""The timestamp of the last watermark: nothing comes after it."""

MIN_LONG_VALUE = -(2**63)
"""The timestamp of a record that has none, and the watermark before any other."""

DEFAULT_OUTPUT_TAG = ""
"""The tag of the main output, beside the tags of side outputs."""
