"""Unbounded jobs in this process: idle inputs and watermark alignment."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from forms import Ran, job_of, seen

from opchain.common import Duration, Time, WatermarkStrategy
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.functions.source import Source
from opchain.runtime.local.live_run import LiveRun, StopSwitch
from opchain.runtime.shipping.outcome import read_outcome
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_S = 60
ASCENDING: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)
IDLE: Any = ASCENDING.with_idleness(Duration.of_millis(50))
NONE: Any = WatermarkStrategy.no_watermarks()
fired = threading.Event()


class Quiet(Source[int]):
    """Emits no record until a window has fired."""

    def splits(self, parallelism: int) -> Any:
        return [[0], *([] for _ in range(parallelism - 1))]

    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[int]]:
        deadline = time.monotonic() + PATIENCE_S
        while not fired.wait(0.01):
            assert time.monotonic() < deadline, "no window has fired"
            yield []


class Busy(Quiet):
    """Emits numbers, one by one, until a window has fired."""

    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[int]]:
        for number, batch in enumerate(super().read(split, batch_size)):
            assert not batch
            yield [number]


def note_firing(value: Any) -> Any:
    fired.set()
    return value


def run_live(draw: Any, **settings: Any) -> Ran:
    job = job_of(draw, **settings)
    live = LiveRun(job, TaskEnvironment(), StopSwitch())
    return Ran(job, read_outcome(job, live.buffers()))


def fires(stream: Any) -> None:
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    sums = stream.key_by(lambda value: 0).window(windows).reduce(lambda a, b: a + b)
    seen(sums.map(note_firing), "sums")


@pytest.mark.parametrize("where", ["source", "behind an exchange", "a subtask without splits"])
def test_an_idle_input_does_not_hold_the_watermark_back(where: str) -> None:
    fired.clear()

    def draw(env: Any) -> None:
        if where == "source":
            fires(env.from_source(Busy(), IDLE, "busy").union(env.from_source(Quiet(), IDLE, "q")))
        elif where == "behind an exchange":
            busy, quiet = (
                env.from_source(source, NONE, "in").rebalance() for source in (Busy(), Quiet())
            )
            fires(
                busy.map(int)
                .assign_timestamps_and_watermarks(IDLE)
                .union(quiet.map(int).assign_timestamps_and_watermarks(IDLE))
            )
        else:
            fires(env.from_source(Busy(), IDLE, "busy"))

    ran = run_live(draw, parallelism=2 if where == "a subtask without splits" else 1)
    assert ran.records("sums")[0] == sum(range(10))


read_so_far = {"fast": 0, "slow": 0}
seen_ahead: list[int] = []


class Clocked(Source[int]):
    """Multiples of a step; records the progress of both sources when the next one is requested."""

    def __init__(self, name: str, step: int, count: int) -> None:
        self.name, self.step, self.count = name, step, count

    def splits(self, parallelism: int) -> Any:
        return [[0]]

    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[int]]:
        for number in range(self.count):
            if self.name == "fast":
                seen_ahead.append(read_so_far["fast"] - read_so_far["slow"])
            read_so_far[self.name] = number * self.step
            yield [number * self.step]


@pytest.mark.parametrize("drift_ms", [100, 1000])
def test_a_source_that_is_ahead_waits(drift_ms: int) -> None:
    read_so_far.update(fast=0, slow=0)
    seen_ahead.clear()
    strategy = ASCENDING.with_watermark_alignment("group", Duration.of_millis(drift_ms))

    def draw(env: Any) -> None:
        fast = env.from_source(Clocked("fast", 50, 100), strategy, "fast")
        slow = env.from_source(Clocked("slow", 5, 1000), strategy, "slow")
        seen(fast.union(slow), "all")

    ran = run_live(draw)
    assert sorted(ran.records("all")) == sorted([*range(0, 5000, 50), *range(0, 5000, 5)])
    # A watermark is one behind its record, and slow may have read a record that it has not emitted.
    assert max(seen_ahead) <= drift_ms + 1


def test_a_source_with_a_rate_that_is_ahead_waits_within_its_batches() -> None:
    """Records that became due while the source waited are one batch, of which each part must wait."""
    read_so_far.update(fast=0, slow=0)
    seen_ahead.clear()
    strategy = ASCENDING.with_watermark_alignment("group", Duration.of_millis(100))

    def draw(env: Any) -> None:
        fast = env.from_source(DataGeneratorSource(fifties, 100, 10_000), strategy, "fast")
        slow = env.from_source(DataGeneratorSource(fives, 1000, 2_000), strategy, "slow")
        seen(fast.map(note_fast).union(slow.map(note_slow)), "all")

    ran = run_live(draw)
    assert len(ran.records("all")) == 1100
    # Only one record may pass the limit.
    assert max(seen_ahead) <= 100 + 50 + 5


def fifties(number: int) -> int:
    return number * 50


def fives(number: int) -> int:
    return number * 5


def note_fast(value: int) -> int:
    seen_ahead.append(value - read_so_far["slow"])
    return value


def note_slow(value: int) -> int:
    read_so_far["slow"] = value
    return value


slice_sizes: list[int] = []


class InOneBatch(Source[int]):
    """All numbers below 100,000 in one batch, which records the sizes of its slices."""

    def splits(self, parallelism: int) -> Any:
        return [[0]]

    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[int]]:
        yield Sliced(range(100_000))


class Sliced(list[int]):
    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        if isinstance(place, slice):
            slice_sizes.append(len(found))
        return found


def test_records_far_from_the_alignment_limit_are_processed_in_batches() -> None:
    slice_sizes.clear()
    strategy = ASCENDING.with_watermark_alignment("group", Duration.of_millis(1_000_000))
    ran = run_live(lambda env: seen(env.from_source(InOneBatch(), strategy, "one"), "all"))
    assert ran.records("all") == list(range(100_000))
    assert sum(slice_sizes) == 100_000
    assert len(slice_sizes) < 20


class TwoSplits(Source[int]):
    """Split 0 is far ahead of split 1."""

    def splits(self, parallelism: int) -> Any:
        return [[0, 1]]

    def read(self, split: int, batch_size: int) -> Iterator[Sequence[int]]:
        for number in range(100):
            yield [number * (100 if split == 0 else 1)]


def test_a_split_that_is_ahead_waits_while_another_split_is_read() -> None:
    strategy = ASCENDING.with_watermark_alignment("group", Duration.of_millis(10))

    class Endless(TwoSplits):
        is_bounded = False

    job = job_of(lambda env: seen(env.from_source(Endless(), strategy, "two"), "all"))
    live = LiveRun(job, TaskEnvironment(), StopSwitch())
    found = Ran(job, read_outcome(job, live.buffers())).records("all")
    assert len(found) == 200
    # Split 0 is at 99 after its second record, and waits until split 1 is at 89.
    assert found.index(100) < found.index(10)
    assert found.index(200) > found.index(90)


class BusyAndQuiet(Quiet):
    """Split 0 emits numbers until a window has fired. Split 1 emits none."""

    is_bounded = False

    def splits(self, parallelism: int) -> Any:
        return [[0, 1]]

    def read(self, split: int, batch_size: int) -> Iterator[Sequence[int]]:
        for number, batch in enumerate(super().read(split, batch_size)):
            yield batch if split else [number]


def test_a_split_that_is_ahead_does_not_keep_a_quiet_split_from_becoming_idle() -> None:
    fired.clear()
    strategy = IDLE.with_watermark_alignment("group", Duration.of_millis(5))
    ran = run_live(lambda env: fires(env.from_source(BusyAndQuiet(), strategy, "two")))
    assert ran.records("sums")[0] == sum(range(10))


def test_a_source_without_watermarks_does_not_hold_its_alignment_group_back() -> None:
    """The other source continues although the first one emits no watermarks."""
    aligned: Any = NONE.with_watermark_alignment("group", Duration.of_millis(1))
    strategy = ASCENDING.with_watermark_alignment("group", Duration.of_millis(1))

    def draw(env: Any) -> None:
        unaware = env.from_source(DataGeneratorSource(int, 10), aligned, "unaware")
        seen(env.from_source(Clocked("slow", 5, 10), strategy, "s").union(unaware), "all")

    assert len(run_live(draw).records("all")) == 20
