"""Input in batch mode: whole keys, sorted by time, broadcast records first, spilled to disk if needed."""

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
)
from opchain.runtime.functions.state_descriptors import MapStateDescriptor, ValueStateDescriptor
from opchain.runtime.operators.operator import KeyedServices
from opchain.runtime.records import arrays
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.elements import (
    EndOfInput,
    LatencyMarker,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.records.record_pickle import dump_flat
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.state.timers.timer_services import TimerServices
from opchain.runtime.task.input import batch_input
from opchain.runtime.task.input.batch_input import (
    MEMORY_BYTES,
    ArrivalStore,
    BroadcastFirstInput,
    KeySortedInput,
)
from opchain.runtime.task.input.input_gate import InputElement
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.testing import (
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
    TwoInputOperatorHarness,
)

RULES: MapStateDescriptor[Any, Any] = MapStateDescriptor("rules")


class Chain:
    """Records the calls of a KeySortedInput, and passes them to the operator of a harness."""

    def __init__(self, harness: Any) -> None:
        self.head = harness.operator
        self.calls: list[Any] = []
        self.takes_any_order = None
        self.turn_functions: dict[int, Any] = {}

    def process_batch(self, number: int, values: list[Any], timestamps: Any) -> None:
        self.calls.append((number, values))
        self.head.process_batch(number, values, timestamps)

    def process_watermark(self, number: int, watermark: int) -> None:
        self.calls.append(("watermark", number, watermark))

    def end_input(self, number: int) -> None:
        self.calls.append(("end", number))


class Controller:
    is_completed = False

    def all_actions_completed(self) -> None:
        self.is_completed = True


def run(source: Any) -> None:
    controller: Any = Controller()
    while not controller.is_completed:
        source.process_next(controller)
    source.close()


def batch(number: int, *records: tuple[Any, int | None]) -> InputElement:
    values, timestamps = [list(column) for column in zip(*records, strict=True)]
    has_times = any(time is not None for time in timestamps)
    return InputElement(number, 0, RecordBatch(values, timestamps if has_times else None))


def ends(*numbers: int) -> list[InputElement]:
    return [
        element
        for number in numbers
        for element in (
            InputElement(number, 0, Watermark(MAX_LONG_VALUE)),
            InputElement(number, 0, EndOfInput()),
        )
    ]


class Notes(KeyedProcessFunction[Any, Any, Any]):
    """Emits each record with its state, and registers a timer per key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(7)
        yield value, ctx.timestamp(), self.count.value()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "end", ctx.get_current_key(), self.count.value()


def sorted_run(elements: list[InputElement], **settings: Any) -> tuple[list[Any], Chain]:
    with batch_harness(Notes()) as harness:
        chain: Any = Chain(harness)
        gate: Any = iter(elements)
        run(KeySortedInput(gate, chain, **settings))
        harness.process_watermark(MAX_LONG_VALUE)
        return harness.values(), chain


def batch_harness(function: Any) -> KeyedOneInputOperatorHarness:
    """A harness with the timers of batch mode."""
    harness = KeyedOneInputOperatorHarness(function, itemgetter(0))
    _make_batch(harness)
    return harness


def _make_batch(harness: Any) -> None:
    context = harness.operator.context
    timers = TimerServices(context.keyed_state, context.processing_time, is_batch=True)
    context.keyed = KeyedServices(context.keyed_state, timers)


def test_keys_are_processed_one_by_one_sorted_by_time() -> None:
    elements = [
        batch(0, (("a", 1), 5), (("b", 2), 3)),
        batch(0, (("a", 3), 1), (("a", 4), None), (("b", 5), 3)),
        *ends(0),
    ]
    values, chain = sorted_run(elements)
    blocks = {
        "a": [(("a", 4), MIN_LONG_VALUE, 1), (("a", 3), 1, 2), (("a", 1), 5, 3), ("end", "a", 3)],
        "b": [(("b", 2), 3, 1), (("b", 5), 3, 2), ("end", "b", 2)],
    }
    assert values in (blocks["a"] + blocks["b"], blocks["b"] + blocks["a"])
    assert chain.calls[-2:] == [("watermark", 0, MAX_LONG_VALUE), ("end", 0)]


def test_no_record_is_processed_before_all_input_is_read() -> None:
    harness = batch_harness(Notes())
    with harness:
        chain: Any = Chain(harness)
        controller: Any = Controller()
        source = KeySortedInput(iter([batch(0, (("a", 1), 1)), *ends(0)]), chain)  # type: ignore[arg-type]
        for _ in range(4):
            source.process_next(controller)
        assert chain.calls == []
        source.process_next(controller)
        assert len(chain.calls) == 1


def test_statuses_and_latency_markers_are_dropped() -> None:
    marks = [
        InputElement(0, 0, WatermarkStatus.IDLE),
        InputElement(0, 0, LatencyMarker(1, "id", 0)),
        InputElement(0, 0, Watermark(3)),
    ]
    _, chain = sorted_run([*marks, *ends(0)])
    assert chain.calls == [("watermark", 0, MAX_LONG_VALUE), ("end", 0)]


RECORDS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from(["a", "b", 1, True, 1.0]), st.integers(0, 3)),
        st.none() | st.integers(-2, 2),
    ),
    max_size=20,
)


@pytest.fixture(params=["numpy", "lists"])
def sorting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "lists":
        monkeypatch.setattr(arrays, "_numpy", lambda: None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RECORDS, st.integers(1, 6), st.integers(1, 9000))
@pytest.mark.usefixtures("sorting")
def test_batch_sizes_and_spilling_do_not_affect_the_result(
    records: list[Any], size: int, memory_bytes: int
) -> None:
    batches = [batch(0, *records[at : at + size]) for at in range(0, len(records), size)]
    values, _ = sorted_run([*batches, *ends(0)], memory_bytes=memory_bytes)
    once, _ = sorted_run([*([batch(0, *records)] if records else []), *ends(0)])
    assert values == once
    by_key: dict[str, list[Any]] = {}
    for value, time in records:
        seen = MIN_LONG_VALUE if time is None else time
        by_key.setdefault(repr(value[0]), []).append((value, seen))
    groups = [
        list(group)
        for is_end, group in itertools.groupby(values, lambda v: v[0] == "end")
        if not is_end
    ]
    assert len(groups) == len(by_key)
    for group in groups:
        kept = by_key[repr(group[0][0][0])]
        expected = sorted(kept, key=itemgetter(1))
        assert [(value, time) for value, time, _ in group] == expected


def test_a_store_may_be_closed_while_it_is_read() -> None:
    store = ArrivalStore(1, KeyRouter(128, 1))
    store.add(0, ["a", "b", "a"], RecordBatch(["x", "y", "z"], [1, 0, 0]))
    arrivals = next(store.batches()).inputs[0]
    assert (arrivals.values(), arrivals.times) in ((["z", "x"], [0, 1]), (["y"], [0]))
    store.close()


@pytest.mark.usefixtures("sorting")
def test_records_beyond_the_memory_are_pickled_without_a_memo(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pickled: list[bool] = []

    def dumped(data: Any) -> bytes | None:
        found = dump_flat(data)
        pickled.append(found is not None)
        return found

    monkeypatch.setattr(batch_input, "dump_flat", dumped)
    store = ArrivalStore(1, KeyRouter(128, 1))
    for number in range(3):
        records = [(key, number, 0.5) for key in "abcab"]
        store.add(0, list("abcab"), RecordBatch(records, [7, 6, None, 4, 3]))
    assert sum(len(batch.inputs[0]) for batch in store.batches()) == 15
    assert pickled
    assert all(pickled)
    store.close()


@given(RECORDS, st.lists(st.booleans(), min_size=20, max_size=20), st.integers(1, 9000))
def test_records_sent_by_field_are_sorted_like_others(
    records: list[Any], by_field: list[bool], memory_bytes: int
) -> None:
    whole = [batch(0, record) for record in records]
    fields = [
        InputElement(0, 0, RecordBatch(Columns([[key], [number]], ((), ())), [time]))
        if is_by_field
        else batch(0, ((key, number), time))
        for ((key, number), time), is_by_field in zip(records, by_field, strict=False)
    ]
    values, _ = sorted_run([*fields, *ends(0)], memory_bytes=memory_bytes)
    assert values == sorted_run([*whole, *ends(0)])[0]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(), st.booleans()), min_size=1),
    st.integers(1, 4000),
)
def test_keys_that_were_sent_as_a_field_are_restored(
    records: list[tuple[int, int, bool]], memory_bytes: int
) -> None:
    stores = ArrivalStore(memory_bytes, KeyRouter(128, 1)), ArrivalStore(2**40, KeyRouter(128, 1))
    for key, number, is_by_field in records:
        columns = Columns([[number], [key]], ((), ()))
        whole = RecordBatch([(number, key)], None)
        batch = RecordBatch(columns, None) if is_by_field else whole
        stores[0].add(0, [key], batch, 1 if is_by_field else None)
        stores[1].add(0, [key], whole)
    found, expected = (
        [record for batch in store.batches() for record in batch.inputs[0].values()]
        for store in stores
    )
    assert found == expected
    for store in stores:
        store.close()


def test_keys_of_records_sent_by_field_are_processed_by_field() -> None:
    columns = Columns([["a", "b", "a"], [1, 2, 3]], ((), ()))
    _, chain = sorted_run([InputElement(0, 0, RecordBatch(columns, [3, 2, 1])), *ends(0)])
    (_, fed), *_ = chain.calls
    assert isinstance(fed, Columns)
    assert sorted(fed) == sorted(columns)


class Both(KeyedCoProcessFunction[Any, Any, Any, Any]):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield 1, value, ctx.timestamp()

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield 2, value, ctx.timestamp()


def test_two_keyed_inputs_are_merged_by_key_and_time() -> None:
    harness = KeyedTwoInputOperatorHarness(Both(), itemgetter(0), itemgetter(0))
    _make_batch(harness)
    with harness:
        chain: Any = Chain(harness)
        elements = [
            batch(1, (("a", "y"), 1), (("a", "x"), 3)),
            batch(0, (("a", "p"), 2), (("a", "q"), 1)),
            *ends(1, 0),
        ]
        run(KeySortedInput(iter(elements), chain))  # type: ignore[arg-type]
        assert harness.values() == [
            (1, ("a", "q"), 1),
            (2, ("a", "y"), 1),
            (1, ("a", "p"), 2),
            (2, ("a", "x"), 3),
        ]
        assert chain.calls[-4:] == [
            ("watermark", 0, MAX_LONG_VALUE),
            ("watermark", 1, MAX_LONG_VALUE),
            ("end", 0),
            ("end", 1),
        ]


class Looks(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), list(ctx.get_broadcast_state(RULES))

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value, value)


class KeyedLooks(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    process_element = Looks.process_element  # type: ignore[assignment]
    process_broadcast_element = Looks.process_broadcast_element  # type: ignore[assignment]


BROADCAST_CASE = [
    batch(0, (("a", 1), 2), (("a", 2), 1)),
    batch(1, ("r", None)),
    *ends(0),
    batch(1, ("s", None)),
    *ends(1),
]


@pytest.mark.parametrize("memory_bytes", [1, MEMORY_BYTES])
def test_the_broadcast_input_is_read_first(memory_bytes: int) -> None:
    with TwoInputOperatorHarness(Looks(), broadcast_state=[RULES]) as harness:
        chain: Any = Chain(harness)
        run(BroadcastFirstInput(iter(BROADCAST_CASE), chain, memory_bytes))  # type: ignore[arg-type]
        assert harness.values() == [(("a", 1), 2, ["r", "s"]), (("a", 2), 1, ["r", "s"])]
        assert chain.calls[2:] == [
            ("end", 1),
            (0, [("a", 1), ("a", 2)]),
            ("watermark", 0, MAX_LONG_VALUE),
            ("watermark", 1, MAX_LONG_VALUE),
            ("end", 0),
        ]


def test_the_broadcast_input_is_read_first_beside_a_keyed_stream() -> None:
    harness = KeyedTwoInputOperatorHarness(KeyedLooks(), itemgetter(0), broadcast_state=[RULES])
    _make_batch(harness)
    with harness:
        chain: Any = Chain(harness)
        run(KeySortedInput(iter(BROADCAST_CASE), chain))  # type: ignore[arg-type]
        assert harness.values() == [(("a", 2), 1, ["r", "s"]), (("a", 1), 2, ["r", "s"])]
