from __future__ import annotations

import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from file_records import write

from opchain.common import Configuration, Row, Types
from opchain.runtime.errors import MissingLibraryError, UnsupportedFeatureError
from opchain.runtime.formats.parquet import ParquetBulkWriters

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
TWO = Types.ROW_NAMED(["id", "at"], [Types.INT(), Types.SQL_TIMESTAMP()])
AT = datetime(2024, 5, 6, 7, 8, 9)  # noqa: DTZ001 - without a zone


@pytest.mark.parametrize(
    ("option", "codec"),
    [(None, "SNAPPY"), ("uncompressed", "UNCOMPRESSED"), ("ZSTD", "ZSTD"), ("GZIP", "GZIP")],
)
def test_the_compression_setting_is_used(tmp_path: Path, option: str | None, codec: str) -> None:
    config = Configuration()
    if option is not None:
        config.set_string("parquet.compression", option)
    path = write(tmp_path, ParquetBulkWriters.for_row_type(TWO, config), [Row(1, AT), (2, None)])
    assert pq.read_metadata(path).row_group(0).column(0).compression == codec
    assert pq.read_table(path).to_pylist() == [{"id": 1, "at": AT}, {"id": 2, "at": None}]


def test_datetimes_are_written_in_utc_on_request(tmp_path: Path) -> None:
    path = write(tmp_path, ParquetBulkWriters.for_row_type(TWO, utc_timestamp=True), [Row(1, AT)])
    (row,) = pq.read_table(path).to_pylist()
    assert row["at"] == AT.replace(tzinfo=timezone.utc)


def test_options_without_an_effect_are_refused() -> None:
    config = Configuration().set_string("parquet.page.size", "1")
    with pytest.raises(UnsupportedFeatureError, match=r"has no option 'parquet\.page\.size'"):
        ParquetBulkWriters.for_row_type(TWO, config)
    config = Configuration().set_string("parquet.compression", "LZO")
    with pytest.raises(ValueError, match="is 'LZO'; it must be one of UNCOMPRESSED, SNAPPY"):
        ParquetBulkWriters.for_row_type(TWO, config)


def test_a_row_with_another_number_of_fields_is_refused(tmp_path: Path) -> None:
    wrong: list[Any] = [Row(1, 2, 3)]
    with pytest.raises(ValueError, match="has 3 fields, but rows of this file have 2: id, at"):
        write(tmp_path, ParquetBulkWriters.for_row_type(TWO), wrong)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_missing_library_is_named_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'opchain\[files\]'"):
        write(tmp_path, ParquetBulkWriters.for_row_type(TWO), [Row(1, None)])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
