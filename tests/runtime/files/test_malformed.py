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


def test_failing_names_the_place_the_text_and_what_to_do() -> None:
    with pytest.raises(
        MalformedRecordError,
        match=r"^'a.csv', line 7: 'x{76}\.\.\. is malformed \(it has 1 fields\); correct it, or .*on_malf",
    ):
        MalformedRecords().take(RECORD, ValueError())


def test_what_is_skipped_is_counted() -> None:
    reader = Reader()
    MalformedRecords("skip", reader).take(RECORD, ValueError())
    MalformedRecords("skip", reader).take(RECORD, ValueError(), 4)
    assert (reader.errors, reader.emitted) == (5, [])


def test_a_side_output_gets_the_record() -> None:
    reader = Reader()
    MalformedRecords(TAG, reader).take(RECORD, ValueError())
    assert (reader.errors, reader.emitted) == (1, [("bad", RECORD)])


def test_without_a_task_nothing_is_told() -> None:
    MalformedRecords("skip").take(RECORD, ValueError())


@pytest.mark.parametrize("policy", ["fail", "skip", TAG])
def test_policies(policy: Any) -> None:
    assert checked_policy(policy) == policy


def test_other_policies_are_refused() -> None:
    with pytest.raises(
        ValueError, match="on_malformed got 'ignore'; it takes 'fail', 'skip' or an"
    ):
        checked_policy("ignore")
