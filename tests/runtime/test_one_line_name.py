from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.errors import one_line_name


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("words -> pair", "words -> pair"),
        ("a\r\nb", "a  b"),
        ("\x00", " "),
        ("\ud800\u2028\x85", "   "),
        ("größe 𝄞", "größe 𝄞"),
        ("x" * 81, "x" * 77 + "..."),
    ],
)
def test_one_line_name_replaces_unprintable_characters_and_line_ends(text: str, line: str) -> None:
    assert one_line_name(text) == line


@given(st.text(st.characters()))
def test_the_result_is_encodable_and_has_one_line(text: str) -> None:
    line = one_line_name(text, 20)
    line.encode()
    assert len(line.splitlines()) <= 1
    assert len(line) <= 20
