from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen

from opchain.common import Duration, WatermarkGenerator, WatermarkStrategy
from opchain.datastream.functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.runtime.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Watermarks(ProcessFunction[tuple[str, int], int]):
    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterator[int]:
        yield ctx.timer_service().current_watermark()


class Watermarks2(CoProcessFunction[Any, Any, int]):
    def process_element1(self, value: Any, ctx: Any) -> Iterator[int]:
        yield ctx.timer_service().current_watermark()

    def process_element2(self, value: Any, ctx: Any) -> tuple[()]:
        return ()


def strategy(idle_ms: int | None = None) -> Any:
    made = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    return made if idle_ms is None else made.with_idleness(Duration.of_millis(idle_ms))


def draw(env: Any) -> None:
    stream = given(env, "events", strategy()).key_by(lambda value: value[0])
    seen(stream.process(Watermarks()), "watermarks")


NONE = -(2**63)


@pytest.mark.parametrize("restarts", [False, True])
def test_watermarks_continue_in_the_next_epoch(tmp_path: Path, restarts: bool) -> None:
    run = EpochRun(draw, tmp_path, 2)
    assert set(run.run(events=[("a", 50), ("b", 70)]).records("watermarks")) == {NONE}
    run = run.restarted() if restarts else run
    # The smaller watermark of the two sources counts; that of "a" advances before "b" is read.
    assert sorted(run.run(events=[("a", 80), ("b", 90)]).records("watermarks")) == [49, 69]
    run = run.restarted() if restarts else run
    assert run.run(events=[("a", 10), ("b", 10)]).records("watermarks") == [79, 79]
    run.close()


def test_at_another_parallelism_all_subtasks_start_at_the_slowest_watermark(tmp_path: Path) -> None:
    run = EpochRun(draw, tmp_path, 2)
    run.run(events=[("a", 50), ("b", 70)])
    run = run.restarted(3)
    assert run.run(events=[("a", 5), ("b", 5), ("c", 5)]).records("watermarks") == [49] * 3
    run.close()


def idle(env: Any) -> None:
    one = given(env, "one", strategy(100))
    two = given(env, "two", strategy(100))
    seen(one.union(two).key_by(lambda value: value[0]).process(Watermarks()), "watermarks")


@pytest.mark.parametrize("restarts", [False, True])
def test_an_input_without_records_becomes_idle(tmp_path: Path, restarts: bool) -> None:
    run = EpochRun(idle, tmp_path)
    ran = run.run(1_000, one=[("a", 50)], two=[("a", 10)])
    assert run.next_timer_ms(ran) == 1_101
    run = run.restarted() if restarts else run
    ran = run.run(1_050, one=[("a", 60)])
    assert ran.records("watermarks") == [9]
    run = run.restarted() if restarts else run
    run.run(1_120)
    run = run.restarted() if restarts else run
    assert run.run(1_200, one=[("a", 80)]).records("watermarks")[0] >= 49
    run.close()


def idle_later(env: Any) -> None:
    one = given(env, "one").assign_timestamps_and_watermarks(strategy(100))
    two = given(env, "two").assign_timestamps_and_watermarks(strategy(100))
    seen(one.union(two).key_by(lambda value: value[0]).process(Watermarks()), "watermarks")


@pytest.mark.parametrize("draw_idle", [idle, idle_later])
@pytest.mark.parametrize("how", ["live", "restarted", "moved"])
def test_records_of_an_epoch_are_not_late_because_a_timeout_ends_in_it(
    tmp_path: Path, how: str, draw_idle: Any
) -> None:
    process = [0]
    run = EpochRun(draw_idle, tmp_path, processes=2, process_of=lambda _: process[0])
    run.run(1_000, one=[("a", 10)], two=[("a", 90)])
    run = run.restarted() if how == "restarted" else run
    process[0] = int(how == "moved")
    assert run.run(1_500, one=[("a", 50)]).records("watermarks") == [9]
    process[0] = 0
    # The second input became idle at the end of the epoch.
    assert run.run(1_501, one=[("a", 60)]).records("watermarks") == [49]
    run.close()


def alarmed(value: tuple[str, int], ctx: Any) -> Iterator[Any]:
    """A late record, or later its time."""
    if value[1] <= ctx.timer_service().current_watermark():
        yield "late", value[1]
    ctx.timer_service().register_event_time_timer(value[1])


class Alarms(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from alarmed(value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield timestamp


class Alarms2(KeyedCoProcessFunction[Any, Any, Any, Any]):
    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from alarmed(value, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from alarmed(value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield timestamp


def united(env: Any, *, is_later: bool = False) -> Any:
    one, two = (
        given(env, name).assign_timestamps_and_watermarks(strategy(100))
        if is_later
        else given(env, name, strategy(100))
        for name in ("one", "two")
    )
    return one.union(two).key_by(lambda value: value[0]).process(Alarms())


def connected(env: Any) -> Any:
    def key(value: Any) -> Any:
        return value[0]

    one, two = given(env, "one", strategy(100)), given(env, "two", strategy(100))
    return one.key_by(key).connect(two.key_by(key)).process(Alarms2())


QUIET = {
    "subtasks": lambda env: (
        given(env, "one", strategy(100)).key_by(lambda value: value[0]).process(Alarms())
    ),
    "union": united,
    "later": lambda env: united(env, is_later=True),
    "connect": connected,
}


@pytest.mark.parametrize("draws", QUIET)
@pytest.mark.parametrize("is_first_behind", [True, False])
@pytest.mark.parametrize("idle_at", [(), (1_200,), (1_200, 1_201)])
@pytest.mark.parametrize("restarts", [False, True])
def test_no_record_is_late_when_idle_inputs_become_active_in_one_epoch(
    tmp_path: Path, draws: str, is_first_behind: bool, idle_at: tuple[int, ...], restarts: bool
) -> None:
    def run_epoch(now_ms: int, one: list[int], two: list[int]) -> list[Any]:
        """Both inputs have two records. With "subtasks", a source has a subtask for each of them."""
        nonlocal run
        run = run.restarted() if restarts else run
        one_, two_ = ([("a", time) for time in times] for times in (one, two))
        inputs = {"one": one_ + two_} if draws == "subtasks" else {"one": one_, "two": two_}
        return run.run(now_ms, **inputs).records("alarms")

    run = EpochRun(
        lambda env: seen(QUIET[draws](env), "alarms"), tmp_path, 1 + (draws == "subtasks")
    )
    run_epoch(1_000, *([1, 1], [2, 2])[:: 1 if is_first_behind else -1])
    for now_ms in idle_at:
        run_epoch(now_ms, [], [])
    fired = run_epoch(1_300, [25, 30], [15, 26])
    assert [time for time in fired if time not in (1, 2)] == [15, 25]
    # The second input is idle throughout this epoch. The first one ends the wait at its barrier.
    if draws != "subtasks":
        assert run_epoch(1_500, [40], []) == [26, 30]
    run.close()


@pytest.mark.parametrize("parallelism", [1, 3, 8])
def test_a_finished_bounded_source_is_ignored_at_another_parallelism(
    tmp_path: Path, parallelism: int
) -> None:
    def mixed(env: Any) -> None:
        ended = env.from_collection([("a", 5)]).assign_timestamps_and_watermarks(strategy())
        events = given(env, "events", strategy()).union(ended)
        seen(events.key_by(lambda value: value[0]).process(Watermarks()), "watermarks")

    run = EpochRun(mixed, tmp_path, 2)
    run.run(events=[("a", 50), ("b", 50)])
    for size in (parallelism, 2):
        run = run.restarted(size)
        run.run(events=[("a", 70)] * 8)
        assert set(run.run(events=[("b", 70)] * 8).records("watermarks")) == {69}
    run.close()


@pytest.mark.parametrize("moved", [("counts",), ("quiet",), ("quiet", "counts")])
def test_an_idle_input_is_ignored_at_another_parallelism(
    tmp_path: Path, moved: tuple[str, ...]
) -> None:
    sizes = {"quiet": 1, "counts": 2}

    def of_sizes(env: Any) -> None:
        quiet = given(env, "quiet", strategy(100)).set_parallelism(sizes["quiet"])
        loud = given(env, "loud", strategy()).set_parallelism(1)
        keyed = loud.connect(quiet).key_by(lambda value: value[0], lambda value: value[0])
        seen(keyed.process(Watermarks2()).set_parallelism(sizes["counts"]), "watermarks")

    run = EpochRun(of_sizes, tmp_path)
    run.run(1_000, loud=[("a", 10)], quiet=[("a", 10)])
    run.run(1_200)
    assert run.run(1_201, loud=[("a", 30)]).records("watermarks") == [9]
    for name in moved:
        sizes[name] = 3
    run = run.restarted()
    # A source with another parallelism starts over, and is idle when its timeout is over.
    run.run(1_210, loud=[("a", 50)])
    run.run(1_400)
    assert run.run(1_410, loud=[("a", 60)]).records("watermarks") == [49]
    run.run(1_420, quiet=[("a", 55)] * 3)
    # It is active again and counts again; event time does not go back.
    run.run(1_430, loud=[("a", 90)])
    assert run.run(1_440, loud=[("a", 91)]).records("watermarks") == [59]
    run.close()


def test_an_operator_added_after_a_finished_source_knows_that_the_source_ended(
    tmp_path: Path,
) -> None:
    has_more = False

    def mixed(env: Any) -> None:
        ended = env.from_collection([("a", 5)]).uid("ended")
        if has_more:
            ended = ended.map(lambda value: value).uid("more").disable_chaining()
        events = given(env, "events", strategy()).union(ended)
        seen(events.key_by(lambda value: value[0]).process(Watermarks()), "watermarks")

    run = EpochRun(mixed, tmp_path)
    run.run(events=[("a", 50)])
    has_more = True
    run = run.restarted()
    run.run(events=[("a", 70)])
    assert run.run(events=[("a", 80)]).records("watermarks") == [69]
    run.close()


@pytest.mark.parametrize("parallelism", [2, 3])
@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "idle"])
def test_an_operator_added_to_a_chain_forwards_the_progress_of_its_source(
    tmp_path: Path, parallelism: int, is_ended: bool
) -> None:
    has_more = False

    def mixed(env: Any) -> None:
        if is_ended:
            quiet = env.from_collection([("a", 5)]).uid("ended")
        else:
            quiet = given(env, "quiet", strategy(100)).set_parallelism(1)
        if has_more:
            quiet = quiet.map(lambda value: value).uid("more").set_parallelism(1)
        events = given(env, "events", strategy()).union(quiet)
        seen(events.key_by(lambda value: value[0]).process(Watermarks()), "watermarks")

    run = EpochRun(mixed, tmp_path, 2)
    run.run(1_000, events=[("a", 50)] * 8, quiet=[("a", 5)])
    run.run(1_200)
    run.run(1_201)
    has_more = True
    run = run.restarted(parallelism)
    run.run(1_202, events=[("a", 70)] * 8)
    assert set(run.run(1_203, events=[("a", 80)] * 8).records("watermarks")) == {69}
    run.close()


class Unpicklable(WatermarkGenerator[Any]):
    def __init__(self) -> None:
        self.held = (item for item in ())

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        pass

    def on_periodic_emit(self, output: Any) -> None:
        pass


def test_a_watermark_generator_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    def unkept(env: Any) -> None:
        made = WatermarkStrategy.for_generator(lambda _: Unpicklable())
        seen(given(env, "events", made), "events")

    run = EpochRun(unkept, tmp_path)
    with pytest.raises(StateError, match=r"'Source: events' .* Unpicklable, can't be pickled"):
        run.run(events=[("a", 1)])
