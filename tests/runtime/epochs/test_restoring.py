from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, Numbered, given
from forms import FORMS, seen

from opchain.common import Time, Types, WatermarkStrategy
from opchain.datastream.functions import (
    AggregateFunction,
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.checkpoint.restore_plan import match_state
from opchain.runtime.errors import CheckpointError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NONE = -(2**63)


class Remember(KeyedProcessFunction[str, str, Any]):
    descriptor: Any = ValueStateDescriptor("last", Types.STRING())

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(self.descriptor)

    def process_element(self, value: str, ctx: Any) -> Iterator[Any]:
        yield self.last.value()
        self.last.update(value)


class RememberNumber(Remember):
    descriptor = ValueStateDescriptor("last", Types.LONG())


class RememberBoth(Remember, KeyedCoProcessFunction):
    def process_element1(self, value: str, ctx: Any) -> Iterator[Any]:
        return self.process_element(value, ctx)

    process_element2 = process_element1


class RememberList(Remember):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.STRING()))

    def process_element(self, value: str, ctx: Any) -> Iterator[Any]:
        yield list(self.last.get())


def remembering(function: Any, uid: str = "remember", more: bool = False) -> Callable[[Any], None]:
    def draw(env: Any) -> None:
        words = given(env, "words")
        if more:
            words = words.map(lambda word: word).uid("more").disable_chaining()
        seen(words.key_by(lambda word: word).process(function()).uid(uid), "last")

    return draw


def test_only_operators_with_state_are_described(tmp_path: Path) -> None:
    run = EpochRun(remembering(Remember), tmp_path)
    run.run(words=["a"])
    assert run.latest is not None
    (operator,) = run.latest.operators
    assert (operator.uid, operator.is_keyed) == ("remember", True)
    assert [(state.name, state.kind) for state in operator.states] == [
        ("last", "ValueStateDescriptor"),
        ("user-timers", "timers"),
    ]
    run.close()


def test_state_is_matched_by_uid_in_a_changed_program(tmp_path: Path) -> None:
    run = EpochRun(remembering(Remember), tmp_path)
    run.run(words=["a"])
    run.draw = remembering(Remember, more=True)
    changed = run.restarted()
    assert changed.run(words=["a", "b"]).records("last") == ["a", None]
    changed.close()


def test_state_that_no_operator_claims_is_refused_or_dropped(tmp_path: Path) -> None:
    run = EpochRun(remembering(Remember), tmp_path)
    run.run(words=["a"])
    run.draw = remembering(Remember, uid="another")
    changed = run.restarted()
    assert changed.latest is not None
    with pytest.raises(CheckpointError, match=r"no operator claims the state of .*uid 'remember'"):
        match_state(changed.latest, changed.job)
    match_state(changed.latest, changed.job, allow_non_restored_state=True)
    assert changed.run(words=["a"]).records("last") == [None]
    changed.close()


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (RememberNumber, "state 'last' .*type"),
        (RememberList, "'last'.*ListState"),
    ],
)
def test_a_state_with_a_changed_type_is_refused(tmp_path: Path, function: Any, told: str) -> None:
    run = EpochRun(remembering(Remember), tmp_path)
    run.run(words=["a"])
    run.draw = remembering(function)
    with pytest.raises(StateError, match=told):
        run.restarted().run(words=["a"])


def test_an_operator_may_get_a_second_input(tmp_path: Path) -> None:
    run = EpochRun(remembering(Remember), tmp_path)
    run.run(words=["a"])

    def draw(env: Any) -> None:
        words, more = (given(env, name).key_by(lambda word: word) for name in ("words", "more"))
        seen(words.connect(more).process(RememberBoth()).uid("remember"), "last")

    run.draw = draw
    changed = run.restarted()
    assert changed.latest is not None
    match_state(changed.latest, changed.job)
    assert changed.run(words=["a"], more=["b", "b"]).records("last") == ["a", None, "b"]
    changed.close()


def test_keyed_state_is_refused_by_an_operator_without_a_key(tmp_path: Path) -> None:
    run = EpochRun(remembering(Remember), tmp_path)
    run.run(words=["a"])
    run.draw = lambda env: seen(given(env, "words").map(Numbered()).uid("remember"), "last")
    changed = run.restarted()
    assert changed.latest is not None
    with pytest.raises(CheckpointError, match=r"not keyed now: call key_by\(\) before it"):
        match_state(changed.latest, changed.job)


def test_a_changed_number_of_key_groups_is_refused(tmp_path: Path) -> None:
    run = EpochRun(remembering(Remember), tmp_path, settings={"max_parallelism": 8})
    run.run(words=["a"])
    run.settings = {"max_parallelism": 16}
    changed = run.restarted()
    assert changed.latest is not None
    with pytest.raises(CheckpointError, match=r"8 key groups.*set_max_parallelism\(8\)"):
        match_state(changed.latest, changed.job)


def test_an_operator_that_restores_state_by_uid_hash_writes_new_base_files(tmp_path: Path) -> None:
    old_id: str | None = None

    def draw(env: Any) -> None:
        last = given(env, "words").key_by(lambda word: word).process(Remember()).uid("remember")
        numbers = last.map(Numbered())
        numbers = numbers.uid("old") if old_id is None else numbers.uid("new").set_uid_hash(old_id)
        seen(numbers, "numbers")

    run = EpochRun(draw, tmp_path)
    run.run(words=["a", "b"])
    assert run.latest is not None
    old_id = next(found.operator_id for found in run.latest.operators if found.uid == "old")
    changed = run.restarted()
    assert changed.run(words=["a"]).records("numbers") == [3]
    assert changed.latest is not None
    assert all(old_id not in task.state.operators for task in changed.latest.tasks)
    changed.close()


class Either(CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class At(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value[0], ctx.timer_service().current_watermark()


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_bounded_source_with_the_uid_hash_of_a_finished_source_is_finished(
    tmp_path: Path, parallelism: int
) -> None:
    old_id: str | None = None
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )

    def draw(env: Any) -> None:
        ended = env.from_collection([("ended", 5)])
        ended = ended.uid("old") if old_id is None else ended.uid("new").set_uid_hash(old_id)
        events = given(env, "events", strategy).union(ended)
        seen(events.key_by(lambda value: value[0]).process(At()), "at")

    run = EpochRun(draw, tmp_path)
    assert ("ended", NONE) in run.run(events=[("a", 50)]).records("at")
    assert run.latest is not None
    (old,) = run.latest.input.bounded
    old_id = old.operator_id
    run = run.restarted(parallelism)
    assert [name for name, _ in run.run(events=[("a", 70)] * 2).records("at")] == ["a", "a"]
    assert set(run.run(events=[("a", 80)] * 2).records("at")) == {("a", 69)}
    run.close()


def test_windows_whose_records_are_folded_before_the_exchange_are_restored(tmp_path: Path) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )

    def draw(env: Any) -> None:
        times = given(env, "times").assign_timestamps_and_watermarks(strategy)
        records = times.map(lambda time: (1, "even" if time % 2 == 0 else "odd"))
        windows = records.key_by(lambda record: record[1]).window(
            TumblingEventTimeWindows.of(Time.milliseconds(100))
        )
        seen(windows.reduce(lambda a, b: (a[0] + b[0], a[1])), "counts")

    run = EpochRun(draw, tmp_path)
    run.run(times=[1, 2])
    run.run(times=[3, 4, 5])
    restored = run.restarted()
    assert restored.run(times=[6, 100]).records("counts") == [(3, "odd"), (3, "even")]
    restored.close()


class CountInPlace(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        value["user"] = value["user"].upper()
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def test_windows_are_restored_if_a_function_changes_the_key_of_a_record(tmp_path: Path) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value["time"]
    )

    def draw(env: Any) -> None:
        keyed = given(env, "events", strategy).key_by(lambda event: event["user"])
        windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        seen(windows.aggregate(CountInPlace()), "counts")

    run = EpochRun(draw, tmp_path)
    run.run(events=[{"user": "ada", "time": 1}])
    run.run(events=[{"user": "ada", "time": 2}])
    restored = run.restarted()
    assert restored.run(events=[{"user": "ada", "time": 100}]).records("counts") == [2]
    restored.close()


@pytest.mark.parametrize("changed", ["ba", "ac", "ca", "cba"])
@pytest.mark.parametrize("kind", ["union", "connect"])
def test_no_record_is_late_after_the_inputs_of_an_operator_have_changed(
    tmp_path: Path, kind: str, changed: str
) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    names = "ab"

    def draw(env: Any) -> None:
        first, second, *more = (given(env, name, strategy) for name in names)
        if kind == "union":
            both = first.union(second, *more)
        else:
            both = first.connect(second.union(*more)).map(Either()).uid("both")
        windows = both.key_by(lambda value: value[0]).window(
            TumblingEventTimeWindows.of(Time.milliseconds(10))
        )
        seen(windows.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])).uid("sums"), "sums")

    run = EpochRun(draw, tmp_path)
    run.run(a=[("k", 0, 1), ("k", 1000, 1)], b=[("k", 5, 1)])
    names = changed
    run = run.restarted()
    assert run.run(a=[("k", 1000, 1)]).records("sums") == []
    late = {name: [("k", 6, 1), ("k", 500, 1), ("k", 9000, 1)] for name in set(changed) - {"a"}}
    count = len(late)
    found = run.run(a=[("k", 9001, 1)], **late)
    assert [number for _, _, number in found.records("sums")] == [2 + count, count, 2]
    run.close()


def test_no_record_is_late_after_a_source_has_another_parallelism(tmp_path: Path) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    parallelism = 2

    def draw(env: Any) -> None:
        events = given(env, "events", strategy).set_parallelism(parallelism)
        passed = events.rescale().map(lambda value: value).uid("passed").set_parallelism(2)
        windows = passed.key_by(lambda value: value[0]).window(
            TumblingEventTimeWindows.of(Time.milliseconds(10))
        )
        sums = windows.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])).uid("sums")
        seen(sums.set_parallelism(1), "sums")

    run = EpochRun(draw, tmp_path)
    run.run(events=[("k", 1000, 1), ("k", 5, 1)])
    parallelism = 3
    run = run.restarted()
    # Now the first subtask reads the split with the earlier times.
    run.run(events=[("k", 6, 1), ("k", 1001, 1), ("k", 1001, 1)])
    ended = run.run(events=[("k", 2000, 1), ("k", 2000, 1), ("k", 2000, 1)])
    assert [number for _, _, number in ended.records("sums")] == [2, 3]
    run.close()


@pytest.mark.parametrize("form", FORMS)
def test_a_function_without_state_need_not_get_the_fields_of_its_key(
    tmp_path: Path, form: str
) -> None:
    def draw(env: Any) -> None:
        rows = given(env, "numbers").map(lambda n: (n, 2 * n))
        keyed = rows.key_by(lambda row: row[0] % 2 and row[1] % 7)
        seen(keyed.map(lambda row: row[0]).rebalance().map(lambda n: n), "first")

    run = EpochRun(draw, tmp_path, form=form)
    for number in (1, 2):  # keys are touched from the second epoch on
        assert run.run(numbers=[number]).records("first") == [number]
    run.close()
