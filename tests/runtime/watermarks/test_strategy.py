from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.time import MIN_LONG_VALUE, Duration
from opchain.runtime.watermarks.generators import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
    WatermarksWithIdleness,
)
from opchain.runtime.watermarks.strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    WatermarkStrategy,
)

CONTEXT = WatermarkGeneratorContext(clock_ns=lambda: 0)
FIVE = Duration.of_seconds(5)


class SecondField(TimestampAssigner[tuple[str, int]]):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecondField)

    def __hash__(self) -> int:
        return 0


class Punctuated(WatermarkGenerator[Any]):
    """Emits a watermark for every record, and none in between."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def punctuated(_context: WatermarkGeneratorContext) -> Punctuated:
    return Punctuated()


def timestamp_of_pair(value: tuple[str, int], _record_timestamp: int) -> int:
    return value[1]


STRATEGIES: dict[str, tuple[Any, type]] = {
    "monotonous": (WatermarkStrategy.for_monotonous_timestamps, AscendingTimestampsWatermarks),
    "bounded": (
        lambda: WatermarkStrategy.for_bounded_out_of_orderness(FIVE),
        BoundedOutOfOrdernessWatermarks,
    ),
    "none": (WatermarkStrategy.no_watermarks, NoWatermarksGenerator),
    "own": (lambda: WatermarkStrategy.for_generator(punctuated), Punctuated),
}


@pytest.mark.parametrize(("make", "generator"), STRATEGIES.values(), ids=STRATEGIES)
def test_a_strategy_creates_a_generator_for_each_subtask(make: Any, generator: type) -> None:
    strategy = make()
    first, second = (strategy.create_watermark_generator(CONTEXT) for _ in range(2))
    assert type(first) is type(second) is generator
    assert first is not second


@pytest.mark.parametrize("make", [make for make, _ in STRATEGIES.values()], ids=STRATEGIES)
def test_strategies_are_compared_and_hashed_by_value(make: Any) -> None:
    strategy = make().with_timestamp_assigner(SecondField()).with_idleness(FIVE)
    assert strategy == make().with_idleness(FIVE).with_timestamp_assigner(SecondField())
    assert strategy != make()
    assert hash(strategy) == hash(pickle.loads(pickle.dumps(strategy)))
    assert strategy == pickle.loads(pickle.dumps(strategy))


def test_different_strategies_differ() -> None:
    made = [make() for make, _ in STRATEGIES.values()]
    assert len(set(made)) == len(made)
    assert made[1] != WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(6))


def test_the_generator_uses_the_bound_of_the_strategy() -> None:
    seen: list[int] = []

    class Output(WatermarkOutput):
        def emit_watermark(self, timestamp: int) -> None:
            seen.append(timestamp)

        def mark_idle(self) -> None:
            raise AssertionError

        def mark_active(self) -> None:
            raise AssertionError

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(FIVE)
    generator = strategy.create_watermark_generator(CONTEXT)
    generator.on_event("record", 10_000, Output())
    generator.on_periodic_emit(Output())
    assert seen == [4_999]


def test_every_method_returns_a_new_strategy_with_the_other_settings() -> None:
    assigner = SecondField()
    plain: WatermarkStrategy[Any] = WatermarkStrategy.for_monotonous_timestamps()
    plain = plain.with_timestamp_assigner(assigner)
    full = plain.with_idleness(FIVE).with_watermark_alignment("group", Duration.of_seconds(20))
    assert plain.idle_timeout is None
    assert plain.alignment is None
    assert full.timestamp_assigner is assigner
    assert full.idle_timeout == FIVE
    assert full.alignment is not None
    assert full.alignment.watermark_group == "group"
    assert full.alignment.max_allowed_watermark_drift == Duration.of_seconds(20)
    assert full.alignment.update_interval == Duration.of_seconds(1)


def test_the_first_timestamp_assigner_changes_the_strategy_as_in_pyflink() -> None:
    strategy: WatermarkStrategy[Any] = WatermarkStrategy.for_monotonous_timestamps()
    assigner = SecondField()
    assert strategy.with_timestamp_assigner(assigner) is strategy
    assert strategy.timestamp_assigner is assigner
    other = strategy.with_timestamp_assigner(timestamp_of_pair)
    assert strategy.timestamp_assigner is assigner
    assert other != strategy


def test_the_update_interval_of_alignment_can_be_set() -> None:
    strategy = WatermarkStrategy.no_watermarks().with_watermark_alignment("group", FIVE, FIVE)
    assert strategy.alignment is not None
    assert strategy.alignment.update_interval == FIVE


def test_with_idleness_wraps_the_generator() -> None:
    strategy = WatermarkStrategy.no_watermarks().with_idleness(FIVE)
    assert type(strategy.create_watermark_generator(CONTEXT)) is WatermarksWithIdleness


def test_timestamps_are_assigned_by_an_object_a_function_or_the_source() -> None:
    for assigner in (SecondField(), timestamp_of_pair):
        plain: WatermarkStrategy[Any] = WatermarkStrategy.no_watermarks()
        strategy = plain.with_timestamp_assigner(assigner)
        assert strategy.create_timestamp_assigner().extract_timestamp(("a", 7), -1) == 7
        assert pickle.loads(pickle.dumps(strategy)) == strategy
    without: WatermarkStrategy[Any] = WatermarkStrategy.no_watermarks()
    assert (
        without.create_timestamp_assigner().extract_timestamp("a", MIN_LONG_VALUE) == MIN_LONG_VALUE
    )


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda s: s.for_bounded_out_of_orderness(5), TypeError, "max_out_of_orderness is 5; it must"),
    (
        lambda s: s.for_bounded_out_of_orderness(Duration(-1)),
        ValueError,
        "max_out_of_orderness is -1 ns; it must not be negative",
    ),
    (lambda s: s.with_idleness(5), TypeError, "with_idleness: idle_timeout is 5"),
    (lambda s: s.with_idleness(Duration(0)), ValueError, "0 ms; it must not be zero or negative"),
    (lambda s: s.with_watermark_alignment("g", 5), TypeError, "max_allowed_watermark_drift is 5"),
    (lambda s: s.with_watermark_alignment("g", FIVE, 5), TypeError, "update_interval is 5"),
    (lambda s: s.with_timestamp_assigner("ts"), TypeError, "with_timestamp_assigner takes"),
    (lambda s: s.with_timestamp_assigner(Punctuated), TypeError, r"pass an object, such as Punc"),
    (lambda s: s.for_generator(Punctuated()), TypeError, "for_generator takes a function"),
    (
        lambda s: s.for_generator(lambda _: "x").create_watermark_generator(CONTEXT),
        TypeError,
        "given to for_generator returned 'x'",
    ),
]


@pytest.mark.parametrize(("use", "error", "text"), REFUSED)
def test_a_wrong_argument_is_refused_at_once(use: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        use(WatermarkStrategy.no_watermarks())


def test_a_java_assigner_cannot_be_wrapped() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"pass WatermarkStrategy\.for_generator"):
        AssignerWithPeriodicWatermarksWrapper(object())
