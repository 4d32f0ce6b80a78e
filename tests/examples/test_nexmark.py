from __future__ import annotations

import json
import pickle
import re
from typing import TYPE_CHECKING, Any

import pytest
from nexmark_expected import KINDS, WITH_LATE, expected, expected_with_late, watermarks
from nexmark_jobs import (
    as_bag,
    assert_same_rows,
    crowded,
    generated,
    rows_in,
    run,
    written,
)

from examples.nexmark import json_lines
from examples.nexmark.__main__ import main
from examples.nexmark.json_lines import event_decoder
from examples.nexmark.model import Bid
from examples.nexmark.q13 import SideInput
from examples.nexmark.source import EventSource

if TYPE_CHECKING:
    from pathlib import Path

    Events = list[dict[str, Any]]

QUERIES = [f"q{number}" for number in range(23) if number != 12]
SIDE_INPUT = {number: f"value, {number}" for number in range(0, 10_000, 3)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nexmark")
    lines = [f'{key},"{value}"\n' for key, value in SIDE_INPUT.items()]
    (folder / "side.csv").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def data(folder: Path) -> dict[str, tuple[Events, Path]]:
    """Name -> events, and where they are."""
    events = {"generated": generated(), "crowded": crowded()}
    by_file = [event for number in range(3) for event in events["crowded"][number::3]]
    return {
        "one file": (events["generated"], written(events["generated"], folder / "one.jsonl")),
        "crowded": (events["crowded"], written(events["crowded"], folder / "crowded.jsonl")),
        "several files": (by_file, written(events["crowded"], folder / "several", 3)),
    }


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    ("name", "parallelism"),
    [("one file", 2), ("crowded", 1), ("crowded", 4), ("several files", 2)],
)
@pytest.mark.parametrize("query", QUERIES)
def test_each_query_returns_the_rows_of_its_definition(
    data: dict[str, tuple[Events, Path]],
    folder: Path,
    tmp_path: Path,
    query: str,
    name: str,
    parallelism: int,
    mode: str,
) -> None:
    events, path = data[name]
    options = ["--local", "--parallelism", str(parallelism), "--mode", mode]
    if query == "q13":
        options += ["--side-input", str(folder / "side.csv")]
    rows = run(query, path, tmp_path / "out", *options)
    wanted = expected(query, events, SIDE_INPUT)
    assert wanted or name == "one file"
    assert_same_rows(query, rows, wanted)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("query", list(WITH_LATE))
def test_late_events_equal_those_of_the_definition(tmp_path: Path, query: str, seed: int) -> None:
    events = crowded(800, 25_000, seed)
    path = written(events, tmp_path / "events.jsonl")
    late = tmp_path / "late"
    options = ("--local", "--watermark", "every-event", "--late", str(late), "--parallelism", "2")
    rows = run(query, path, tmp_path / "out", *options)
    wanted, dropped = expected_with_late(query, events)
    assert dropped
    assert_same_rows(query, rows, wanted)
    assert bag_of_events(rows_in(late)) == bag_of_events(dropped)


@pytest.mark.parametrize("query", list(WITH_LATE))
def test_events_that_are_less_than_four_seconds_late_are_not_dropped(query: str) -> None:
    events = crowded()
    wanted, dropped = expected_with_late(query, events)
    assert dropped == []
    assert as_bag(wanted) == as_bag(expected(query, events, {}))


def test_watermark_after_every_event_is_seen_by_the_next_event() -> None:
    def bid_at(time: int) -> dict[str, Any]:
        return {"event_type": 2, "bid": {"dateTime": time}}

    seen = watermarks([bid_at(10_000), bid_at(9_000), bid_at(12_000), bid_at(1)])
    assert seen == [-(2**63), 6_000, 6_000, 8_000]


def test_q12_has_one_row_per_bidder_and_window_of_ten_seconds(
    tmp_path: Path, data: dict[str, tuple[Events, Path]]
) -> None:
    events, path = data["crowded"]
    rows = run("q12", path, tmp_path / "out", "--local", "--parallelism", "2")
    bids = [event["bid"]["bidder"] for event in events if event["bid"]]
    seen = set()
    for row in rows:
        assert row["starttime"] % 10_000 == 0
        assert row["endtime"] == row["starttime"] + 10_000
        assert 1 <= row["bid_count"] <= bids.count(row["bidder"])
        seen.add((row["bidder"], row["starttime"]))
    assert len(seen) == len(rows)


@pytest.mark.parametrize("missing", [("msgspec",), ("msgspec", "orjson")])
@pytest.mark.parametrize("query", ["q1", "q5", "q9"])
def test_all_json_libraries_give_the_same_rows(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    data: dict[str, tuple[Events, Path]],
    query: str,
    missing: tuple[str, ...],
) -> None:
    for library in missing:
        monkeypatch.setattr(json_lines, library, None)
    events, path = data["crowded"]
    rows = run(query, path, tmp_path / "out", "--local", "--parallelism", "2")
    assert_same_rows(query, rows, expected(query, events, SIDE_INPUT))


@pytest.mark.parametrize("style", [{"indent": None}, {"separators": (" ,\t", " : ")}])
@pytest.mark.parametrize("library", ["msgspec", "orjson", "json"])
def test_lines_may_have_any_spacing_and_order_of_fields(
    monkeypatch: pytest.MonkeyPatch, style: dict[str, Any], library: str
) -> None:
    for other in {"json": ["msgspec", "orjson"], "orjson": ["msgspec"]}.get(library, []):
        monkeypatch.setattr(json_lines, other, None)
    event = {
        "bid": {"unknown": {"price": -1}, "price": 5, "auction": 3, "extra": '"bid":'},
        "unknown": [1],
        "event_type": 2,
    }
    text = json.dumps(event, **style) + "\r\n\n" + json.dumps({"event_type": 0, "person": {}})
    first, second = event_decoder({"bid": ("price", "extra")})(text.encode())
    assert (first.bid.price, first.bid.extra, second.bid) == (5, '"bid":', None)


def test_a_line_that_is_not_an_event_is_shown_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(generated(60)[5]) + '\n{"bid": {"price": "five"}}\n')
    source = EventSource(str(path))
    source.fields["bid"] = ("price",)
    ((split,),) = pickle.loads(pickle.dumps(source)).splits(1)
    with pytest.raises(ValueError, match=r"events\.jsonl: .*five.* is not a Nexmark event"):
        list(source.read(split, 10))


def test_all_subtasks_read_the_files_that_existed_at_the_start(tmp_path: Path) -> None:
    written(generated(60), tmp_path / "events.jsonl")
    source = EventSource(str(tmp_path)).planned(2)
    splits = source.splits(2)
    written(generated(70), tmp_path / "more.jsonl")
    assert source.splits(2) == splits


def test_several_files_are_read_at_the_same_pace_in_event_time(tmp_path: Path) -> None:
    events = crowded()
    source = EventSource(str(written(events, tmp_path / "several", 4)))
    source.is_timed = True
    source.fields.update(dict.fromkeys(KINDS, ("dateTime",)))
    ((split,),) = source.splits(1)
    greatest = worst = 0
    for batch in source.read(split, 100):
        for event in batch:
            time = (event.bid or event.auction or event.person).dateTime
            greatest = max(greatest, time)
            worst = max(worst, greatest - time)
    assert 0 < worst < 4_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q13"], "q13 joins bids with a file: use --side-input FILE"),
        (["q9", "--late", "late"], "q9 drops no late events; q5, q7, q8 and q11 do"),
        (["q0", "--input", "nowhere"], "there is no file or folder nowhere"),
        (["q13", "--side-input", "nowhere"], "there is no file or folder nowhere"),
        (["q0", "--output", __file__], "test_nexmark.py is a file: use an empty or a new folder"),
    ],
)
def test_the_command_line_names_missing_and_invalid_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    query, *options = arguments
    paths = ["--input", str(tmp_path), "--output", str(tmp_path / "out"), "--local"]
    assert main([query, *paths, *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["q0", "--input", "events", "--output", "rows", "--parallelism", "0"],
        ["generate", "--out", "events", "--count", "0"],
        ["generate", "--out", "events", "--rate", "0"],
    ],
)
def test_numbers_on_the_command_line_must_be_positive(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "0 is less than 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "record"), [("1,a\n2\n", "['2']"), ("one,a\n", "['one', 'a']"), ("1,a,b\n", "'b']")]
)
def test_a_malformed_side_input_is_shown_in_the_error(
    tmp_path: Path, text: str, record: str
) -> None:
    path = tmp_path / "side.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{record} is not a pair of a key")):
        SideInput(str(path)).open(None)


def test_blank_lines_of_a_side_input_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "side.csv"
    path.write_text('1,a\n\n2,"b, c"\n\n')
    side = SideInput(str(path))
    side.open(None)
    bid = Bid(20_002, 7, 5, "", "", 9, "")
    assert [row["value"] for row in side.flat_map(bid)] == ["b, c"]


def test_an_output_folder_with_files_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "part-0").write_text("{}")
    assert main(["q0", "--input", str(tmp_path), "--output", str(tmp_path), "--local"]) == 2
    assert "use an empty folder" in capsys.readouterr().err


def bag_of_events(events: Events) -> Any:
    return as_bag([{"event": json.dumps(event, sort_keys=True)} for event in events])
