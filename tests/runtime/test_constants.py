from __future__ import annotations

from opchain.common.constants import DEFAULT_OUTPUT_TAG, MAX_LONG_VALUE, MIN_LONG_VALUE


def test_the_bounds_are_those_of_long_in_java() -> None:
    assert MAX_LONG_VALUE == 9223372036854775807
    assert MIN_LONG_VALUE == -9223372036854775808


def test_the_tag_of_the_main_output_is_empty() -> None:
    assert DEFAULT_OUTPUT_TAG == ""
