from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.connectors.collection import CollectionSource


@given(st.lists(st.integers()), st.integers(1, 10), st.integers(1, 5))
def test_all_records_are_read_once_and_in_order(
    records: list[int], parallelism: int, batch_size: int
) -> None:
    source = CollectionSource(records)
    splits = source.splits(parallelism)
    batches = [
        batch for part in splits for split in part for batch in source.read(split, batch_size)
    ]
    assert [record for batch in batches for record in batch] == records
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    assert len(splits) == parallelism


def test_later_changes_of_the_list_do_not_change_the_source() -> None:
    records = [1, 2]
    source = CollectionSource(records)
    records.append(3)
    assert source.records == [1, 2]
    assert repr(source) == "CollectionSource of 2 records"
    assert source.is_bounded


def test_records_are_copies_that_share_nothing_with_the_program() -> None:
    shared = [1]
    records = CollectionSource([shared, shared, (2, shared)]).records
    shared.append(2)
    records[0].append(3)  # type: ignore[union-attr]
    assert records == [[1, 3], [1], (2, [1])]
