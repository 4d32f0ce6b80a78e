"""A sender that folds records for windows: results, their order and counters are the same as without the rule."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from forms import failure_of, job_of, run_form, run_job, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Types, WatermarkStrategy
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
)
from opchain.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from opchain.runtime.operators import window_folds
from opchain.runtime.operators.windows.aligned_window_operator import AlignedWindowOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.program.vertex_program import JobProgram

MODES = ("STREAMING", "BATCH")
REMARK = "folded into windows before the exchange"
LATE = OutputTag("late")


def in_order(timestamp_of: Callable[[Any, int], int]) -> WatermarkStrategy[Any]:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(timestamp_of)


class Count(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        raise NotImplementedError


class FromFive(Count):
    def create_accumulator(self) -> int:
        return 5


class Several(Count):
    def create_accumulator(self) -> Any:
        return 0, 0, 7

    def add(self, value: Any, accumulator: Any) -> Any:
        total, count, most = accumulator
        return total + value[1], count + 1, max(most, value[1])


class Greatest(AggregateFunction[Any, Any, Any]):
    """The records with the greatest second field, several on a tie."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        if not accumulator or value[1] // 10 > accumulator[0][1] // 10:
            return [value]
        if value[1] // 10 == accumulator[0][1] // 10:
            accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[:]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError


class Least(Greatest):
    def add(self, value: Any, accumulator: Any) -> Any:
        rank = value[1] % 5
        if not accumulator:
            return [value]
        least = accumulator[0][1] % 5
        if least > rank:
            return [value]
        return [*accumulator, value] if rank == least else accumulator


class FirstOfLeast(Greatest):
    def create_accumulator(self) -> Any:
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        if accumulator is None or value[1] % 5 < accumulator[1] % 5:
            return value
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


def later_of_greatest(a: Any, b: Any) -> Any:
    if b[1] % 7 >= a[1] % 7:
        return b
    return a


class SameOrGreater(Greatest):
    """Keeps all records that are not less than the first."""

    def add(self, value: Any, accumulator: Any) -> Any:
        if not accumulator or value[1] >= accumulator[0][1]:
            accumulator.append(value)
        return accumulator


class Changed(Greatest):
    """Looks at the accumulator after it has changed it."""

    def add(self, value: Any, accumulator: Any) -> Any:
        if not accumulator or value[1] > accumulator[0][1]:
            accumulator = [value]
        if value[1] == accumulator[0][1]:
            accumulator.append(value)
        return accumulator


FOLDS: dict[str, Any] = {
    "count": lambda windows: windows.aggregate(Count()),
    "several": lambda windows: windows.aggregate(Several()),
    "sum": lambda windows: windows.reduce(lambda a, b: (a[0], a[1] + b[1])),
    "least": lambda windows: windows.reduce(lambda a, b: (a[0], min(a[1], b[1]))),
    "first": lambda windows: windows.reduce(lambda a, _: a),
    "last": lambda windows: windows.reduce(lambda _, b: b),
    "all greatest": lambda windows: windows.aggregate(Greatest()),
    "all least": lambda windows: windows.aggregate(Least()),
    "first of the least": lambda windows: windows.aggregate(FirstOfLeast()),
    "first of the greatest": lambda windows: windows.reduce(lambda a, b: a if a[1] >= b[1] else b),
    "last of the greatest": lambda windows: windows.reduce(later_of_greatest),
}
ASSIGNERS: dict[str, Any] = {
    "tumbling": TumblingEventTimeWindows.of(20),
    "sliding": SlidingEventTimeWindows.of(20, 5),
    "uneven": SlidingEventTimeWindows.of(20, 15),
}


def draw(
    env: Any, count: int, step: int, keys: int, assigner: Any, fold: Any, senders: int = 1
) -> None:
    """Out-of-order records. Some of them are late."""
    strategy = in_order(lambda row, _: row[1])
    rows = env.from_sequence(1, count).set_parallelism(senders)
    rows = rows.map(lambda x: (x * step % keys, x - x * step % 11)).set_parallelism(senders)
    timed = rows.assign_timestamps_and_watermarks(strategy).set_parallelism(senders)
    seen(fold(timed.key_by(lambda row: row[0]).window(assigner)), "folded")


def gives_the_same_as_without(job: JobProgram, drawn: Any, **how: Any) -> None:
    """Runs a job that folds windows, and the same program in the forms that do not."""
    ran = run_job(job)
    for plain in (
        run_form(drawn, "interpreted", **how),
        run_form(drawn, without="fold_windows", **how),
    ):
        assert ran.subtasks("folded") == plain.subtasks("folded")
        assert ran.counters() == plain.counters()


def folds(job: JobProgram) -> bool:
    return any(REMARK in texts for vertex in job.vertices for _, texts in vertex.remarks)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("assigner", ASSIGNERS)
@pytest.mark.parametrize("fold", FOLDS)
@settings(max_examples=3, deadline=None)
@given(
    count=st.integers(1, 400),
    step=st.integers(1, 7),
    keys=st.integers(1, 9),
    batch_size=st.sampled_from((1, 7, 64)),
    parallelism=st.sampled_from((1, 2)),
    senders=st.sampled_from((1, 2, 3)),
)
def test_folding_changes_no_result_order_or_count(
    assigner: str,
    fold: str,
    mode: str,
    count: int,
    step: int,
    keys: int,
    batch_size: int,
    parallelism: int,
    senders: int,
) -> None:
    def drawn(env: Any) -> None:
        draw(env, count, step, keys, ASSIGNERS[assigner], FOLDS[fold], senders)

    how = {"batch_size": batch_size, "parallelism": parallelism, "mode": mode}
    folding = job_of(drawn, **how)
    assert folds(folding) is (mode == "STREAMING" or fold != "last")
    gives_the_same_as_without(folding, drawn, **how)


class OfWindow(ProcessWindowFunction[Any, Any, int, Any]):
    """A result -> (key, result, end of the window)."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        for count in elements:
            yield key, count, context.window().end


class GreatestResults(Greatest):
    def add(self, value: Any, accumulator: Any) -> Any:
        if not accumulator or value[1] > accumulator[0][1]:
            return [value]
        if value[1] == accumulator[0][1]:
            accumulator.append(value)
        return accumulator


NEXT_FOLDS: dict[str, Any] = {
    "count": FOLDS["count"],
    "several": FOLDS["several"],
    "first of the greatest": FOLDS["first of the greatest"],
    "all greatest": lambda windows: windows.aggregate(GreatestResults()),
}


@pytest.mark.slow
@pytest.mark.parametrize("fold", NEXT_FOLDS)
@settings(max_examples=12, deadline=None)
@given(
    count=st.integers(1, 400),
    step=st.integers(1, 7),
    keys=st.integers(1, 30),
    batch_size=st.sampled_from((1, 7, 64)),
    parallelism=st.sampled_from((1, 2)),
    lateness=st.sampled_from((0, 30)),
    mode=st.sampled_from(MODES),
    assigner=st.sampled_from((*ASSIGNERS,)),
    next_assigner=st.sampled_from((*ASSIGNERS,)),
)
def test_the_results_of_windows_are_folded_for_the_next_windows(
    fold: str,
    mode: str,
    count: int,
    step: int,
    keys: int,
    batch_size: int,
    parallelism: int,
    lateness: int,
    assigner: str,
    next_assigner: str,
) -> None:
    def twice(windows: Any) -> Any:
        counts = windows.allowed_lateness(lateness).aggregate(Count(), OfWindow())
        by_end = counts.key_by(lambda row: row[2] // 20).window(ASSIGNERS[next_assigner])
        return NEXT_FOLDS[fold](by_end)

    def drawn(env: Any) -> None:
        draw(env, count, step, keys, ASSIGNERS[assigner], twice, parallelism)

    how = {"batch_size": batch_size, "parallelism": parallelism, "mode": mode}
    job = job_of(drawn, **how)
    # Other functions may emit records too, such as results of late windows. Their types are unknown.
    needs_types = fold in ("several", "first of the greatest")
    is_folded = REMARK in dict(job.vertices[1].remarks)[0]
    assert is_folded is (mode == "STREAMING" or not needs_types)
    gives_the_same_as_without(job, drawn, **how)


class Twice(KeyedProcessFunction):
    """Emits each record, and the key once more when a timer fires."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1] + 15)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp


@pytest.mark.parametrize("fold", ["count", "first", "last"])
@pytest.mark.parametrize("batch_size", [7, 64])
def test_the_results_of_timers_are_folded_between_records(fold: str, batch_size: int) -> None:
    def timers(windows: Any) -> Any:
        keyed = windows.process(Twice()).key_by(lambda row: row[0])
        return FOLDS[fold](keyed.window(ASSIGNERS["sliding"]))

    def drawn(env: Any) -> None:
        strategy = in_order(lambda row, _: row[1])
        rows = env.from_sequence(1, 200).map(lambda x: (x * 3 % 5, x - x * 3 % 11))
        timed = rows.assign_timestamps_and_watermarks(strategy)
        seen(timers(timed.key_by(lambda row: row[0])), "folded")

    job = job_of(drawn, batch_size=batch_size)
    assert REMARK in dict(job.vertices[1].remarks)[0]
    ran = run_job(job)
    expected = run_form(drawn, "interpreted", batch_size=batch_size)
    assert ran.subtasks("folded") == expected.subtasks("folded")
    assert ran.counters() == expected.counters()


class Mean(Count):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]


class Range(Count):
    def create_accumulator(self) -> Any:
        return 3, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return min(accumulator[0], value[1]), max(accumulator[1], value[1])


class Total(Mean):
    def create_accumulator(self) -> Any:
        return 1

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


ONE_BY_ONE: dict[str, Any] = {
    "sum": lambda windows: windows.reduce(lambda a, b: (a[0], a[1] + b[1], a[2])),
    "least": lambda windows: windows.reduce(lambda a, b: (a[0], min(a[1], b[1]), a[2])),
    "greatest": lambda windows: windows.reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2])),
    "mean": lambda windows: windows.aggregate(Mean()),
    "range": lambda windows: windows.aggregate(Range()),
    "total": lambda windows: windows.aggregate(Total()),
}
NUMBERS = (1, 2, -3, 10**20, 0.1, 0.2, 1e300, -0.0, math.nan, math.inf, True, Fraction(1, 3))


def draw_numbers(env: Any, numbers: Sequence[Any], assigner: Any, fold: Any, senders: int) -> None:
    """Out-of-order records with values whose type is unknown at compile time."""
    strategy = in_order(lambda row, _: row[2])
    rows = env.from_sequence(1, 200).set_parallelism(senders)
    pairs = rows.map(lambda x: (x, numbers[x % len(numbers)])).set_parallelism(senders)
    rows = pairs.map(lambda pair: (pair[0] % 3, pair[1], pair[0] - pair[0] * 7 % 11))
    timed = rows.set_parallelism(senders).assign_timestamps_and_watermarks(strategy)
    windows = timed.set_parallelism(senders).key_by(lambda row: row[0]).window(assigner)
    seen(fold(windows).map(repr), "folded")


@pytest.mark.slow
@pytest.mark.parametrize("fold", ONE_BY_ONE)
@settings(max_examples=12, deadline=None)
@given(
    assigner=st.sampled_from((*ASSIGNERS,)),
    numbers=st.one_of(
        st.lists(st.sampled_from(NUMBERS), min_size=1),
        st.lists(st.sampled_from((1, 0.1, 0.2)), min_size=1),
    ),
    batch_size=st.sampled_from((7, 64)),
    senders=st.sampled_from((1, 2)),
)
def test_numbers_of_unknown_types_are_folded_one_by_one(
    fold: str, assigner: str, numbers: list[Any], batch_size: int, senders: int
) -> None:
    def drawn(env: Any) -> None:
        draw_numbers(env, numbers, ASSIGNERS[assigner], ONE_BY_ONE[fold], senders)

    job = job_of(drawn, batch_size=batch_size)
    assert folds(job)
    ran = run_job(job)
    expected = run_form(drawn, "interpreted", batch_size=batch_size)
    assert ran.subtasks("folded") == expected.subtasks("folded")
    assert ran.counters() == expected.counters()


@pytest.mark.parametrize("number", [None, "a"])
def test_values_that_are_not_numbers_fail_in_the_window_operator(number: Any) -> None:
    def drawn(env: Any) -> None:
        draw_numbers(env, [1, 2, 3, number], ASSIGNERS["tumbling"], ONE_BY_ONE["sum"], 1)

    job = job_of(drawn)
    assert folds(job)
    with pytest.raises(TypeError) as expected:
        run_form(drawn, "interpreted")
    with pytest.raises(TypeError) as failed:
        run_job(job)
    assert str(failed.value) == str(expected.value)
    assert "TumblingEventTimeWindows" in failed.value.__notes__[0]


@pytest.mark.parametrize(
    ("key_type", "keys"),
    [
        (Types.INT(), (1, 2, 1.5, 2.0)),
        (Types.STRING(), ("a", "b")),
        (Types.DOUBLE(), (0.0, -0.0, 1.0)),
    ],
)
def test_declared_keys_are_folded_if_their_class_is_plain(
    key_type: Any, keys: tuple[Any, ...]
) -> None:
    def drawn(env: Any) -> None:
        strategy = in_order(lambda x, _: x)
        timed = env.from_sequence(0, 60).assign_timestamps_and_watermarks(strategy)
        keyed = timed.key_by(lambda x: keys[x % len(keys)], key_type=key_type)
        seen(keyed.window(TumblingEventTimeWindows.of(10)).reduce(lambda a, b: a + b), "sums")

    job = job_of(drawn)
    assert folds(job) is (key_type != Types.DOUBLE())
    assert run_job(job).subtasks("sums") == run_form(drawn, "interpreted").subtasks("sums")


def test_a_tumbling_window_gets_one_partial_result_of_out_of_order_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = noted_sizes(monkeypatch)

    def drawn(env: Any) -> None:
        strategy = in_order(lambda row, _: row[1])
        rows = env.from_sequence(0, 49).map(lambda x: (x % 2, x % 3 * 10)).set_parallelism(1)
        timed = rows.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        windows = timed.key_by(lambda row: row[0]).window(TumblingEventTimeWindows.of(10))
        seen(windows.aggregate(Count()), "counts")

    ran = run_form(drawn, batch_size=50)
    assert sum(ran.records("counts")) == 50
    assert sum(sizes) == 6


@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_late_record_counter_includes_records_in_partial_results(
    parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[int] = []
    close = AlignedWindowOperator.close

    def closed(operator: AlignedWindowOperator) -> None:
        assert operator.late_records_dropped is not None
        dropped.append(operator.late_records_dropped.get_count())
        close(operator)

    monkeypatch.setattr(AlignedWindowOperator, "close", closed)

    def drawn(env: Any) -> None:
        strategy = in_order(lambda row, _: row[1])
        rows = env.from_sequence(0, 99).set_parallelism(1)
        rows = rows.map(lambda x: (x % 2, 1000 - x // 10 * 100)).set_parallelism(1)
        timed = rows.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        windows = timed.key_by(lambda row: row[0]).window(TumblingEventTimeWindows.of(50))
        seen(windows.aggregate(Count()), "counts")

    for without in ("", "fold_windows"):
        dropped.clear()
        ran = run_form(drawn, without=without, batch_size=10, parallelism=parallelism)
        assert sum(ran.records("counts")) == 10
        assert sum(dropped) == 90


def noted_sizes(monkeypatch: pytest.MonkeyPatch, size_of: Callable[[Any], int] = len) -> list[int]:
    """A list that gets the size of each batch of partial results that a window operator takes."""
    sizes: list[int] = []
    process = AlignedWindowOperator.process_folded

    def noted(self: Any, batch: Any, timestamps: Any) -> None:
        sizes.append(size_of(batch))
        process(self, batch, timestamps)

    monkeypatch.setattr(AlignedWindowOperator, "process_folded", noted)
    return sizes


def test_partial_results_are_sent_instead_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = noted_sizes(monkeypatch)
    run_form(lambda env: draw(env, 100, 1, 2, TumblingEventTimeWindows.of(1000), FOLDS["count"]))
    assert 2 <= sum(sizes) < 10


def test_folding_before_sending_stops_if_most_keys_occur_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window_folds, "TRIED", 50)
    sizes = noted_sizes(monkeypatch)

    def drawn(env: Any) -> None:
        draw(env, 500, 1, 1000, TumblingEventTimeWindows.of(1000), FOLDS["count"])

    ran = run_form(drawn, batch_size=25)
    assert 50 <= sum(sizes) < 100
    assert ran.records("folded") == run_form(drawn, "interpreted", batch_size=25).records("folded")


def test_folding_before_sending_stops_if_it_keeps_most_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window_folds, "TRIED", 50)
    sizes = noted_sizes(monkeypatch, lambda batch: sum(map(len, batch.lists[-1])))

    def drawn(env: Any) -> None:
        strategy = in_order(lambda row, _: row[2])
        rows = env.from_sequence(0, 499).map(lambda x: (x % 2, 7, x)).set_parallelism(1)
        timed = rows.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        windows = timed.key_by(lambda row: row[0]).window(TumblingEventTimeWindows.of(1000))
        seen(windows.aggregate(Greatest()), "ties")

    ran = run_form(drawn, batch_size=25)
    assert 50 <= sum(sizes) < 100
    assert ran.records("ties") == run_form(drawn, "interpreted", batch_size=25).records("ties")


def test_keys_of_mixed_types_keep_their_order() -> None:
    def drawn(env: Any) -> None:
        strategy = in_order(lambda x, _: x)
        timed = env.from_sequence(0, 60).assign_timestamps_and_watermarks(strategy)
        keyed = timed.key_by(lambda x: (True, 1, 1.0, "a")[x % 7 % 4])
        seen(keyed.window(TumblingEventTimeWindows.of(10)).reduce(lambda a, b: a + b), "sums")

    job = job_of(drawn)
    assert folds(job)
    assert run_job(job).subtasks("sums") == run_form(drawn, "interpreted").subtasks("sums")


NOT_FOLDED: dict[str, Any] = {
    "a start that would be added twice": lambda windows: windows.aggregate(FromFive()),
    "a product": lambda windows: windows.reduce(lambda a, b: (a[0], a[1] * b[1])),
    "a difference": lambda windows: windows.reduce(lambda a, b: (a[0], a[1] - b[1])),
    "late records fire again": lambda windows: windows.allowed_lateness(5).aggregate(Count()),
    "a longer record": lambda windows: windows.reduce(lambda a, b: (a[0],)),
    "records that are greater too": lambda windows: windows.aggregate(SameOrGreater()),
    "an accumulator after a change": lambda windows: windows.aggregate(Changed()),
    "two fields": lambda windows: windows.reduce(lambda a, b: a if a[0] >= b[1] else b),
    "two ranks": lambda windows: windows.reduce(
        lambda a, b: a if a[1] > b[1] or a[0] > b[0] else b
    ),
    "records that differ": lambda windows: windows.reduce(lambda a, b: a if a[1] != b[1] else b),
}


@pytest.mark.parametrize("fold", NOT_FOLDED)
def test_folds_that_are_not_associative_run_only_in_the_window_operator(fold: str) -> None:
    def drawn(env: Any) -> None:
        draw(env, 50, 3, 4, TumblingEventTimeWindows.of(20), NOT_FOLDED[fold])

    job = job_of(drawn)
    assert not folds(job)
    assert run_job(job).subtasks("folded") == run_form(drawn, "interpreted").subtasks("folded")


RANKS: dict[str, Any] = {
    "floats": lambda x: float("nan") if x % 5 == 0 else x / 2,
    "ints and floats": lambda x: (x % 4, x % 6 / 2)[x % 3 % 2],
    "texts": lambda x: str(x % 13),
}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("fold", ["all greatest", "first of the greatest"])
def test_records_are_sent_whole_if_their_ranks_are_not_ints(ranks: str, fold: str) -> None:
    class Greatest2(Greatest):
        def add(self, value: Any, accumulator: Any) -> Any:
            if not accumulator or value[1] > accumulator[0][1]:
                return [value]
            if value[1] == accumulator[0][1]:
                accumulator.append(value)
            return accumulator

    def drawn(env: Any) -> None:
        strategy = in_order(lambda row, _: row[2])
        rank = RANKS[ranks]
        rows = env.from_sequence(0, 99).map(lambda x: (x % 3, rank(x), x))
        keyed = rows.assign_timestamps_and_watermarks(strategy).key_by(lambda row: row[0])
        windows = keyed.window(TumblingEventTimeWindows.of(20))
        found = windows.aggregate(Greatest2()) if "all" in fold else FOLDS[fold](windows)
        seen(found.map(repr), "greatest")

    job = job_of(drawn, batch_size=16)
    assert folds(job)
    expected = run_form(drawn, "interpreted", batch_size=16)
    assert run_job(job).subtasks("greatest") == expected.subtasks("greatest")


SELECTIONS: dict[str, Any] = {
    "all greatest": lambda windows: windows.aggregate(GreatestResults()),
    "first of the greatest": lambda windows: windows.reduce(lambda a, b: b if b[1] > a[1] else a),
    "last of the greatest": lambda windows: windows.reduce(lambda a, b: b if b[1] >= a[1] else a),
    "first of the least": lambda windows: windows.reduce(lambda a, b: b if b[1] < a[1] else a),
    "first": FOLDS["first"],
    "count": FOLDS["count"],
}


def draw_ranks(env: Any, ranks: Sequence[Any], assigner: Any, fold: Any, senders: int) -> None:
    """Records whose ranks have an unknown type, and whose order is not that of time."""
    strategy = in_order(lambda row, _: row[2])
    rows = env.from_sequence(1, 200).set_parallelism(senders)
    pairs = rows.map(lambda x: (x, ranks[x * 5 // 3 % len(ranks)])).set_parallelism(senders)
    rows = pairs.map(lambda pair: (pair[0] % 3, pair[1], pair[0] * 37 % 90)).set_parallelism(
        senders
    )
    timed = rows.assign_timestamps_and_watermarks(strategy).set_parallelism(senders)
    seen(fold(timed.key_by(lambda row: row[0]).window(assigner)).map(repr), "folded")


@pytest.mark.slow
@pytest.mark.parametrize("fold", SELECTIONS)
@settings(max_examples=20, deadline=None)
@given(
    assigner=st.sampled_from((*ASSIGNERS,)),
    ranks=st.lists(st.sampled_from((1, 2, 3, 7, 2.5, True, math.nan, math.inf)), min_size=1),
    batch_size=st.sampled_from((7, 64, 256)),
    senders=st.sampled_from((1, 2)),
)
def test_batch_mode_selects_records_as_if_all_were_sorted_by_time(
    fold: str, assigner: str, ranks: list[Any], batch_size: int, senders: int
) -> None:
    def drawn(env: Any) -> None:
        draw_ranks(env, ranks, ASSIGNERS[assigner], SELECTIONS[fold], senders)

    how = {"batch_size": batch_size, "mode": "BATCH"}
    job = job_of(drawn, **how)
    assert folds(job)
    gives_the_same_as_without(job, drawn, **how)


NOT_FOLDED_IN_BATCH: dict[str, Any] = {
    "the last record": FOLDS["last"],
    "records that replace a NaN": FOLDS["first of the greatest"],
    "a sum of unknown numbers": ONE_BY_ONE["sum"],
    "the first of a field": lambda windows: windows.reduce(lambda a, b: (a[0], a[1], b[2])),
}


@pytest.mark.parametrize("fold", NOT_FOLDED_IN_BATCH)
def test_batch_mode_does_not_fold_where_results_depend_on_the_order(fold: str) -> None:
    ranks = (2, math.nan, 0.1, 7, 1e16, 3, 0.7)

    def drawn(env: Any) -> None:
        draw_ranks(env, ranks, ASSIGNERS["tumbling"], NOT_FOLDED_IN_BATCH[fold], 1)

    assert folds(job_of(drawn))
    job = job_of(drawn, mode="BATCH")
    assert not folds(job)
    gives_the_same_as_without(job, drawn, mode="BATCH")


@pytest.mark.parametrize("ranks", [(1, 2, None, 7), (3, "a", 2, 9), (1, None)])
@pytest.mark.parametrize("fold", ["all greatest", "first of the greatest"])
def test_batch_mode_fails_at_the_same_rank(fold: str, ranks: tuple[Any, ...]) -> None:
    def drawn(env: Any) -> None:
        draw_ranks(env, ranks, ASSIGNERS["sliding"], SELECTIONS[fold], 2)

    assert folds(job_of(drawn, mode="BATCH"))
    failed, expected = (
        failure_of(drawn, form, mode="BATCH") for form in ("inlined", "interpreted")
    )
    assert (type(failed), str(failed)) == (type(expected), str(expected))


def test_batch_mode_does_not_fold_records_of_several_vertices() -> None:
    def drawn(env: Any) -> None:
        strategy = in_order(lambda row, _: row[1])
        ints, halves = (
            env.from_sequence(1, 90)
            .map(lambda x: (x % 3, x * 7 % 50))
            .assign_timestamps_and_watermarks(strategy)
            for _ in range(2)
        )
        both = ints.union(halves.map(lambda row: (row[0], row[1] / 10)))
        windows = both.key_by(lambda row: row[0]).window(ASSIGNERS["tumbling"])
        seen(FOLDS["sum"](windows), "folded")

    assert folds(job_of(drawn))
    job = job_of(drawn, mode="BATCH")
    assert not folds(job)
    gives_the_same_as_without(job, drawn, mode="BATCH")


def test_window_all_gets_one_partial_result_per_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = noted_sizes(monkeypatch)

    def drawn(env: Any) -> None:
        strategy = in_order(lambda row, _: row[1])
        rows = env.from_sequence(0, 99).map(lambda x: (x % 7, x)).set_parallelism(1)
        timed = rows.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        windows = timed.window_all(TumblingEventTimeWindows.of(1000))
        seen(windows.reduce(lambda a, b: a if a[0] >= b[0] else b), "greatest")

    ran = run_form(drawn, batch_size=50)
    assert ran.records("greatest") == [(6, 6)]
    assert 1 <= sum(sizes) < 5


def test_late_records_for_a_side_output_are_not_folded() -> None:
    def drawn(env: Any) -> None:
        def fold(windows: Any) -> Any:
            counts = windows.side_output_late_data(LATE).aggregate(Count())
            seen(counts.get_side_output(LATE), "late")
            return counts

        draw(env, 50, 3, 4, TumblingEventTimeWindows.of(5), fold)

    assert not folds(job_of(drawn))
