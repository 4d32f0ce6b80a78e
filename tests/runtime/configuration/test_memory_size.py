"""MemorySize; the expected values were printed by Flink 2.3."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.configuration.options import MemorySize

PARSED = {
    "64 mb": (67_108_864, "64 mb"),
    "64m": (67_108_864, "64 mb"),
    "64 M": (67_108_864, "64 mb"),
    "1024": (1_024, "1 kb"),
    "1 kibibytes": (1_024, "1 kb"),
    "1536": (1_536, "1536 bytes"),
    "2gb": (2_147_483_648, "2 gb"),
    "1025 gb": (1_100_585_369_600, "1025 gb"),
    "1 t": (1_099_511_627_776, "1099511627776 bytes"),
    "3 bytes": (3, "3 bytes"),
    "0 b": (0, "0 bytes"),
}


@pytest.mark.parametrize(("text", "expected"), PARSED.items(), ids=PARSED)
def test_a_size_is_parsed_and_printed_as_in_flink(text: str, expected: tuple[int, str]) -> None:
    size = MemorySize.parse(text)
    assert (size.get_bytes(), str(size)) == expected


@pytest.mark.parametrize("text", ["", "mb", "-1 mb", "1.5 gb", "1 pb", "64 kib"])
def test_a_text_that_flink_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a memory size"):
        MemorySize.parse(text)


def test_a_size_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be 0 to 2\*\*63 - 1"):
        MemorySize.parse("9999999999999 tb")


def test_conversions_to_larger_units_round_down() -> None:
    size = MemorySize(2**40 + 2**30 - 1)
    assert size.get_tebi_bytes() == 1
    assert size.get_gibi_bytes() == 1024
    assert size.get_mebi_bytes() == 2**20 + 1023
    assert size.get_kibi_bytes() == 2**30 + 2**20 - 1


def test_sizes_are_compared_and_hashed_by_value() -> None:
    assert MemorySize.of_mebi_bytes(1) == MemorySize(bytes_size=1_048_576)
    assert MemorySize(1) < MemorySize(2)
    assert len({MemorySize(1), MemorySize(1)}) == 1
    assert repr(MemorySize.of_mebi_bytes(64)) == "MemorySize(64 mb)"
    assert pickle.loads(pickle.dumps(MemorySize(5))) == MemorySize(5)


@pytest.mark.parametrize("value", ["64 mb", 1.5, True])
def test_a_size_requires_a_whole_number(value: object) -> None:
    with pytest.raises(TypeError, match="takes a whole number"):
        MemorySize.of_mebi_bytes(value)  # type: ignore[arg-type]


@given(st.integers(0, 2**63 - 1))
def test_a_printed_size_is_parsed_back(size: int) -> None:
    assert MemorySize.parse(str(MemorySize(size))) == MemorySize(size)
