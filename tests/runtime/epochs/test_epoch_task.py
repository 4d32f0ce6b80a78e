from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, Numbered, given
from forms import seen

from opchain.common import Duration, Time, Types, WatermarkStrategy
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.errors import CheckpointFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMS = ("interpreted", "generated", "inlined")


class Count(KeyedProcessFunction[str, str, tuple[str, int]]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Iterator[tuple[str, int]]:
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


def counted(env: Any) -> None:
    seen(given(env, "words").key_by(lambda word: word).process(Count()), "counts")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("restarts", [False, True])
def test_state_is_kept_between_epochs_and_after_restarts(
    tmp_path: Path, form: str, restarts: bool
) -> None:
    run = EpochRun(counted, tmp_path, 2, form)
    assert sorted(run.run(words=["a", "b", "a"]).records("counts")) == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]
    run = run.restarted() if restarts else run
    assert run.run(words=[]).records("counts") == []
    run = run.restarted() if restarts else run
    assert sorted(run.run(words=["b", "a", "c"]).records("counts")) == [
        ("a", 3),
        ("b", 2),
        ("c", 1),
    ]
    run.close()


class Beside(Numbered):
    def map(self, value: Any) -> Any:
        return (*value, super().map(value))


@pytest.mark.parametrize("form", FORMS)
def test_an_epoch_without_records_keeps_keyed_and_operator_state(tmp_path: Path, form: str) -> None:
    def draw(env: Any) -> None:
        counts = given(env, "words").key_by(lambda word: word).process(Count())
        seen(counts.map(Beside()), "numbered")

    run = EpochRun(draw, tmp_path, 1, form)
    assert run.run(words=["a", "b"]).records("numbered") == [("a", 1, 1), ("b", 1, 2)]
    run.run(words=[])
    run = run.restarted()
    assert run.run(words=["a", "b"]).records("numbered") == [("a", 2, 3), ("b", 2, 4)]
    run.close()


@pytest.mark.parametrize("parallelism", [1, 3, 8])
def test_state_is_redistributed_to_another_parallelism_and_back(
    tmp_path: Path, parallelism: int
) -> None:
    words = [f"word {number}" for number in range(50)]
    run = EpochRun(counted, tmp_path, 2, settings={"max_parallelism": 16})
    run.run(words=words)
    run = run.restarted(parallelism)
    assert sorted(run.run(words=words).records("counts")) == sorted((word, 2) for word in words)
    run = run.restarted(2)
    assert sorted(run.run(words=words).records("counts")) == sorted((word, 3) for word in words)
    run.close()


def windows(env: Any) -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(5)
    ).with_timestamp_assigner(lambda value, _: value[1])
    seen(
        given(env, "clicks", strategy)
        .key_by(lambda click: click[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda a, b: (a[0], a[1] + b[1])),
        "sums",
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_window_waits_for_its_watermark_over_several_epochs(
    tmp_path: Path, form: str, restarts: bool
) -> None:
    run = EpochRun(windows, tmp_path, 1, form)
    assert run.run(clicks=[("a", 1), ("b", 2)]).records("sums") == []
    run = run.restarted() if restarts else run
    assert run.run(clicks=[("a", 3), ("a", 12)]).records("sums") == []
    run = run.restarted() if restarts else run
    # The watermark passes the first window, so ("b", 4) is late in the next epoch.
    assert run.run(clicks=[("a", 15)]).records("sums") == [("a", 4), ("b", 2)]
    run = run.restarted() if restarts else run
    assert run.run(clicks=[("b", 4)]).records("sums") == []
    run = run.restarted() if restarts else run
    assert run.run(clicks=[("c", 40)]).records("sums") == [("a", 27)]
    run.close()


class Reminder(KeyedProcessFunction[str, str, tuple[str, int]]):
    def process_element(self, value: str, ctx: Any) -> None:
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + 100)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), timestamp


def reminded(env: Any) -> None:
    seen(given(env, "words").key_by(lambda word: word).process(Reminder()), "due")


@pytest.mark.parametrize("restarts", [False, True])
def test_processing_time_timers_fire_in_the_epoch_in_which_they_are_due(
    tmp_path: Path, restarts: bool
) -> None:
    run = EpochRun(reminded, tmp_path)
    ran = run.run(1_000, words=["a"])
    assert ran.records("due") == []
    assert run.next_timer_ms(ran) == 1_100
    run = run.restarted() if restarts else run
    ran = run.run(1_050, words=["b"])
    assert (ran.records("due"), run.next_timer_ms(ran)) == ([], 1_100)
    run = run.restarted() if restarts else run
    ran = run.run(1_149)
    assert (ran.records("due"), run.next_timer_ms(ran)) == ([("a", 1_100)], 1_150)
    run = run.restarted() if restarts else run
    ran = run.run(1_900)
    assert (ran.records("due"), run.next_timer_ms(ran)) == ([("b", 1_150)], None)
    run.close()


class Reminders(KeyedProcessFunction[str, str, tuple[str, int]]):
    def process_element(self, value: str, ctx: Any) -> Iterator[tuple[str, int]]:
        now = ctx.timer_service().current_processing_time()
        for delay in (100, 160, 220):
            ctx.timer_service().register_processing_time_timer(now + delay)
        yield value, now

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), timestamp


@pytest.mark.parametrize("restarts", [False, True])
def test_due_timers_fire_before_the_records_of_an_epoch(tmp_path: Path, restarts: bool) -> None:
    def draw(env: Any) -> None:
        seen(given(env, "words").key_by(lambda word: word).process(Reminders()), "due")

    run = EpochRun(draw, tmp_path)
    run.run(1_000, words=["a"])
    run.run(1_050, words=["b"])
    run = run.restarted() if restarts else run
    ran = run.run(1_250, words=["c"])
    fired = [("a", 1_100), ("b", 1_150), ("a", 1_160), ("b", 1_210), ("a", 1_220)]
    assert ran.records("due") == [*fired, ("c", 1_250)]
    assert run.next_timer_ms(ran) == 1_270
    run.close()


def test_processing_time_stands_still_if_the_clock_is_set_back(tmp_path: Path) -> None:
    run = EpochRun(reminded, tmp_path)
    run.run(1_000, words=["a"])
    assert run.run(500, words=["b"]).records("due") == []
    assert run.run(1_100).records("due") == [("a", 1_100), ("b", 1_100)]
    run.close()


def test_bounded_sources_are_read_in_the_first_epoch(tmp_path: Path) -> None:
    def draw(env: Any) -> None:
        both = given(env, "words").union(env.from_collection(["x", "y"]).uid("fixed"))
        seen(both.key_by(lambda word: word).process(Count()), "counts")

    run = EpochRun(draw, tmp_path)
    assert sorted(run.run(words=["x"]).records("counts")) == [("x", 1), ("x", 2), ("y", 1)]
    run = run.restarted()
    assert run.run(words=["x"]).records("counts") == [("x", 3)]
    run.close()


def test_a_bounded_source_added_later_is_read_in_the_first_epoch_of_its_run(tmp_path: Path) -> None:
    has_more = False

    def draw(env: Any) -> None:
        words = given(env, "words")
        if has_more:
            words = words.union(env.from_collection(["x", "y"]).uid("fixed"))
        seen(words.key_by(lambda word: word).process(Count()).uid("count"), "counts")

    run = EpochRun(draw, tmp_path)
    assert run.run(words=["x"]).records("counts") == [("x", 1)]
    has_more = True
    run = run.restarted()
    assert sorted(run.run(words=["y"]).records("counts")) == [("x", 2), ("y", 1), ("y", 2)]
    assert run.run(words=["x"]).records("counts") == [("x", 3)]
    run = run.restarted(3)
    assert run.run(words=["x"]).records("counts") == [("x", 4)]
    run.close()


def test_an_error_of_a_function_names_the_operator_and_closes_the_task(tmp_path: Path) -> None:
    class Fragile(Count):
        marker = tmp_path / "closed"

        def process_element(self, value: str, ctx: Any) -> Iterator[tuple[str, int]]:
            if value == "bad":
                raise ValueError("not this one")
            yield from super().process_element(value, ctx)

        def close(self) -> None:
            self.marker.write_text("closed")

    def draw(env: Any) -> None:
        seen(given(env, "words").key_by(lambda w: w).process(Fragile()).name("fragile"), "counts")

    run = EpochRun(draw, tmp_path)
    run.run(words=["good"])
    before = run.latest
    with pytest.raises(ValueError, match="not this one") as caught:
        run.run(words=["good", "bad"])
    assert any("in 'fragile'" in note for note in caught.value.__notes__)
    assert Fragile.marker.read_text() == "closed"
    # The checkpoint before is unchanged, and the epoch can be run again.
    assert run.latest is before
    assert run.run(words=["good"]).records("counts") == [("good", 2)]
    run.close()


def lengths(env: Any) -> None:
    pairs = given(env, "words").map(lambda word: (len(f"{word}"), 1))
    seen(pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])), "sums")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("restarts", [False, True])
def test_sums_kept_by_generated_code_are_part_of_the_state(
    tmp_path: Path, form: str, restarts: bool
) -> None:
    run = EpochRun(lengths, tmp_path, 2, form)
    assert ("sums_0.get(" in str(run.job.vertices[-1].source)) is (form == "inlined")
    for epoch in range(3):
        ran = run.run(words=["a", "bb", "a"])
        assert sorted(ran.records("sums")) == [
            (1, 2 * epoch + 1),
            (1, 2 * epoch + 2),
            (2, epoch + 1),
        ]
        run = run.restarted() if restarts else run
    run.close()


def test_a_storage_that_refuses_the_state_fails_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = EpochRun(counted, tmp_path)

    def full(name: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run.storage, "put", full)
    with pytest.raises(
        CheckpointFailedError,
        match=r"'.*' \(1/1\) can't write its state.*No space",
    ):
        run.run(words=["a"])
    run.close()
