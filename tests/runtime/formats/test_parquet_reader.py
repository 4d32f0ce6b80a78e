from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from file_records import read, read_ranges, source_of, write_file
from format_values import NESTED, SCALARS, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.common import Row, Types
from opchain.runtime.formats import parquet
from opchain.runtime.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

if TYPE_CHECKING:
    from pathlib import Path

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ROW_TYPE, ROWS = rows({**SCALARS, **NESTED})
TWO = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=20,
)
@given(records=ROWS, cuts=st.sets(st.integers(0, 9000)), rows_per_group=st.integers(1, 4))
def test_rows_are_read_once_for_any_split_of_the_file(
    tmp_path: Path, records: list[Row], cuts: set[int], rows_per_group: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROWS_PER_GROUP", rows_per_group)
        writes = ParquetBulkWriters.for_row_type(ROW_TYPE)
        path = tmp_path / "file"
        with path.open("wb") as stream:
            writer = writes.create(stream)
            for record in records:
                writer.add_element(record)
            writer.finish()
    assert pq.read_metadata(path).num_row_groups == -(-len(records) // rows_per_group)
    reads = ParquetColumnarRowInputFormat(ROW_TYPE, batch_size=2)
    assert read_ranges(reads, path, cuts) == records


@pytest.fixture
def file(tmp_path: Path) -> Path:
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "Name": ["a", None], "more": [1.5, 2.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def test_without_a_type_all_columns_are_read(file: Path) -> None:
    assert read(source_of(ParquetColumnarRowInputFormat(), file)) == [
        Row(id=1, Name="a", more=1.5),
        Row(id=2, Name=None, more=2.5),
    ]


@pytest.mark.parametrize(
    ("is_case_sensitive", "names"), [(True, [None, None]), (False, ["a", None])]
)
def test_columns_are_matched_by_name_and_cast(
    file: Path, is_case_sensitive: bool, names: list[Any]
) -> None:
    reads = ParquetColumnarRowInputFormat(TWO, is_case_sensitive=is_case_sensitive)
    assert read(source_of(reads, file)) == [
        Row(id=number, name=name) for number, name in enumerate(names, 1)
    ]
    assert reads.get_produced_type() == TWO


def test_columns_whose_names_differ_only_in_case_need_is_case_sensitive(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "A": [2]}), tmp_path / "a.parquet")
    of = Types.ROW_NAMED(["A"], [Types.INT()])
    reads = ParquetColumnarRowInputFormat(of, is_case_sensitive=False)
    with pytest.raises(ValueError, match="names differ in case only: a, A"):
        read(source_of(reads, tmp_path))
    assert read(source_of(ParquetColumnarRowInputFormat(of), tmp_path)) == [Row(A=2)]


def test_the_error_names_a_column_of_another_type(file: Path) -> None:
    of = Types.ROW_NAMED(["Name"], [Types.INT()])
    with pytest.raises(
        ValueError,
        match=r"column 'Name' of '.*a.parquet' is of type string, but the declared type is Int",
    ):
        read(source_of(ParquetColumnarRowInputFormat(of), file))


def test_the_error_names_the_row_that_does_not_fit_the_declared_type(tmp_path: Path) -> None:
    numbers = [*range(25), 2**40, *range(5)]
    pq.write_table(pa.table({"n": numbers}), tmp_path / "a.parquet", row_group_size=10)
    of = Types.ROW_NAMED(["n"], [Types.INT()])
    with pytest.raises(
        ValueError,
        match=r"column 'n' of '.*a.parquet' is of type int64, .* Integer at row 25 \(counted from 0\): .*1099511627776",
    ):
        read(source_of(ParquetColumnarRowInputFormat(of, batch_size=4), tmp_path))


def test_a_missing_column_is_null_with_a_warning(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    of = Types.ROW_NAMED(["Nmae"], [Types.STRING()])
    with caplog.at_level(logging.WARNING, "opchain.files"):
        rows = read(source_of(ParquetColumnarRowInputFormat(of), file))
    assert {row["Nmae"] for row in rows} == {None}
    assert (
        "has no column 'Nmae', so this field is None in its rows; the file has 'id', 'Name'"
        in caplog.text
    )


def test_a_file_without_columns_has_no_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}).select([]), tmp_path / "file")
    assert pq.read_metadata(tmp_path / "file").num_row_groups == 1
    assert read_ranges(ParquetColumnarRowInputFormat(), tmp_path / "file", {4}) == []


def test_the_error_names_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no parquet at all PAR1")
    with pytest.raises(pa.ArrowInvalid) as failed:
        read(source_of(ParquetColumnarRowInputFormat(TWO), tmp_path, malformed="skip"))
    (note,) = getattr(failed.value, "__notes__", [""])
    assert note.startswith(f"while reading '{tmp_path / 'a.parquet'}'")


def test_row_groups_are_distributed_over_subtasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 100)
    writes = ParquetBulkWriters.for_row_type(TWO)
    path = tmp_path / "file"
    with path.open("wb") as stream:
        writer = writes.create(stream)
        for first in range(0, 1000, 100):
            writer.add_batch([Row(n, f"name {n}") for n in range(first, first + 100)])
        writer.finish()
    source = source_of(ParquetColumnarRowInputFormat(TWO), path)
    shares = [
        sum(len(batch) for split in part for batch in source.read(split, 1000))
        for part in source.splits(3)
    ]
    assert sum(shares) == 1000
    assert min(shares) >= 200


def test_unsupported_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="ParquetColumnarRowInputFormat got Integer"):
        ParquetColumnarRowInputFormat(Types.INT())
    assert ParquetColumnarRowInputFormat(TWO).can_be_cut("a")
    assert write_file(tmp_path, ParquetBulkWriters.for_row_type(TWO), []).exists()


@pytest.mark.parametrize(
    ("kind", "of", "value"),
    [
        (Types.SQL_DATE(), pa.date32(), 5_000_000),
        (Types.SQL_TIMESTAMP(), pa.timestamp("us"), 10**18),
    ],
)
@pytest.mark.parametrize("others", [[], [None]])
def test_a_date_outside_of_pythons_range_is_an_error(
    tmp_path: Path, kind: Any, of: Any, value: int, others: list[None]
) -> None:
    pq.write_table(pa.table({"a": pa.array([value, *others], of)}), tmp_path / "file")
    reads = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["a"], [kind]))
    with pytest.raises(ValueError, match="outside of the years 1 to 9999"):
        read(source_of(reads, tmp_path / "file"))


@pytest.mark.parametrize("is_declared", [False, True])
def test_nanoseconds_are_truncated_at_any_depth(tmp_path: Path, is_declared: bool) -> None:
    moment, nanos = datetime(1970, 1, 1, 0, 0, 1, 234567), 1_234_567_891  # noqa: DTZ001 - without zone
    stamp = pa.timestamp("ns")
    columns = {
        "list": pa.array([[nanos]], pa.list_(stamp)),
        "row": pa.array([{"x": nanos}], pa.struct([("x", stamp)])),
        "map": pa.array([[("k", nanos)]], pa.map_(pa.string(), stamp)),
        "time": pa.array([nanos], pa.time64("ns")),
    }
    pq.write_table(pa.table(columns), tmp_path / "file")
    of = Types.SQL_TIMESTAMP()
    kinds = [Types.LIST(of), Types.ROW_NAMED(["x"], [of]), Types.MAP(Types.STRING(), of)]
    row_type = Types.ROW_NAMED([*columns], [*kinds, Types.SQL_TIME()])
    reads = ParquetColumnarRowInputFormat(row_type if is_declared else None)
    (row,) = read(source_of(reads, tmp_path / "file"))
    assert row["list"] == [moment]
    assert type(row["list"][0]) is datetime
    assert row["row"] == (Row(x=moment) if is_declared else {"x": moment})
    assert dict(row["map"]) == {"k": moment}
    assert row["time"] == moment.time()
