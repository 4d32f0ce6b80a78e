"""Broadcast state of a keyed or non-keyed stream."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Types
from opchain.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    OutputTag,
    TimeDomain,
)
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import MapStateDescriptor, ValueStateDescriptor
from opchain.runtime.time import MIN_LONG_VALUE
from opchain.testing import KeyedTwoInputOperatorHarness, TwoInputOperatorHarness

if TYPE_CHECKING:
    from opchain.runtime.functions.function import RuntimeContext

RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
LAST: ValueStateDescriptor[Any] = ValueStateDescriptor("last")
SIDE = OutputTag("side")


class Factors(BroadcastProcessFunction[Any, Any, Any]):
    """Broadcast (name, factor); a record (name, number) is multiplied by the factor at its arrival."""

    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        factor = ctx.get_broadcast_state(RULES).get(value[0])
        yield (value[1] * factor) if factor else (SIDE, value)
        yield ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)
        yield SIDE, ("rule", *value, ctx.timestamp())


def harness_of(function: Any = None, **settings: Any) -> TwoInputOperatorHarness:
    return TwoInputOperatorHarness(function or Factors(), broadcast_state=[RULES], **settings)


def test_a_record_sees_the_broadcast_state_at_its_arrival() -> None:
    with harness_of() as harness:
        harness.process_element1(("a", 1), 5)
        harness.process_element2(("a", 10), 6)
        harness.process_element1(("a", 1), 7)
        harness.process_element2(("a", 100))
        harness.process_element1(("a", 1))
        assert [value for value in harness.values() if isinstance(value, int)] == [10, 100]
        assert harness.records(SIDE) == [
            (("a", 1), 5),
            (("rule", "a", 10, 6), 6),
            (("rule", "a", 100, MIN_LONG_VALUE), None),
        ]


def test_contexts_have_timestamp_watermark_and_processing_time() -> None:
    with harness_of() as harness:
        harness.process_both_watermarks(3)
        harness.set_processing_time(4)
        harness.process_element1(("a", 1), 5)
        assert harness.values() == [(5, 3, 4)]


def test_process_element_cannot_write_broadcast_state() -> None:
    class Writes(Factors):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(RULES).put("a", 1)

    with harness_of(Writes()) as harness, pytest.raises(AttributeError):
        harness.process_element1(("a", 1))


@pytest.mark.parametrize("side", ["element", "broadcast"])
def test_a_broadcast_state_can_be_requested_with_one_descriptor_only(side: str) -> None:
    descriptor = MapStateDescriptor("rules", Types.STRING(), Types.STRING())

    class Asks(Factors):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(descriptor)

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(descriptor)

    with (
        harness_of(Asks()) as harness,
        pytest.raises(
            StateError, match=r"'Co-Process-Broadcast' \(test harness\) uses .* is declared as Map"
        ),
    ):
        (harness.process_element1 if side == "element" else harness.process_element2)("a")


def test_every_subtask_restores_the_broadcast_state_after_rescaling() -> None:
    parts = [harness_of(parallelism=2, subtask=n, max_parallelism=8) for n in range(2)]
    for part in parts:
        part.open()
        part.process_element2(("a", 10))
    snapshots = [part.snapshot() for part in parts]
    for subtask in range(3):
        with harness_of(
            parallelism=3, subtask=subtask, max_parallelism=8, snapshots=snapshots
        ) as harness:
            harness.process_element1(("a", 1))
            assert harness.values()[0] == 10


class Monitor(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Keeps the last record per key; the broadcast side lists, changes and clears these records."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(LAST)

    def process_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[Any]
    ) -> Any:
        self.last.update(value)
        ctx.timer_service().register_event_time_timer(value[1])
        ctx.timer_service().register_processing_time_timer(value[1])
        yield ctx.get_current_key(), ctx.get_broadcast_state(RULES).get("limit"), ctx.timestamp()

    def process_broadcast_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Any:
        ctx.get_broadcast_state(RULES).put("limit", value)
        found: list[Any] = []

        def visit(key: Any, state: Any) -> None:
            found.append((key, state.value()))
            if key == "b":
                state.clear()

        ctx.apply_to_keyed_state(LAST, visit)
        yield found

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext[Any]
    ) -> Any:
        yield (
            ctx.time_domain(),
            timestamp,
            ctx.get_current_key(),
            self.last.value(),
            ctx.get_broadcast_state(RULES).get("limit"),
            ctx.current_watermark(),
        )
        yield SIDE, ctx.timestamp()


def keyed_harness(function: Any = None, **settings: Any) -> KeyedTwoInputOperatorHarness:
    return KeyedTwoInputOperatorHarness(
        function or Monitor(), itemgetter(0), broadcast_state=[RULES], **settings
    )


def test_apply_to_keyed_state_visits_all_keys() -> None:
    with keyed_harness() as harness:
        for key in "bac":
            harness.process_element1((key, 10), 1)
        harness.clear_output()
        harness.process_element2(7, 2)
        harness.process_element2(8)
        assert harness.records() == [
            ([("b", ("b", 10)), ("a", ("a", 10)), ("c", ("c", 10))], 2),
            ([("a", ("a", 10)), ("c", ("c", 10))], None),
        ]
        harness.process_element1(("a", 11), 3)
        assert harness.values()[-1] == ("a", 8, 3)


def test_timers_see_keyed_and_broadcast_state() -> None:
    with keyed_harness() as harness:
        harness.process_element1(("a", 10), 1)
        harness.process_element2(7)
        harness.clear_output()
        harness.process_both_watermarks(15)
        harness.set_processing_time(15)
        assert harness.records() == [
            ((TimeDomain.EVENT_TIME, 10, "a", ("a", 10), 7, 15), 10),
            ((TimeDomain.PROCESSING_TIME, 10, "a", ("a", 10), 7, 15), None),
        ]
        assert harness.records(SIDE) == [(10, 10), (10, 10)]


@pytest.mark.parametrize("does", ["uses state", "applies, then uses state"])
def test_process_broadcast_element_has_no_current_key(does: str) -> None:
    class Uses(Monitor):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            if does != "uses state":
                ctx.apply_to_keyed_state(LAST, lambda _key, _state: None)
            self.last.value()

    with keyed_harness(Uses()) as harness:
        harness.process_element1(("a", 1))
        with pytest.raises(StateError, match="without a current key"):
            harness.process_element2(7)


def test_time_domain_exists_in_timer_contexts_only() -> None:
    class Asks(Monitor):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.time_domain()

    with (
        keyed_harness(Asks()) as harness,
        pytest.raises(RuntimeError, match="only available in on_timer"),
    ):
        harness.process_element1(("a", 1))


def test_keyed_and_broadcast_state_survive_rescaling_together() -> None:
    with keyed_harness(max_parallelism=8) as before:
        for key in "abcd":
            before.process_element1((key, 10), 1)
        before.process_element2(7)
        snapshot = before.snapshot()
    found = []
    for subtask in range(2):
        with keyed_harness(
            parallelism=2, subtask=subtask, max_parallelism=8, snapshots=[snapshot]
        ) as harness:
            harness.process_both_watermarks(10)
            found += [(value[2], value[4]) for value in harness.values()]
    assert sorted(found) == [(key, 7) for key in "abcd"]
