from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen
from opchain.common import Duration, WatermarkGenerator, WatermarkStrategy
from opchain.datastream.functions import ProcessFunction
from opchain.runtime.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Watermarks(ProcessFunction[tuple[str, int], int]):
    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterator[int]:
        yield ctx.timer_service().current_watermark()


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
def test_watermarks_go_on(tmp_path: Path, restarts: bool) -> None:
    run = EpochRun(draw, tmp_path, 2)
    assert set(run.run(events=[("a", 50), ("b", 70)]).records("watermarks")) == {NONE}
    run = run.restarted() if restarts else run
    # The smaller watermark of the two sources counts; that of "a" moves on before "b" comes.
    assert sorted(run.run(events=[("a", 80), ("b", 90)]).records("watermarks")) == [49, 69]
    run = run.restarted() if restarts else run
    assert run.run(events=[("a", 10), ("b", 10)]).records("watermarks") == [79, 79]
    run.close()


def test_at_another_parallelism_all_begin_where_the_last_one_was(tmp_path: Path) -> None:
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
def test_an_input_that_stays_away_holds_nobody_back(tmp_path: Path, restarts: bool) -> None:
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


class Unpicklable(WatermarkGenerator[Any]):
    def __init__(self) -> None:
        self.held = (item for item in ())

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        pass

    def on_periodic_emit(self, output: Any) -> None:
        pass


def test_a_generator_that_cannot_be_kept_is_named(tmp_path: Path) -> None:
    def unkept(env: Any) -> None:
        made = WatermarkStrategy.for_generator(lambda _: Unpicklable())
        seen(given(env, "events", made), "events")

    run = EpochRun(unkept, tmp_path)
    with pytest.raises(StateError, match=r"'Source: events' .* Unpicklable, can't be pickled"):
        run.run(events=[("a", 1)])
