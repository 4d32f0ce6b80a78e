from __future__ import annotations

import pickle

import pytest

from opchain.runtime.connectors.file_buckets import BucketAssigner

EVENING = 1_767_225_599_999  # 2025-12-31 23:59:59.999 in UTC


@pytest.mark.parametrize(
    ("format_str", "zone", "folder"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2025-12-31--23"),
        ("yyyy-MM-dd--HH", "Europe/Berlin", "2026-01-01--00"),
        ("yyyy/M/d", "UTC", "2025/12/31"),
        ("yy.MM.dd 'at' HH:mm:ss", "UTC", "25.12.31 at 23:59:59"),
        ("'day='dd''", "UTC", "day=31'"),
        ("uuuuu", "UTC", "02025"),
        ("yyyy-MMM", "UTC", "2025-Dec"),
        ("d MMMM", "UTC", "31 December"),
        ("HH' o''clock'", "UTC", "23 o'clock"),
        ("'[#]'dd", "UTC", "[#]31"),
    ],
)
def test_a_bucket_folder_is_the_time_in_javas_format(
    format_str: str, zone: str, folder: str
) -> None:
    buckets = BucketAssigner.date_time_bucket_assigner(format_str, zone)
    travelled: BucketAssigner = pickle.loads(pickle.dumps(buckets))
    assert travelled.get_bucket_id("any", 0, EVENING) == folder


def test_the_bucket_changes_with_the_time() -> None:
    buckets = BucketAssigner.date_time_bucket_assigner("HH", "UTC")
    hours = [buckets.get_bucket_id("any", None, EVENING + ms) for ms in (0, 1, 3_600_001)]
    assert hours == ["23", "00", "01"]


def test_base_path_bucket_assigner_writes_all_records_to_one_folder() -> None:
    assert BucketAssigner.base_path_bucket_assigner().get_bucket_id("any", 0, EVENING) == ""


@pytest.mark.parametrize(
    ("format_str", "message"),
    [("yyyy-EEE", "has the letter 'E'"), ("yyyy'x", "has a quote that is not closed")],
)
def test_an_unknown_pattern_letter_is_refused_at_once(format_str: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BucketAssigner.date_time_bucket_assigner(format_str)


def test_an_unknown_time_zone_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="unknown time zone 'Mars/Olympus'"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Olympus")


@pytest.mark.parametrize("format_str", ["yyyy-MMMMM", "ddd", "HHH"])
def test_a_number_of_letters_that_java_does_not_format_as_a_number_is_refused(
    format_str: str,
) -> None:
    with pytest.raises(ValueError, match="the letter may occur once or twice"):
        BucketAssigner.date_time_bucket_assigner(format_str)


@pytest.mark.parametrize("format_str", ["yyyy[-MM]", "dd#", "{dd}"])
def test_characters_that_java_reserves_are_refused(format_str: str) -> None:
    with pytest.raises(ValueError, match="outside of quotes"):
        BucketAssigner.date_time_bucket_assigner(format_str)
