from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from file_records import Reader, read, read_ranges, source_of, write, write_file
from format_values import NESTED, SCALARS, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.common import Row, Types
from opchain.runtime.files.malformed import MalformedRecordError
from opchain.runtime.formats.json_lines import JsonLinesEncoder, JsonReaderFormat, json_decoder
from opchain.table import DataTypes

if TYPE_CHECKING:
    from pathlib import Path

ROW_TYPE, ROWS = rows({**SCALARS, **NESTED})


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=20,
)
@given(records=ROWS, cuts=st.sets(st.integers(0, 2000)))
def test_rows_are_read_once_for_any_split_of_the_file(
    tmp_path: Path, records: list[Row], cuts: set[int]
) -> None:
    path = write_file(tmp_path, JsonLinesEncoder(ROW_TYPE), records)
    assert read_ranges(JsonReaderFormat.for_type(ROW_TYPE), path, cuts, 3) == records


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@pytest.mark.parametrize("has_msgspec", [True, False])
def test_without_a_type_records_are_those_of_json_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_msgspec: bool
) -> None:
    if not has_msgspec:
        monkeypatch.setitem(sys.modules, "msgspec", None)
    records = [{"a": [1, 2.5, "ä\n", None]}, [], "x", 12345678901234567890123, True]
    path = write(tmp_path, JsonLinesEncoder(), records)
    assert read(source_of(JsonReaderFormat.for_type(), path), 2) == records


def test_a_line_that_is_null_is_not_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\nnull\n{\n\n{"id": 2}\nnull\nnull\n')
    lines = JsonReaderFormat.for_type(Types.ROW_NAMED(["id"], [Types.INT()]))
    for batch_size in (1, 2, 9):
        found = read(source_of(lines, tmp_path, malformed="skip"), batch_size=batch_size)
        assert found == [Row(id=1), Row(id=2)]
    with pytest.raises(MalformedRecordError, match=r"byte 10: 'null' .*null is not a JSON object"):
        read(source_of(lines, tmp_path), batch_size=2)


@settings(max_examples=40)
@given(st.lists(VALUES, max_size=5))
def test_msgspec_and_json_give_the_same_records(values: list[Any]) -> None:
    lines = [json.dumps(value) for value in values]
    quick = json_decoder(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "msgspec", None)
        plain = json_decoder(None)
    assert repr(quick(lines)) == repr(plain(lines))


@pytest.mark.parametrize(
    "line", ["{", "1,2", "[1", "1 2", "{} {}", "{'a': 1}", "nul", '"\\x"', "[" * 100_000]
)
@pytest.mark.parametrize("has_msgspec", [True, False])
def test_text_that_is_not_json_is_malformed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_msgspec: bool, line: str
) -> None:
    if not has_msgspec:
        monkeypatch.setitem(sys.modules, "msgspec", None)
    (tmp_path / "a.json").write_text(f"[1]\n{line}\n\n  [2] \n[3\n4]\n")
    source = source_of(JsonReaderFormat.for_type(), tmp_path, malformed="skip")
    reader = Reader()
    source.open(reader)
    assert read(source) == [[1], [2]]
    assert reader.errors == 3
    with pytest.raises(MalformedRecordError, match=r"a\.json', byte 4: "):
        read(source_of(JsonReaderFormat.for_type(), tmp_path))


def test_a_missing_field_is_null_or_malformed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "more": 5}\n')
    lines = JsonReaderFormat.for_type(
        DataTypes.ROW(
            [
                DataTypes.FIELD("id", DataTypes.INT()),
                DataTypes.FIELD("name", DataTypes.STRING()),
            ]
        )
    )
    assert read(source_of(lines, tmp_path)) == [Row(id=1, name=None)]
    with pytest.raises(MalformedRecordError, match="there is no field 'name'"):
        read(source_of(lines.fail_on_missing_field(), tmp_path))


def test_records_have_the_declared_type() -> None:
    assert JsonReaderFormat.for_type(ROW_TYPE).get_produced_type() == ROW_TYPE
    assert JsonReaderFormat.for_type().get_produced_type() is None
    wrong: Any = "id INT"
    with pytest.raises(TypeError, match=r"JsonReaderFormat\.for_type got 'id INT'"):
        JsonReaderFormat.for_type(wrong)
    with pytest.raises(TypeError, match="JsonLinesEncoder got 'id INT'"):
        JsonLinesEncoder(wrong)


def test_nested_decimals_are_exact(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"m": {"a": 0.1000}, "l": [0.20], "d": 1.5}\n')
    of = Types.ROW_NAMED(
        ["m", "l", "d"],
        [
            Types.MAP(Types.STRING(), Types.BIG_DEC()),
            Types.LIST(Types.BIG_DEC()),
            Types.DOUBLE(),
        ],
    )
    (row,) = read(source_of(JsonReaderFormat.for_type(of), tmp_path))
    assert (str(row["m"]["a"]), str(row["l"][0]), row["d"]) == ("0.1000", "0.20", 1.5)
