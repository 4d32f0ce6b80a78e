"""Tuples that are sent field by field, and dictionaries that are sent as JSON. Results do not change."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, job_of, notes_of, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Row, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    BroadcastProcessFunction,
    CoMapFunction,
    DataStreamUtils,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
)
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.errors import UnpicklableRecordError
from opchain.runtime.operators import pending_batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class AddingUp(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


def counted(env: Any) -> Any:
    words = env.from_sequence(0, 40).flat_map(lambda x: str(x * 7).split("1"))
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    return ones.reduce(lambda a, b: (a[0], a[1] + b[1]))


def weighted(env: Any) -> Any:
    sevens = env.from_sequence(0, 40).map(lambda x: (0.5, x % 3)).key_by(lambda pair: pair[1])
    return sevens.reduce(lambda a, b: (a[0] * 3.0 + b[0], a[1]))


def filtered(env: Any) -> Any:
    ones = env.from_sequence(0, 40).filter(lambda x: x % 4 != 1).map(lambda x: (x % 3, 1))
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], 1 + b[1]))


def not_only_pairs(env: Any) -> Any:
    numbers = env.from_sequence(0, 40)
    ones, twos = numbers.map(lambda x: (x % 3, 1)), numbers.map(lambda x: (x % 3, 2))
    both = ones.union(twos).key_by(lambda pair: pair[0])
    return both.reduce(lambda a, b: (a[0], a[1] + b[1]))


def seen_on_the_way(env: Any) -> Any:
    ones = env.from_sequence(0, 40).map(lambda x: (x % 3, 1))
    seen(ones, "ones")
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def in_an_object(env: Any) -> Any:
    ones = env.from_sequence(0, 40).map(lambda x: (x % 3, 1))
    return ones.key_by(lambda pair: pair[0]).reduce(AddingUp())


def read_twice(env: Any) -> Any:
    keyed = env.from_sequence(0, 40).map(lambda x: (x % 3, 1)).key_by(lambda pair: pair[0])
    seen(keyed.map(lambda pair: pair[1]), "ones")
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


def keyed_otherwise(env: Any) -> Any:
    ones = env.from_sequence(0, 40).map(lambda x: (x % 3, 1))
    moved = ones.partition_custom(lambda key, count: key % count, lambda pair: pair[0])
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(moved, lambda pair: pair[1])
    return keyed.reduce(lambda a, b: (a[0] + b[0], a[1]))


def in_threes(env: Any) -> Any:
    threes = env.from_sequence(0, 40).map(lambda x: (x % 3, 1, x)).key_by(lambda it: it[0])
    return threes.reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))


def read_whole(env: Any) -> Any:
    threes = env.from_sequence(0, 40).map(lambda x: (x % 3, None, x)).key_by(lambda it: it[0])
    return threes.map(len)


def alike_twice(env: Any) -> Any:
    numbers = env.from_sequence(0, 40)
    pairs = numbers.map(lambda x: (x % 3, True)).union(numbers.map(lambda x: (x % 3, 1)))
    return pairs.key_by(lambda pair: pair[0]).map(repr)


def by_two_fields(env: Any) -> Any:
    rows = env.from_sequence(0, 40).map(lambda x: Row(a=x % 3, b=str(x % 2), c=x))
    keyed = rows.filter(lambda row: row.c % 5 != 1).key_by(lambda row: (row.a, row.b))
    return keyed.reduce(lambda a, b: Row(a=a.a, b=a.b, c=a.c + b.c)).map(str)


def by_rest(env: Any) -> Any:
    pairs = env.from_sequence(0, 40).map(lambda x: (x % 6, x))
    return pairs.key_by(lambda pair: pair[0] % 3).reduce(lambda a, b: (a[0], a[1] + b[1]))


def by_constant(env: Any) -> Any:
    pairs = env.from_sequence(0, 40).map(lambda x: (x % 6, x))
    return pairs.key_by(lambda pair: 0).reduce(lambda a, b: (a[0], a[1] + b[1]))


ODD = OutputTag("odd")


class Divided(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[1] % 2:
            yield ODD, value
        else:
            yield value


def by_the_side(env: Any) -> Any:
    pairs = env.from_sequence(0, 40).map(lambda x: (x % 3, x)).process(Divided())
    odd = pairs.get_side_output(ODD).map(lambda pair: (pair[0], -pair[1]))
    both = odd.union(pairs.map(lambda pair: (pair[0], pair[1] + 1)))
    return both.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


SUMMED = (counted, weighted, filtered)
BY_FIELDS = (
    *(*SUMMED, in_threes, not_only_pairs, in_an_object, read_whole, alike_twice),
    *(read_twice, by_the_side),
)
OWN_KEYS = (by_two_fields, by_rest, by_constant)
WHOLE = (seen_on_the_way,)


def sources_of(draw: Callable[[Any], Any], mode: str) -> list[str]:
    job = job_of(lambda env: seen(draw(env), "sums"), mode=mode)
    return [vertex.source for vertex in job.vertices]


@pytest.mark.parametrize("draw", BY_FIELDS)
def test_a_tuple_is_sent_by_field_if_only_its_fields_are_read(draw: Callable[[Any], Any]) -> None:
    sender, *_ = sources_of(draw, "STREAMING")
    sender = sender.partition("def fallback_")[0]
    assert ", by fields" in sender
    assert "values_" not in sender
    assert "keys_" not in sender


@pytest.mark.parametrize("draw", OWN_KEYS)
def test_a_key_that_is_not_a_field_is_sent_in_its_own_list(draw: Callable[[Any], Any]) -> None:
    sender, *_ = sources_of(draw, "STREAMING")
    assert ", by fields" in sender
    assert "values_0" not in sender.partition("def fallback_")[0]
    assert "keys_0." in sender


@pytest.mark.parametrize("draw", SUMMED)
def test_a_constant_that_is_summed_up_is_not_sent(draw: Callable[[Any], Any]) -> None:
    sender, receiver, *_ = sources_of(draw, "STREAMING")
    assert ", 1)" not in sender
    assert "in values.rows():" in receiver
    assert "sums_0.get(field_" in receiver


def test_a_reduce_of_pairs_reads_fields_without_tuples() -> None:
    _, receiver, *_ = sources_of(in_threes, "STREAMING")
    assert "for field_0, field_2 in values.rows():" in receiver
    assert "(previous_0[0], previous_0[1] + 1, previous_0[2] + field_2)" in receiver


@pytest.mark.parametrize("draw", [read_whole, not_only_pairs, alike_twice])
def test_other_receivers_build_tuples_from_the_fields(draw: Callable[[Any], Any]) -> None:
    _, receiver, *_ = sources_of(draw, "STREAMING")
    assert "for value in values:" in receiver


@pytest.mark.parametrize("draw", WHOLE)
def test_tuples_are_sent_whole_if_another_reader_needs_them(draw: Callable[[Any], Any]) -> None:
    assert not any(", by fields" in source for source in sources_of(draw, "STREAMING"))


def test_counting_before_sending_collects_only_keys() -> None:
    sender, *_ = sources_of(counted, "BATCH")
    assert "keys_0.extend(str(value * 7).split('1'))" in sender
    assert "counted here" in sender
    assert "counted here" not in sources_of(weighted, "BATCH")[0]


def test_records_with_many_fields_are_not_sent_by_field() -> None:
    def draw(env: Any) -> Any:
        wide = env.from_sequence(0, 9).map(lambda x: (x, x + 1, x + 2, x + 3))
        return wide.key_by(lambda it: it[0]).map(sum)

    assert not any(", by fields" in source for source in sources_of(draw, "STREAMING"))


SHARED: list[int] = []


@pytest.mark.parametrize("form", FORMS)
def test_a_field_that_another_object_references_is_copied_at_once(form: str) -> None:
    def drawn(env: Any) -> None:
        SHARED.clear()

        def paired(x: int) -> tuple[int, list[int]]:
            SHARED.append(x)
            return x, SHARED

        pairs = env.from_sequence(0, 5).map(paired)
        seen(pairs.key_by(lambda pair: 0).map(lambda pair: len(pair[1])), "lengths")

    assert run_form(drawn, form).records("lengths") == [1, 2, 3, 4, 5, 6]


def test_an_error_shows_the_whole_record() -> None:
    def drawn(env: Any) -> None:
        threes = env.from_sequence(5, 8).map(lambda x: (x % 2, "one", x)).key_by(lambda it: it[0])
        seen(threes.reduce(lambda a, b: (a[0], a[1], a[2] // (b[2] - 8))), "quotients")

    for form in FORMS:
        with pytest.raises(ZeroDivisionError) as failure:
            run_form(drawn, form)
        assert "at record (0, 'one', 8), key 0" in "\n".join(failure.value.__notes__)


def test_an_unpicklable_field_is_named_with_its_record() -> None:
    def drawn(env: Any) -> None:
        pairs = env.from_sequence(5, 8).map(lambda x: (x, "two", open_file()))
        seen(pairs.key_by(lambda pair: pair[0]).map(str), "texts")

    for form in FORMS:
        with pytest.raises(UnpicklableRecordError, match=r"the record \(8, 'two', <_io"):
            run_form(drawn, form)


def open_file() -> Any:
    return io.BufferedReader(io.BytesIO())  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    draw=st.sampled_from(BY_FIELDS + OWN_KEYS + WHOLE),
    parallelism=st.integers(1, 3),
    mode=st.sampled_from(["STREAMING", "BATCH"]),
    reuse=st.booleans(),
)
def test_sending_by_fields_changes_no_result_in_any_form(
    draw: Callable[[Any], Any], parallelism: int, mode: str, reuse: bool
) -> None:
    def drawn(env: Any) -> None:
        if reuse:
            env.get_config().enable_object_reuse()
        seen(draw(env), "sums")

    runs = [run_form(drawn, form, mode=mode, parallelism=parallelism) for form in FORMS]
    for run in runs:
        assert run.subtasks("sums") == runs[0].subtasks("sums")
        assert run.counters() == runs[0].counters()


def test_a_key_that_differs_from_the_routed_key_is_detected() -> None:
    runs = [run_form(lambda env: seen(keyed_otherwise(env), "sums"), form) for form in FORMS]
    assert runs[0].records("sums")[-1] == (sum(x % 3 for x in range(41)), 1)
    for run in runs:
        assert run.subtasks("sums") == runs[0].subtasks("sums")


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("odd", ['{"user": 5, "n": NaN}', '{"n": 1e400, "user": 3}'])
def test_sums_continue_after_a_batch_that_the_fallback_processed(
    tmp_path: Path, odd: str, mode: str
) -> None:
    lines = [f'{{"user": {number % 7}, "n": {number}}}' for number in range(40)]
    lines[17] = odd
    path = tmp_path / "lines.json"
    path.write_text("\n".join(lines), "utf-8")
    kind = Types.TUPLE([Types.LONG(), Types.LONG()])

    def draw(env: Any) -> None:
        text = StreamFormat.text_line_format()
        source = FileSource.for_record_stream_format(text, str(path)).build()
        parsed = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(json.loads)
        ones = parsed.map(lambda bid: (bid["user"], 1), output_type=kind)
        keyed = ones.key_by(lambda pair: pair[0])
        seen(keyed.reduce(lambda a, b: (a[0], a[1] + b[1])), "sums")

    source = job_of(draw).vertices[-1].source
    assert source is not None
    assert "write_sums_0()" in source
    plain = run_form(draw, "interpreted", mode=mode, batch_size=4)
    fast = run_form(draw, "inlined", mode=mode, batch_size=4)
    assert fast.subtasks("sums") == plain.subtasks("sums")


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(1, 3), st.booleans())
def test_sums_that_senders_combine_or_pass_on_are_the_same(
    numbers: list[int], parallelism: int, weighs: bool
) -> None:
    def draw(env: Any) -> None:
        kind = Types.TUPLE([Types.LONG(), Types.LONG()])
        records = env.from_collection(numbers, type_info=Types.LONG()).rebalance()
        pairs = records.map(lambda n: (n, n if weighs else 1), output_type=kind)
        keyed = pairs.key_by(lambda pair: pair[0])
        seen(keyed.reduce(lambda a, b: (a[0], a[1] + b[1])), "sums")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pending_batch, "COMBINED_KEYS", 3)
        patched.setattr(pending_batch, "PASSED_ON", 5)
        ran = [
            run_form(draw, form, mode="BATCH", parallelism=parallelism, batch_size=4)
            for form in FORMS
        ]
    for other in ran[1:]:
        assert other.subtasks("sums") == ran[0].subtasks("sums")
        assert other.counters() == ran[0].counters()


@pytest.mark.parametrize("factor", [1, 2])
def test_an_error_shows_the_record_that_senders_combined(factor: int) -> None:
    whole = sum(range(30))

    def added(a: Any, b: Any) -> Any:
        return Row(a[0], a[1] + b[1] + 0 // (a[1] + b[1] - whole))

    def draw(env: Any) -> None:
        records = env.from_sequence(0, 29).rebalance().map(lambda n: Row(0 * n, n))
        seen(records.key_by(lambda row: row[0] * factor).reduce(added), "sums")

    found = []
    for form in FORMS:
        with pytest.raises(ZeroDivisionError) as failure:
            run_form(draw, form, mode="BATCH", parallelism=2, batch_size=4)
        found.append(notes_of(failure.value))
    assert found[0] == found[1] == found[2]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class DividedLater(KeyedProcessFunction[Any, Any, Any]):
    """Divides records at once, and their times later."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1] + 3)
        if value[1] % 2:
            yield ODD, value
        else:
            yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        if timestamp % 3:
            yield ODD, (ctx.get_current_key(), timestamp)
        else:
            yield ctx.get_current_key(), timestamp


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("is_keyed", [False, True])
def test_records_of_side_outputs_keep_their_order_in_both_forms(
    tmp_path: Path, mode: str, is_keyed: bool
) -> None:
    path = tmp_path / "lines.json"
    lines = [f'{{"user": {number % 7}, "n": {number}}}' for number in range(60)]
    lines[13] = lines[34] = '{"user": 5, "n": 7, "x": NaN}'  # the fallback takes its batch
    path.write_text("\n".join(lines), "utf-8")

    def draw(env: Any) -> None:
        text = StreamFormat.text_line_format()
        source = FileSource.for_record_stream_format(text, str(path)).build()
        parsed = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(json.loads)
        pairs = parsed.map(lambda bid: (int(bid["user"]), bid["n"]))
        monotonous = WatermarkStrategy.for_monotonous_timestamps()
        timed = pairs.assign_timestamps_and_watermarks(
            monotonous.with_timestamp_assigner(SecondField())
        )
        if is_keyed:
            divided = timed.key_by(lambda pair: pair[0]).process(DividedLater())
        else:
            divided = timed.process(Divided())
        odd = divided.get_side_output(ODD).map(lambda pair: (pair[0], -pair[1]))
        seen(odd.key_by(lambda pair: pair[0]).map(str), "odd")
        even = divided.map(lambda pair: (pair[0], pair[1] + 1))
        seen(even.key_by(lambda pair: pair[0]).map(str), "even")

    runs = [run_form(draw, form, mode=mode, batch_size=4, parallelism=2) for form in FORMS]
    (sender,) = (vertex.source for vertex in runs[-1].job.vertices if "Process" in vertex.name)
    assert str(sender).count(", by fields") == (0 if is_keyed else 2)  # timers emit, too
    for run in runs:
        assert run.subtasks("odd") == runs[0].subtasks("odd")
        assert run.subtasks("even") == runs[0].subtasks("even")
        assert run.counters() == runs[0].counters()


class OfTwo(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value[0] + value[2]

    def map2(self, value: Any) -> Any:
        return value[1] - value[0]


NAMED = Types.ROW_NAMED(["n", "sum"], [Types.LONG(), Types.LONG()])

COMBINED: dict[str, tuple[Any, Any, Any, Any]] = {
    "counts": (lambda n: Row(n, 1), None, 0, lambda a, b: Row(a[0], a[1] + b[1])),
    "names": (
        lambda n: Row(n=n, sum=n),
        None,
        "n",
        lambda a, b: Row(n=a.n, sum=a["sum"] + b["sum"]),
    ),
    "names that end": (lambda n: Row(n, n), NAMED, 0, lambda a, b: Row(a[0], a[1] + b[1])),
    "names that begin": (
        lambda n: Row(n, n, 2),
        None,
        0,
        lambda a, b: Row(n=a[0], x=a[1] + b[1], y=b[2]),
    ),
    "another key": (
        lambda n: {"n": n, "one": 1, "flag": True},
        None,
        None,
        lambda a, b: {"n": a["n"] + b["n"], "one": a["one"] + b["one"], "flag": True},
    ),
    "three fields": (lambda n: (n, 1, n), None, 0, lambda a, b: (a[0], 1, a[2] + b[2])),
}


@pytest.mark.parametrize("records", COMBINED)
def test_records_that_senders_combine_are_the_same(
    records: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, kind, field, add = COMBINED[records]

    def draw(env: Any) -> None:
        made = env.from_sequence(0, 29).rebalance().map(lambda n: n * n % 13)
        made = made.map(record, output_type=kind)
        keyed = made.key_by((lambda r: r["n"] % 3) if field is None else lambda r: r[field])
        seen(keyed.reduce(add), "sums")

    monkeypatch.setattr(pending_batch, "COMBINED_KEYS", 3)
    monkeypatch.setattr(pending_batch, "REPEATED", 0)  # the interpreted form never passes on
    ran = [run_form(draw, form, mode="BATCH", parallelism=2, batch_size=4) for form in FORMS]
    for run in ran:
        assert repr(run.subtasks("sums")) == repr(ran[0].subtasks("sums"))
        assert run.counters() == ran[0].counters()
    assert "in values.rows()" in (job_of(draw, mode="BATCH").vertices[-2].source or "")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_both_inputs_of_an_operator_may_arrive_by_field(form: str, mode: str) -> None:
    def drawn(env: Any) -> None:
        numbers = env.from_sequence(1, 4)
        threes = numbers.map(lambda x: (x % 2, 1, x * 10)).key_by(lambda it: it[0])
        pairs = numbers.map(lambda x: (x % 2, x * 100)).key_by(lambda it: it[0])
        seen(threes.connect(pairs).map(OfTwo()), "both")

    both = [11, 20, 31, 40, 99, 200, 299, 400]
    assert sorted(run_form(drawn, form, mode=mode).records("both")) == both


class Latest(KeyedProcessFunction[Any, Any, Any]):
    """Asks a dictionary for two fields."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        total = (self.seen.value() or 0) + value["n"]
        self.seen.update(total)
        yield value["user"], total, ctx.timestamp()


class First(Latest):
    """Emits the first dictionary of each key."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.seen.value() is None:
            self.seen.update(1)
            yield value


def by_user(row: Any) -> Any:
    return row["user"]


def time_of(row: Any, _: int) -> int:
    return int(row["n"])


def lasting(rows: Any) -> None:
    seen(rows.key_by(by_user).process(Latest()), "kept")


def first_rows(rows: Any) -> None:
    seen(rows.key_by(by_user).process(First()).map(lambda row: row["n"] + 1), "kept")


def by_parity(rows: Any) -> None:
    keyed = rows.key_by(lambda row: int(row["user"]) % 2)
    seen(keyed.process(Latest()).map(lambda found: found[1]), "kept")


def timed_rows(rows: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time_of)
    keyed = rows.assign_timestamps_and_watermarks(strategy).key_by(by_user)
    seen(keyed.window(TumblingEventTimeWindows.of(10)).reduce(lambda a, b: b), "windows")


def whole_rows(rows: Any) -> None:
    seen(rows.filter(lambda row: row.get("none", 7) == 7).key_by(by_user).map(lambda r: r), "kept")


def without_key(rows: Any) -> None:
    seen(rows.rebalance().map(lambda row: row["n"]), "kept")


def whole_without_key(rows: Any) -> None:
    seen(rows.rebalance().filter(lambda row: row["user"] in {1, "5"}), "kept")


def changed_without_key(rows: Any) -> None:
    seen(rows.rescale().map(lambda row: (row["tags"].append(1), row["tags"])), "tags")


FACTORS = MapStateDescriptor("factors", Types.STRING(), Types.INT())


class Factored(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value["user"], value["n"] * (ctx.get_broadcast_state(FACTORS).get("n") or 1)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(FACTORS).put("n", value)


def beside_factors(rows: Any) -> None:
    factors = rows.get_execution_environment().from_collection([3]).broadcast(FACTORS)
    seen(rows.connect(factors).process(Factored()), "kept")


def sent_twice(rows: Any) -> None:
    seen(rows.key_by(by_user).map(lambda row: row["n"] + 1), "kept")
    seen(rows.key_by(lambda row: row["n"] % 3).map(lambda row: row["tags"]), "tags")


def united_rows(rows: Any) -> None:
    more = rows.filter(lambda row: row["n"] > 3)
    seen(rows.union(more).key_by(by_user).map(lambda row: row["n"]), "kept")


def changed_by_receiver(rows: Any) -> None:
    longer = rows.key_by(by_user).map(lambda row: (row["tags"].append(1), row["tags"]))
    seen(longer, "tags")


def changed_before(rows: Any) -> None:
    longer = rows.filter(lambda row: row["tags"].append(1) is None)
    seen(longer.key_by(by_user).map(lambda row: row["tags"]), "tags")


def tagged(row: Any) -> bool:
    tags = row["tags"]
    tags += [row["user"]]
    return bool(tags)


def changed_in_place(rows: Any) -> None:
    seen(rows.filter(tagged).key_by(by_user).map(lambda row: row["tags"]), "tags")


def json_lines(draw: Any, folder: Path, lines: list[str], *, rebalanced: bool = False) -> Any:
    path = folder / "lines.json"
    path.write_text("\n".join(lines), "utf-8")

    def drawn(env: Any) -> None:
        text = StreamFormat.text_line_format()
        source = FileSource.for_record_stream_format(text, str(path)).build()
        texts = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        draw((texts.rebalance() if rebalanced else texts).map(json.loads))

    return drawn


def json_line(number: int) -> str:
    return f'{{"user": {number % 7}, "n": {number}, "tags": ["é", {{"x": [{number}.5]}}]}}'


@pytest.mark.parametrize(
    ("draw", "sent"),
    [
        (lasting, "by fields"),
        (first_rows, "by fields"),
        (by_parity, "by fields"),
        (timed_rows, "as JSON"),
        (whole_rows, "as JSON"),
        (without_key, "by fields"),
        (whole_without_key, "as JSON"),
        (changed_without_key, "by fields"),
        (beside_factors, "by fields"),
        (sent_twice, "by fields"),
        (united_rows, "as JSON"),
        (changed_by_receiver, "by fields"),
        (changed_before, ""),
        (changed_in_place, ""),
    ],
)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    "odd",
    [
        json_line(17),
        '{"user": 5, "n": 17, "tags": [NaN]}',
        '{"n": 1, "tags": [1e400], "n": 3, "user": 3, "none": 7}',
        '{"n": 2, "tags": [], "user": "5"}',
    ],
)
def test_json_dictionaries_are_equal_after_an_exchange(
    draw: Any, sent: str, odd: str, mode: str, tmp_path: Path
) -> None:
    lines = list(map(json_line, range(40)))
    lines[17] = odd
    job = json_lines(draw, tmp_path, lines)
    plain = run_form(job, "interpreted", mode=mode, parallelism=2, batch_size=4)
    fast = run_form(job, "inlined", mode=mode, parallelism=2, batch_size=4)
    for name in ("kept", "tags", "windows"):
        assert repr(fast.subtasks(name)) == repr(plain.subtasks(name))
    assert fast.counters() == plain.counters()
    loop = str(fast.job.vertices[0].source).partition("def fallback_0")[0]
    found = [how for how in ("as JSON", "by fields") if f", {how}" in loop]
    assert sent in found if sent else not found


def forked_with_times(rows: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time_of)
    timed = rows.assign_timestamps_and_watermarks(strategy)
    even = timed.filter(lambda row: row["n"] % 2 == 0)
    seen(even.map(lambda row: row["user"] + 1).rebalance(), "users")
    seen(timed.map(lambda row: row["n"] * 2).rebalance(), "numbers")


def changed_in_a_branch(rows: Any) -> None:
    seen(rows.map(lambda row: row["tags"].append(row["n"]) or row["tags"]).rebalance(), "tags")
    seen(rows.map(lambda row: row["tags"]).rebalance(), "numbers")


@pytest.mark.parametrize(
    ("draw", "is_narrowed"), [(forked_with_times, True), (changed_in_a_branch, False)]
)
def test_two_readers_share_parsed_json_unless_one_of_them_changes_it(
    draw: Any, is_narrowed: bool, tmp_path: Path
) -> None:
    job = json_lines(draw, tmp_path, list(map(json_line, range(40))))
    plain = run_form(job, "interpreted")
    fast = run_form(job, "inlined")
    loop = str(fast.job.vertices[0].source).partition("def fallback_0")[0]
    assert ("read_json_1(values)" in loop) is is_narrowed
    for name in ("users", "tags", "numbers"):
        assert fast.records(name) == plain.records(name)


def user_and_page(row: Any) -> str:
    return f"{row['user']} {row['n'] % 3}"


@pytest.mark.parametrize("select", [by_user, user_and_page])
def test_keys_are_selected_once_by_the_sender_in_batch_mode(select: Any, tmp_path: Path) -> None:
    def draw(rows: Any) -> None:
        seen(rows.key_by(select).map(lambda row: row["n"]), "numbers")

    lines = list(map(json_line, range(40)))
    runs = {
        form: run_form(json_lines(draw, tmp_path, lines), form, mode="BATCH", parallelism=2)
        for form in ("interpreted", "inlined")
    }
    job = runs["inlined"].job
    assert [edge.key_list for edge in job.vertices[1].inputs] == [1]
    assert "column_0_1.append(" in str(job.vertices[0].source)
    assert runs["inlined"].subtasks("numbers") == runs["interpreted"].subtasks("numbers")


@pytest.mark.parametrize("odd", [{3}, {200}, {3, 200, 590}])
def test_records_by_field_and_whole_records_of_a_batch_keep_their_order(
    odd: set[int], tmp_path: Path
) -> None:
    lines = [
        json_line(number).replace("[", "[NaN, " if number in odd else "[") for number in range(600)
    ]
    job = json_lines(lasting, tmp_path, lines, rebalanced=True)
    plain = run_form(job, "interpreted", parallelism=2)
    fast = run_form(job, "inlined", parallelism=2)
    assert ", by fields" in str(fast.job.vertices[1].source)
    assert fast.subtasks("kept") == plain.subtasks("kept")
    assert fast.counters() == plain.counters()


@pytest.mark.parametrize("form", FORMS)
def test_an_error_after_an_exchange_shows_the_json_dictionary(form: str, tmp_path: Path) -> None:
    lines = [json_line(1), '{"user": 5, "n": "x", "tags": []}']

    def draw(rows: Any) -> None:
        seen(rows.key_by(by_user).map(lambda row: row["n"] + row["user"]), "sums")

    error = failure_of(json_lines(draw, tmp_path, lines), form)
    assert type(error) is TypeError
    shown = (
        "{'n': 'x', 'user': 5, ...}" if form == "inlined" else "{'user': 5, 'n': 'x', 'tags': []}"
    )
    assert f"at record {shown}" in notes_of(error)


@pytest.mark.parametrize("form", FORMS)
def test_an_error_after_json_loads_shows_the_dictionary(form: str, tmp_path: Path) -> None:
    lines = [json_line(1), '{"user": 5, "n": "x"}']

    def draw(rows: Any) -> None:
        seen(rows.map(lambda row: row["n"] + row["user"]), "sums")

    error = failure_of(json_lines(draw, tmp_path, lines), form)
    assert type(error) is TypeError
    assert "at record {'user': 5, 'n': 'x'}" in notes_of(error)
