from __future__ import annotations

from typing import Any

import pytest
from file_records import Reader

from opchain.common import Types
from opchain.datastream import OutputTag
from opchain.runtime.files.malformed import (
    MalformedRecord,
    MalformedRecordError,
    MalformedRecords,
    checked_policy,
)

RECORD = MalformedRecord("a.csv", "line 7", "x" * 100, "it has 1 fields")
TAG = OutputTag("bad", Types.PICKLED_BYTE_ARRAY())


def test_the_fail_policy_names_place_text_and_remedy() -> None:
    with pytest.raises(
        MalformedRecordError,
        match=r"^'a.csv', line 7: 'x{76}\.\.\. is malformed \(it has 1 fields\); correct it, or .*on_malf",
    ):
        MalformedRecords().take(RECORD, ValueError())


def test_the_skip_policy_counts_skipped_records() -> None:
    reader = Reader()
    MalformedRecords("skip", reader).take(RECORD, ValueError())
    MalformedRecords("skip", reader).take(RECORD, ValueError(), 4)
    assert (reader.errors, reader.emitted) == (5, [])


def test_an_output_tag_sends_the_record_to_its_side_output() -> None:
    reader = Reader()
    MalformedRecords(TAG, reader).take(RECORD, ValueError())
    assert (reader.errors, reader.emitted) == (1, [("bad", RECORD)])


def test_the_skip_policy_works_without_a_task() -> None:
    MalformedRecords("skip").take(RECORD, ValueError())


@pytest.mark.parametrize("policy", ["fail", "skip", TAG])
def test_valid_policies_are_accepted(policy: Any) -> None:
    assert checked_policy(policy) == policy


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(
        ValueError, match="on_malformed got 'ignore'; it takes 'fail', 'skip' or an"
    ):
        checked_policy("ignore")
