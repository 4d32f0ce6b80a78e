from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.records.elements import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    CheckpointBarrier,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.task.input.watermark_valve import WatermarkValve

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE
BARRIER = CheckpointBarrier(1, 0)

# A step is (channel, watermark or status, expected output).
TRACES: dict[str, tuple[int, list[tuple]]] = {
    "one channel passes what rises": (
        1,
        [(0, 0, [0]), (0, 25, [25]), (0, 25, []), (0, 18, []), (0, 42, [42])],
    ),
    "one channel passes its status once": (
        1,
        [(0, ACTIVE, []), (0, IDLE, [IDLE]), (0, IDLE, []), (0, ACTIVE, [ACTIVE]), (0, 7, [7])],
    ),
    "an idle channel's watermarks are ignored": (
        1,
        [(0, 12, [12]), (0, IDLE, [IDLE]), (0, 20, []), (0, ACTIVE, [ACTIVE]), (0, 20, [20])],
    ),
    "the slowest of three decides": (
        3,
        [
            *[(0, 10, []), (1, 5, []), (2, 7, [5]), (1, 6, [6]), (1, 100, [7])],
            *[(2, 8, [8]), (0, 9, []), (2, 50, [10]), (0, 60, [50])],
        ],
    ),
    "nothing comes before every channel has spoken": (3, [(0, 4, []), (1, 9, []), (1, 12, [])]),
    "who falls idle holds back no more": (
        3,
        [(0, 15, []), (1, 10, []), (2, 12, [10]), (1, IDLE, [12]), (2, 17, [15])],
    ),
    "who falls idle ahead of the others changes nothing": (
        2,
        [(0, 15, []), (1, 10, [10]), (0, IDLE, []), (1, 12, [12])],
    ),
    "who comes back behind is waited for by nobody until it has caught up": (
        2,
        [
            *[(0, 15, []), (1, 10, [10]), (1, IDLE, [15]), (0, 30, [30]), (1, ACTIVE, [])],
            *[(1, 20, []), (0, 40, [40]), (1, 40, []), (0, 50, []), (1, 45, [45]), (1, 60, [50])],
        ],
    ),
    "who comes back level takes part at once": (
        2,
        [(0, 8, []), (1, 8, [8]), (1, IDLE, []), (1, ACTIVE, []), (0, 9, []), (1, 12, [9])],
    ),
    "all idle lets out the largest": (
        3,
        [
            *[(0, 5, []), (1, 9, []), (2, 7, [5]), (1, IDLE, []), (0, IDLE, [7])],
            (2, IDLE, [9, IDLE]),
        ],
    ),
    "all idle lets out the largest in any order": (
        3,
        [
            *[(0, 5, []), (1, 9, []), (2, 7, [5]), (2, IDLE, []), (0, IDLE, [9])],
            (1, IDLE, [IDLE]),
        ],
    ),
    "the last to fall idle need not be the slowest": (
        # Flink's valve once flushed only if the last channel was at the last output.
        3,
        [
            *[(0, 10, []), (1, 5, []), (2, 5, [5]), (2, IDLE, []), (1, 6, [6]), (2, ACTIVE, [])],
            *[(0, IDLE, []), (1, IDLE, []), (2, IDLE, [10, IDLE])],
        ],
    ),
    "after all were idle the first that comes back speaks for all": (
        2,
        [
            *[(0, 3, []), (1, 5, [3]), (0, IDLE, [5]), (1, IDLE, [IDLE])],
            *[(0, ACTIVE, [ACTIVE]), (0, 4, []), (0, 5, []), (0, 6, [6]), (1, ACTIVE, [])],
            *[(0, 9, [9]), (1, 8, []), (1, 9, []), (0, 12, []), (1, 20, [12])],
        ],
    ),
    "a late riser can let out what others were ready for": (
        # 0 becomes idle at the front, 2 is active again behind it, 1 is active again ahead of it.
        3,
        [
            *[(0, 30, []), (1, 40, []), (2, 3, [3]), (1, IDLE, []), (2, IDLE, [30])],
            *[(2, ACTIVE, []), (0, IDLE, []), (1, ACTIVE, []), (2, 5, [40])],
        ],
    ),
    "idle from the start says nothing about time": (
        2,
        [(0, IDLE, []), (1, IDLE, [IDLE]), (1, ACTIVE, [ACTIVE]), (1, 2, [2])],
    ),
    "the end of time passes like any other": (
        2,
        [(0, MAX_WATERMARK, []), (1, IDLE, [MAX_WATERMARK]), (1, ACTIVE, []), (1, 5, [])],
    ),
}


# A step as above, or None for the begin of an epoch.
EPOCHS: dict[str, tuple[int, list[tuple | None]]] = {
    "an idle channel holds back until it is active": (
        2,
        [
            *[(0, 3, []), (1, 5, [3]), (0, IDLE, [5]), (1, IDLE, [IDLE]), None],
            *[(0, ACTIVE, [ACTIVE]), (0, 30, []), (1, ACTIVE, []), (1, 20, [20])],
            *[(1, BARRIER, []), (0, BARRIER, [])],
        ],
    ),
    "an idle channel holds back until its barrier": (
        2,
        [
            *[(0, 3, []), (1, 5, [3]), (0, IDLE, [5]), (1, IDLE, [IDLE]), None],
            *[(0, ACTIVE, [ACTIVE]), (0, 30, []), (1, BARRIER, [30]), (0, 40, [40])],
        ],
    ),
    "an idle channel that is ahead does not hold back": (
        2,
        [(0, 3, []), (1, 50, [3]), (1, IDLE, []), None, (0, 30, [30]), (0, 60, [50])],
    ),
    "a channel that becomes idle holds back until its barrier": (
        2,
        [
            *[(0, 3, []), (1, 5, [3]), None, (0, IDLE, []), (0, BARRIER, [5])],
            *[(1, IDLE, []), (1, BARRIER, [IDLE])],
        ],
    ),
    "a channel that is behind holds back until its barrier": (
        2,
        [
            *[(0, 3, []), (1, 5, [3]), (0, IDLE, [5]), (0, ACTIVE, []), None],
            *[(1, 30, []), (0, 4, []), (0, BARRIER, [30]), (1, 31, [31])],
        ],
    ),
}


def feed(
    valve: WatermarkValve, channel: int, element: int | WatermarkStatus | CheckpointBarrier
) -> list:
    if not isinstance(element, int):
        out = (
            valve.input_status(channel, element)
            if isinstance(element, WatermarkStatus)
            else valve.input_barrier(channel)
        )
        return [e.timestamp if isinstance(e, Watermark) else e for e in out]
    risen = valve.input_watermark(channel, element)
    return [] if risen is None else [risen.timestamp]


@pytest.mark.parametrize(("channels", "steps"), TRACES.values(), ids=TRACES.keys())
def test_a_sequence_of_watermarks_and_statuses_gives_the_output_of_flink(
    channels: int, steps: list[tuple]
) -> None:
    valve = WatermarkValve(channels)
    trace = [(channel, element, feed(valve, channel, element)) for channel, element, _ in steps]
    assert trace == steps


@pytest.mark.parametrize(("channels", "steps"), EPOCHS.values(), ids=EPOCHS.keys())
def test_in_an_epoch_a_channel_counts_until_its_barrier(
    channels: int, steps: list[tuple | None]
) -> None:
    valve = WatermarkValve(channels)
    for step in steps:
        if step is None:
            valve.begin_epoch()
        else:
            channel, element, expected = step
            assert (step, feed(valve, channel, element)) == (step, expected)


class Model:
    """A simple implementation of the same rules, which recomputes everything at every step."""

    def __init__(self, channels: int) -> None:
        self.watermark = [MIN_WATERMARK] * channels
        self.status = [ACTIVE] * channels
        self.behind: set[int] = set()
        self.open: set[int] = set()
        self.out = MIN_WATERMARK
        self.out_status = ACTIVE

    def feed(self, channel: int, element: int | WatermarkStatus | CheckpointBarrier) -> list:
        if isinstance(element, WatermarkStatus):
            return self.feed_status(channel, element)
        if isinstance(element, CheckpointBarrier):
            return self.feed_barrier(channel)
        if self.status[channel] is IDLE or element <= self.watermark[channel]:
            return []
        self.watermark[channel] = element
        if element >= self.out:
            self.behind.discard(channel)
        return self.minimum()

    def feed_status(self, channel: int, status: WatermarkStatus) -> list:
        if status is self.status[channel]:
            return []
        self.status[channel] = status
        if status is ACTIVE:
            if self.watermark[channel] < self.out:
                self.behind.add(channel)
            changed = self.out_status is IDLE
            self.out_status = ACTIVE
            return [ACTIVE] if changed else []
        was_behind = channel in self.behind
        self.behind.discard(channel)
        if self.open:
            return []
        if all(status is IDLE for status in self.status):
            return self.flush()
        if self.watermark[channel] == self.out and not was_behind:
            return self.minimum()
        return []

    def feed_barrier(self, channel: int) -> list:
        self.open.remove(channel)
        if not self.open and self.out_status is ACTIVE and ACTIVE not in self.status:
            return self.flush()
        return self.minimum()

    def flush(self) -> list:
        self.out_status = IDLE
        return [*self.rise(max(self.watermark)), IDLE]

    def minimum(self) -> list:
        taking_part = [
            watermark
            for channel, watermark in enumerate(self.watermark)
            if channel in self.open
            or (self.status[channel] is ACTIVE and channel not in self.behind)
        ]
        return self.rise(min(taking_part)) if taking_part else []

    def rise(self, watermark: int) -> list:
        if watermark <= self.out:
            return []
        self.out = watermark
        return [watermark]


@settings(deadline=None)
@given(st.data(), st.integers(1, 4))
def test_the_watermark_valve_agrees_with_a_simple_implementation(
    data: st.DataObject, channels: int
) -> None:
    steps = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, channels - 1), st.integers(0, 12) | st.sampled_from(WatermarkStatus)
            ),
            max_size=60,
        )
    )
    check_against_model(channels, steps)


@settings(deadline=None)
@given(st.data(), st.integers(1, 4))
def test_the_watermark_valve_agrees_with_a_simple_implementation_in_epochs(
    data: st.DataObject, channels: int
) -> None:
    element = st.integers(0, 12) | st.sampled_from(WatermarkStatus)
    steps: list[Any] = []
    for _ in range(data.draw(st.integers(1, 4))):
        parts = [
            [(channel, each) for each in [*data.draw(st.lists(element, max_size=4)), BARRIER]]
            for channel in range(channels)
        ]
        order = data.draw(st.permutations([n for n, part in enumerate(parts) for _ in part]))
        steps += [None, *(parts[channel].pop(0) for channel in order)]
    check_against_model(channels, steps)


def check_against_model(channels: int, steps: list[Any]) -> None:
    """Feeds both. A step is (channel, element), or None for the begin of an epoch."""
    valve, model = WatermarkValve(channels), Model(channels)
    last = MIN_WATERMARK
    for step in steps:
        if step is None:
            valve.begin_epoch()
            model.open = set(range(channels))
            continue
        channel, element = step
        out = feed(valve, channel, element)
        assert out == model.feed(channel, element)
        for risen in out:
            if not isinstance(risen, WatermarkStatus):
                assert risen > last
                last = risen
        assert valve.watermark == model.out == last
        assert valve.is_idle == (model.out_status is IDLE)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=5), st.randoms())
def test_the_order_in_which_channels_become_idle_does_not_matter(
    watermarks: list[int], rng: object
) -> None:
    valve = WatermarkValve(len(watermarks))
    for channel, watermark in enumerate(watermarks):
        valve.input_watermark(channel, watermark)
    order = list(range(len(watermarks)))
    rng.shuffle(order)
    for channel in order:
        valve.input_status(channel, IDLE)
    assert valve.watermark == max(watermarks)
    assert valve.is_idle
