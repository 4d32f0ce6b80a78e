"""Senders leave out the fields of records that their reader does not read."""

from __future__ import annotations

import importlib
import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from forms import FORMS, failure_of, job_of, notes_of, run_form, run_job, seen

from opchain.common import Row, Types, WatermarkStrategy
from opchain.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
)
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from opchain.runtime.errors import ChangedCodeError
from opchain.runtime.records.columns import Columns
from opchain.runtime.task import generated_code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODES = ("STREAMING", "BATCH")
START = time.time()


class Click(NamedTuple):
    user: int
    page: str
    price: int
    time: int


@dataclass
class Visit:
    user: int
    page: str
    price: int
    time: int


def of_tuple(x: int) -> Any:
    return x % 5, f"page {x % 7}", x * 10, x * 1000


def of_row(x: int) -> Any:
    return Row(x % 5, f"page {x % 7}", x * 10, x * 1000)


def of_named_row(x: int) -> Any:
    return Row(user=x % 5, page=f"page {x % 7}", price=x * 10, time=x * 1000)


def of_named_tuple(x: int) -> Any:
    return Click(x % 5, f"page {x % 7}", x * 10, x * 1000)


def of_dataclass(x: int) -> Any:
    return Visit(x % 5, f"page {x % 7}", x * 10, x * 1000)


def of_dict(x: int) -> Any:
    return {"user": x % 5, "page": f"page {x % 7}", "price": x * 10, "time": x * 1000}


def line_of(x: int) -> str:
    return json.dumps(of_dict(x))


class Total(KeyedProcessFunction[Any, Any, Any]):
    """Adds up prices for each user."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))


class TotalByPlace(Total):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0) + value[2])
        yield value[0], self.total.value(), ctx.timestamp()


class TotalByName(Total):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0) + value["price"])
        yield value["user"], self.total.value(), ctx.timestamp()


class TotalByAttribute(Total):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0) + value.price)
        yield value.user, self.total.value(), ctx.timestamp()


class Highest(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0, 0

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], max(a[1], b[1])


class HighestByPlace(Highest):
    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, max(accumulator[1], value[2])


class HighestByName(Highest):
    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, max(accumulator[1], value["price"])


class HighestByAttribute(Highest):
    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, max(accumulator[1], value.price)


class Access(NamedTuple):
    """How programs read the fields of a record."""

    user: Callable[[Any], Any]
    time: Callable[[Any, int], int]
    total: type[Total]
    highest: type[Highest]


BY_PLACE = Access(lambda r: r[0], lambda r, _: r[3], TotalByPlace, HighestByPlace)
BY_NAME = Access(lambda r: r["user"], lambda r, _: r["time"], TotalByName, HighestByName)
BY_ATTRIBUTE = Access(lambda r: r.user, lambda r, _: r.time, TotalByAttribute, HighestByAttribute)

RECORDS = [
    (of_tuple, BY_PLACE),
    (of_row, BY_PLACE),
    (of_named_row, BY_NAME),
    (of_named_row, BY_ATTRIBUTE),
    (of_named_tuple, BY_ATTRIBUTE),
    (of_dataclass, BY_ATTRIBUTE),
    (of_dict, BY_NAME),
    (json.loads, BY_NAME),
]


def records(env: Any, made: Any, folder: Path, lines: list[str] | None = None) -> Any:
    """Records made of numbers, or of lines of JSON."""
    if made is not json.loads:
        return env.from_sequence(0, 99).map(made)
    path = folder / "lines.json"
    path.write_text("\n".join(lines or map(line_of, range(100))), "utf-8")
    text = StreamFormat.text_line_format()
    source = FileSource.for_record_stream_format(text, str(path)).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(made)


def timed(stream: Any, of: Callable[[Any, int], int]) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(of)
    return stream.assign_timestamps_and_watermarks(strategy)


def totals(stream: Any, access: Access) -> None:
    keyed = timed(stream, access.time).key_by(access.user)
    seen(keyed.process(access.total()), "rows")


def windows(stream: Any, access: Access) -> None:
    keyed = timed(stream, access.time).key_by(access.user)
    found = keyed.window(TumblingEventTimeWindows.of(20_000)).aggregate(access.highest())
    seen(found, "rows")


def sliding(stream: Any, access: Access) -> None:
    keyed = timed(stream, access.time).key_by(access.user)
    found = keyed.window(SlidingEventTimeWindows.of(20_000, 10_000)).aggregate(access.highest())
    seen(found, "rows")


def sessions(stream: Any, access: Access) -> None:
    keyed = timed(stream, access.time).key_by(access.user)
    found = keyed.window(EventTimeSessionWindows.with_gap(6_000)).aggregate(access.highest())
    seen(found, "rows")


def counted(stream: Any, access: Access) -> None:
    seen(stream.key_by(access.user).count_window(3).aggregate(access.highest()), "rows")


def lists_of(job: Any) -> int:
    """How many lists of fields the first vertex fills."""
    return len({name for name in job.vertices[0].names if name.startswith("column_0_")})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", [totals, windows, sliding, sessions, counted])
@pytest.mark.parametrize(("made", "access"), RECORDS)
def test_fields_that_no_operator_reads_are_not_sent(
    made: Any, access: Access, program: Any, mode: str, tmp_path: Path
) -> None:
    def draw(env: Any) -> None:
        program(records(env, made, tmp_path), access)

    runs = [run_form(draw, form, mode=mode, parallelism=2, batch_size=8) for form in FORMS]
    if (program, mode) != (sessions, "BATCH"):  # an operator that generated code calls
        assert lists_of(runs[2].job) == 2
    for run in runs[1:]:
        assert run.subtasks("rows") == runs[0].subtasks("rows")
        assert run.counters() == runs[0].counters()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("odd", ['"x": NaN, ', '"x": 1e400, '])
def test_batches_with_whole_records_keep_their_order(odd: str, mode: str, tmp_path: Path) -> None:
    lines = [line_of(x).replace("{", "{" + odd * (x % 50 == 3)) for x in range(100)]

    def draw(env: Any) -> None:
        totals(records(env, json.loads, tmp_path, lines), BY_NAME)

    plain, fast = (run_form(draw, form, mode=mode, batch_size=8) for form in FORMS[::2])
    assert lists_of(fast.job) == 2
    assert fast.subtasks("rows") == plain.subtasks("rows")


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_field_fails_at_the_function_that_reads_it(mode: str, tmp_path: Path) -> None:
    lines = [line_of(1), line_of(2).replace("price", "prize")]

    def draw(env: Any) -> None:
        totals(records(env, json.loads, tmp_path, lines), BY_NAME)

    for form in FORMS:
        error = failure_of(draw, form, mode=mode)
        assert repr(error) == "KeyError('price')"
        assert "in 'KeyedProcess'" in notes_of(error)
        assert "'prize': 20" in notes_of(error)


class Defaults(Total):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value.get("price", 7), value.get("page")


def test_defaults_of_dict_get_apply_to_fields_that_are_missing(tmp_path: Path) -> None:
    lines = [line_of(1), '{"user": 1, "price": null}', '{"user": 1, "page": 3}', '{"user": 2}']

    def draw(env: Any) -> None:
        rows = records(env, json.loads, tmp_path, lines)
        seen(rows.key_by(lambda r: r["user"]).process(Defaults()), "rows")

    expected = [(10, "page 1"), (None, None), (7, 3), (7, None)]
    for form in FORMS:
        run = run_form(draw, form)
        assert run.records("rows") == expected
    assert lists_of(run.job) == 3


LATE = OutputTag("late")


@pytest.mark.parametrize(("made", "access"), RECORDS)
def test_late_records_in_a_side_output_have_all_fields(
    made: Any, access: Access, tmp_path: Path
) -> None:
    def draw(env: Any) -> None:
        # The first watermark comes after the first batch.
        stream = timed(records(env, made, tmp_path), lambda r, _: 0 if access.user(r) == 4 else 9)
        windowed = stream.key_by(access.user).window(TumblingEventTimeWindows.of(5))
        result = windowed.side_output_late_data(LATE).aggregate(access.highest())
        seen(result, "rows")
        seen(result.get_side_output(LATE), "late")

    settings: dict[str, Any] = {"batch_size": 8, "watermark_interval": "0 ms"}
    runs = [run_form(draw, form, **settings) for form in FORMS]
    for run in runs[1:]:
        assert run.subtasks("late") == runs[0].subtasks("late")
        assert run.subtasks("rows") == runs[0].subtasks("rows")


def since_start(value: Any) -> Any:
    return value[2] > START or value[0]


def test_all_fields_are_sent_if_an_executor_may_read_different_ones() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(0, 9).map(of_tuple).key_by(BY_PLACE.user).map(since_start), "rows")

    assert lists_of(job_of(draw)) == 0


def helper(value: Any) -> Any:
    return value[2]


def helped(env: Any) -> None:
    keyed = env.from_sequence(0, 9).map(of_tuple).key_by(lambda r: r[0])
    seen(keyed.map(lambda r: helper(r) + 1), "rows")


def test_another_version_of_a_function_on_an_executor_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job, whole = job_of(helped), job_of(helped, without="send_fields")
    assert [lists_of(job), lists_of(whole)] == [2, 0]
    monkeypatch.setattr(generated_code, "digest_of", lambda _: "another version")
    with pytest.raises(ChangedCodeError, match=r"opchain\.codegen\.without"):
        run_job(job)
    assert run_job(whole).records("rows") == [x * 10 + 1 for x in range(10)]


@pytest.mark.parametrize("key", ["...", 'say "hi"', "a\\b", "\x01", "\ud800"])
@pytest.mark.parametrize("mode", MODES)
def test_fields_may_have_any_name(key: str, mode: str, tmp_path: Path) -> None:
    lines = [json.dumps({"user": x % 2, key: x, "x": 3}) for x in range(9)]

    def draw(env: Any) -> None:
        rows = records(env, json.loads, tmp_path, lines)
        seen(rows.map(lambda r: r["x"]), "x")
        seen(rows.key_by(lambda r: r["user"]).map(NAMED[key]), "rows")

    runs = [run_form(draw, form, mode=mode, batch_size=4) for form in FORMS]
    assert sorted(runs[0].records("rows")) == list(range(9))
    for run in runs[1:]:
        assert run.subtasks("rows") == runs[0].subtasks("rows")


NAMED: dict[str, Any] = {
    "...": lambda r: r["..."],
    'say "hi"': lambda r: r['say "hi"'],
    "a\\b": lambda r: r["a\\b"],
    "\x01": lambda r: r["\x01"],
    "\ud800": lambda r: r["\ud800"],
}


def test_data_of_a_module_may_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lookups_of_test.py").write_text(
        "NAMES = {0: 'a'}\n\ndef name_of(value):\n    return NAMES.get(value[0], '?'), value[1]\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    lookups = importlib.import_module("lookups_of_test")

    class Renews(MapFunction[Any, Any]):
        def open(self, runtime_context: Any) -> None:
            sys.modules["lookups_of_test"].__dict__["NAMES"] = {0: "a", 1: "b"}

        def map(self, value: Any) -> Any:
            return lookups.name_of(value)

    def draw(env: Any) -> None:
        seen(env.from_sequence(0, 5).map(of_tuple).key_by(BY_PLACE.user).map(Renews()), "rows")

    found = []
    for form in FORMS:
        lookups.NAMES = {0: "a"}
        found.append(run_form(draw, form, batch_size=4).records("rows"))
    assert found[1:] == [found[0], found[0]]
    monkeypatch.delitem(sys.modules, "lookups_of_test")


@pytest.mark.parametrize(
    ("make", "access", "shown"),
    [
        (
            lambda r: (r["user"], r["page"], r["price"], 3),
            *(BY_PLACE, "(1, ..., '10', 3)"),
        ),
        (
            lambda r: Click(r["user"], r["page"], r["price"], r["time"]),
            *(BY_ATTRIBUTE, "Click(user=1, page=..., price='10', time=...)"),
        ),
        (None, BY_NAME, "{'user': 1, 'price': '10', ...}"),
    ],
)
def test_an_error_shows_the_fields_that_were_sent(
    make: Any, access: Access, shown: str, tmp_path: Path
) -> None:
    def draw(env: Any) -> None:
        lines = [line_of(1).replace("10,", '"10",')]
        rows = records(env, json.loads, tmp_path, lines)
        rows = rows if make is None else rows.map(make)
        seen(rows.key_by(access.user).process(access.total()), "rows")

    error = failure_of(draw)
    assert type(error) is TypeError
    assert f"at record {shown}" in notes_of(error)


def test_an_invalid_timestamp_is_an_error_that_shows_the_sent_fields() -> None:
    def draw(env: Any) -> None:
        made = env.from_sequence(0, 3).map(of_tuple).rebalance()
        stream = timed(made, lambda r, _: "x" if r[0] == 2 else r[3])
        seen(stream.map(lambda r: r[2]), "rows")

    error = failure_of(draw, parallelism=1)
    assert "for the record (2, ..., 20, 2000)" in str(error)


def test_columns_are_aware_of_fields_that_are_not_sent() -> None:
    columns = Columns([[1, 2]], ((), (...,)))
    assert columns.lack_fields
    assert list(columns) == [(1, ...), (2, ...)]
    assert not Columns([[1, 2]], ((), (None,))).lack_fields
