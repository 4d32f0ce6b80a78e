"""Decodes Arrow arrays that Spark or a user's function created. test_encode has the arrays that opchain creates."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from opchain.common import Row
from opchain.runtime.columnar.decode import records_of, values_of
from opchain.runtime.errors import RecordSchemaError


def test_arrays_of_other_units_and_widths_are_decoded() -> None:
    at = datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert values_of(pa.array([at], pa.timestamp("ms", tz="Europe/Berlin"))) == [at]
    assert values_of(pa.array([date(2024, 1, 1)], pa.date64())) == [date(2024, 1, 1)]
    assert values_of(pa.array([timedelta(seconds=1)], pa.duration("s"))) == [timedelta(seconds=1)]
    assert values_of(pa.array([[1], None, [2, 3]], pa.large_list(pa.int8()))) == [[1], None, [2, 3]]
    assert values_of(pa.array(["a", "b", "a"]).dictionary_encode()) == ["a", "b", "a"]


def test_slices_of_nested_arrays_are_decoded() -> None:
    lists = pa.array([[{"a": 1}], None, [{"a": 2}, None]])
    assert values_of(lists.slice(1)) == [None, [Row(a=2), None]]
    maps = pa.array([[("k", 1)], [("l", 2)]], pa.map_(pa.string(), pa.int64()))
    assert values_of(maps.slice(1)) == [{"l": 2}]


def test_decoded_rows_are_independent_of_each_other() -> None:
    first, second = records_of(pa.record_batch([pa.array([1, 2])], names=["n"]))
    first["n"] = 9
    first.set_field_names(["m"])
    assert (first, second) == (Row(m=9), Row(n=2))


@pytest.mark.parametrize(
    "array",
    [pa.array([10**7], pa.int32()).view(pa.date32()), pa.array([2**62]).view(pa.timestamp("us"))],
)
def test_years_outside_of_pythons_range_are_an_error(array: pa.Array) -> None:
    with pytest.raises(RecordSchemaError, match=r"column 'at' .* from the year 1 to the year 9999"):
        records_of(pa.record_batch([array], names=["at"]))
