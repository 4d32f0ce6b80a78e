"""Patterns of dates, as DATE_FORMAT, TO_TIMESTAMP and TO_DATE of Flink 2.3 read them."""

from __future__ import annotations

from datetime import datetime

import pytest

from opchain.runtime.functions.date_patterns import date_pattern

TIME = datetime(2024, 1, 2, 15, 4, 5, 678000)  # noqa: DTZ001 - TIMESTAMP has no zone


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yy/M/d H", "24/1/2 15"),
        ("hh:mm a", "03:04 PM"),
        ("EEE, d MMM yyyy", "Tue, 2 Jan 2024"),
        ("EEEE d MMMM", "Tuesday 2 January"),
        ("yyyyMMddHHmmss", "20240102150405"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-01-02T15:04:05.678"),
        ("SSSSSS|S", "678000|6"),
        ("D|DDD", "2|002"),
        ("''yyyy'a''b'", "'2024a'b"),
    ],
)
def test_timestamps_are_formatted(pattern: str, text: str) -> None:
    assert date_pattern(pattern).format(TIME) == text


@pytest.mark.parametrize(
    ("text", "pattern", "parts"),
    [
        ("2024/01/02", "yyyy/M/d", (2024, 1, 2)),
        ("2024-1-2", "yyyy-MM-dd", (2024, 1, 2)),
        ("20240102150405", "yyyyMMddHHmmss", (2024, 1, 2, 15, 4, 5)),
        ("02 Jan 2024", "dd MMM yyyy", (2024, 1, 2)),
        ("02.01.24", "dd.MM.yy", (2024, 1, 2)),
        ("2024-01-02 03:04 PM", "yyyy-MM-dd hh:mm a", (2024, 1, 2, 15, 4)),
        ("2024-01-02 12:04 AM", "yyyy-MM-dd hh:mm a", (2024, 1, 2, 0, 4)),
        ("2024-02-30", "yyyy-MM-dd", (2024, 2, 29)),
        ("3.5", "s.SSS", (1970, 1, 1, 0, 0, 3, 500000)),
    ],
)
def test_texts_are_parsed(text: str, pattern: str, parts: tuple[int, ...]) -> None:
    assert date_pattern(pattern).parse(text) == datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("2024-13-01", "yyyy-MM-dd"),
        ("2024-01-32", "yyyy-MM-dd"),
        ("2024-01-02 25:00", "yyyy-MM-dd HH:mm"),
        ("2024-01-02x", "yyyy-MM-dd"),
        ("", "yyyy"),
    ],
)
def test_texts_that_do_not_match_are_errors(text: str, pattern: str) -> None:
    with pytest.raises(ValueError, match=r"must be in|does not match|day"):
        date_pattern(pattern).parse(text)


@pytest.mark.parametrize(("pattern", "found"), [("yyyy-ww", "letter 'w'"), ("'a", "quote")])
def test_unknown_pattern_letters_are_refused(pattern: str, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        date_pattern(pattern)
