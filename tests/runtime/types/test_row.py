from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.row import Row, RowKind


def test_values_are_read_by_position_name_and_attribute() -> None:
    row = Row(name="Alice", age=11)
    assert (row[0], row["name"], row.name) == ("Alice", "Alice", "Alice")
    assert row[-1] == 11
    assert row[:1] == ["Alice"]
    assert list(row) == ["Alice", 11]
    assert len(row) == 2


def test_values_are_changed_by_position_and_name() -> None:
    row = Row(name="Alice", age=11)
    row["age"] = 12
    row[0] = "Bob"
    assert row == Row(name="Bob", age=12)
    unnamed = Row(1, 2, 3)
    unnamed[1:] = [5, 6]
    assert unnamed == Row(1, 5, 6)


def test_attributes_cannot_be_set() -> None:
    row = Row(name="Alice")
    for name in ("name", "other"):
        with pytest.raises(AttributeError, match=name):
            setattr(row, name, "Bob")
    assert row.name == "Alice"


def test_in_checks_names_or_in_an_unnamed_row_values() -> None:
    assert "name" in Row(name="Alice")
    assert "Alice" not in Row(name="Alice")
    assert "Alice" in Row("Alice")


MISSING: list[tuple[Row, Any, type[Exception], str]] = [
    (Row(a=1), lambda row: row["x"], ValueError, "'x' is not among the fields 'a'"),
    (Row(a=1), lambda row: row.x, AttributeError, "no attribute or field 'x'"),
    (Row(a=1), lambda row: row[1], IndexError, "out of range"),
    (Row(1), lambda row: row["x"], KeyError, "has no field names"),
    (Row(1), lambda row: row.x, AttributeError, "no attribute or field 'x'"),
    (Row(a=1), lambda row: row.__setitem__("x", 1), ValueError, "not among the fields"),
    (Row(1), lambda row: row.__setitem__("x", 1), KeyError, "has no field names"),
    (Row(a=1), lambda row: row._a, AttributeError, "_a"),
]


@pytest.mark.parametrize(("row", "use", "error", "text"), MISSING)
def test_a_missing_position_or_name_is_an_error(
    row: Row, use: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        use(row)


def test_a_row_of_names_creates_rows_when_called() -> None:
    person = Row("name", "age")
    assert repr(person) == "<Row('name', 'age')>"
    assert person("Alice", 11) == Row(name="Alice", age=11)
    assert repr(person("Alice")) == "Row(name='Alice')"
    with pytest.raises(ValueError, match="has 2 values, got 3"):
        person(1, 2, 3)


def test_values_may_be_given_with_or_without_names() -> None:
    with pytest.raises(ValueError, match="not both: got 1 values and the names a, b"):
        Row(1, a=1, b=2)


def test_any_name_can_be_a_field() -> None:
    row = Row(self=1, args=2, _values=3)
    assert row.as_dict() == {"self": 1, "args": 2, "_values": 3}
    assert (row.self, row["_values"]) == (1, 3)


def test_as_dict_converts_nested_rows_lists_and_dicts() -> None:
    row = Row(key=1, value=Row(a=2), rows=[Row(a=3)], map={"k": Row(a=4)}, plain=(5,))
    assert row.as_dict()["value"] == Row(a=2)
    assert row.as_dict(recursive=True) == {
        "key": 1,
        "value": {"a": 2},
        "rows": [{"a": 3}],
        "map": {"k": {"a": 4}},
        "plain": (5,),
    }


def test_as_dict_of_a_row_without_names_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"<Row\(1\)> has no field names"):
        Row(1).as_dict()


def test_get_fields_by_names_selects_fields() -> None:
    row = Row(a=1, b=2, c=3)
    assert row.get_fields_by_names(["c", "a"]) == [3, 1]
    assert row.get_fields_by_names(["a", "b", "c"]) == [1, 2, 3]
    assert Row(1, 2).get_fields_by_names(["x"]) == [1, 2]
    with pytest.raises(ValueError, match="a row has no 'x', 'y'; its fields are 'a', 'b', 'c'"):
        row.get_fields_by_names(["x", "a", "y"])


def test_get_fields_by_names_returns_a_copy() -> None:
    row = Row(a=1)
    row.get_fields_by_names(["a"])[0] = 5
    assert row == Row(a=1)


def test_set_field_names_sets_names_later() -> None:
    row = Row(1, 2)
    assert not row.has_field_names()
    row.set_field_names(["a", "b"])
    assert row.has_field_names()
    assert row == Row(a=1, b=2)


def test_the_row_kind_is_part_of_equality() -> None:
    row = Row.of_kind(RowKind.DELETE, a=1)
    assert row.get_row_kind() is RowKind.DELETE
    assert Row(a=1).get_row_kind() is RowKind.INSERT
    assert row != Row(a=1)
    row.set_row_kind(RowKind.INSERT)
    assert row == Row(a=1)


def test_row_kinds_have_short_names() -> None:
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert [kind.value for kind in RowKind] == [0, 1, 2, 3]
    with pytest.raises(UnsupportedFeatureError, match=r"RowKind\.to_j_row_kind\(\)"):
        RowKind.INSERT.to_j_row_kind()


EQUAL = [
    (Row(1, 2), Row(1, 2)),
    (Row(a=1, b=2), Row(b=2, a=1)),
    (Row("a", "b")(1, 2), Row(a=1, b=2)),
    (Row(), Row()),
]
UNEQUAL = [
    (Row(1), Row(2)),
    (Row(1), Row(a=1)),
    (Row(a=1), Row(b=1)),
    (Row(a=1, b=2), Row(a=2, b=1)),
    (Row(1), (1,)),
    (Row(1), Row.of_kind(RowKind.UPDATE_AFTER, 1)),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_rows_have_equal_hashes(left: Row, right: Row) -> None:
    assert left == right
    assert hash(left) == hash(right)


@pytest.mark.parametrize(("left", "right"), UNEQUAL)
def test_rows_differ_in_names_values_or_kind(left: Row, right: object) -> None:
    assert left != right


def test_a_row_of_mutable_values_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Row([]))


VALUES = st.recursive(st.integers() | st.text() | st.none(), st.lists)
ROWS = st.builds(
    lambda kind, values, names: (
        Row.of_kind(kind, *values)
        if names is None
        else Row.of_kind(kind, **dict(zip(names, values, strict=False)))
    ),
    st.sampled_from(RowKind),
    st.lists(VALUES, min_size=3, max_size=3),
    st.none() | st.permutations(["a", "b", "c"]),
)


@given(ROWS, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_rows_survive_pickling_and_copying(row: Row, protocol: int) -> None:
    for twin in (pickle.loads(pickle.dumps(row, protocol)), copy.copy(row), copy.deepcopy(row)):
        assert twin == row
        assert repr(twin) == repr(row)
        assert twin.get_row_kind() is row.get_row_kind()


def test_a_deep_copy_is_independent_and_keeps_cycles() -> None:
    row = Row(a=[1], b=None)
    row["b"] = row
    twin = copy.deepcopy(row)
    assert twin.a is not row.a
    assert twin.b is twin


def test_a_shallow_copy_shares_its_values() -> None:
    row = Row(a=[1])
    twin = copy.copy(row)
    twin["a"] = 2
    assert row == Row(a=[1])
