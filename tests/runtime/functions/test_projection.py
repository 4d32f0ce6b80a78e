from __future__ import annotations

import pickle

import pytest

from opchain.runtime.functions.key_selectors import Projection
from opchain.runtime.types.row import Row


@pytest.mark.parametrize(
    ("indexes", "expected"), [((1,), ("b",)), ((2, 0), ("c", "a")), ((0, 0), ("a", "a"))]
)
def test_fields_are_returned_as_a_tuple_in_the_given_order(
    indexes: tuple[int, ...], expected: tuple[str, ...]
) -> None:
    projection: Projection = pickle.loads(pickle.dumps(Projection(indexes)))
    for record in (("a", "b", "c"), ["a", "b", "c"], Row("a", "b", "c")):
        assert projection.map(record) == expected
    assert repr(projection) == f"Projection{indexes}"


def test_a_record_without_the_field_fails() -> None:
    with pytest.raises(IndexError):
        Projection((0, 3)).map(("a", "b"))
