from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Row, Types
from opchain.runtime.state.keys.java_hash import java_hash_code
from opchain.runtime.state.keys.key_hashers import hasher_of_type


@pytest.mark.parametrize(
    ("key_type", "key", "code"),
    [
        (Types.INT(), -1, -1),
        (Types.LONG(), -1, 0),
        (Types.SHORT(), -7, -7),
        (Types.CHAR(), "a", 97),
        (Types.STRING(), "ab", 31 * 97 + 98),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", -1), 31 * 97 - 1),
        (Types.LIST(Types.INT()), [-1, -1], 31 * (31 - 1) - 1),
        (Types.TUPLE([Types.PICKLED_BYTE_ARRAY(), Types.INT()]), (-1, -1), -1),
    ],
)
def test_the_declared_type_decides_about_the_hash_code(key_type: Any, key: Any, code: int) -> None:
    hasher = hasher_of_type(key_type)
    assert hasher is not None
    assert hasher(key) == code


@pytest.mark.parametrize("key_type", [None, Types.PICKLED_BYTE_ARRAY()])
def test_without_a_declared_type_the_value_decides(key_type: Any) -> None:
    assert hasher_of_type(key_type) is None


def test_a_row_type_is_hashed_field_by_field() -> None:
    hasher = hasher_of_type(Types.ROW([Types.LONG(), Types.STRING()]))
    assert hasher is not None
    assert hasher(Row(5, "x")) == java_hash_code(Row(5, "x"))
