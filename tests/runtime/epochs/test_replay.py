from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import given
from forms import job_of
from recorded_runs import run_recorded

from opchain.common import Time, Types, WatermarkStrategy
from opchain.datastream.functions import KeyedProcessFunction, SinkFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.epochs.replay import recorded_epoch, replay
from opchain.runtime.errors import CheckpointError
from opchain.runtime.functions.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EPOCHS = [
    {"pairs": [("a", 1), ("b", 2), ("a", 3), ("c", 4)]},
    {"pairs": [("b", 11), ("a", 12)]},
    {},
    {"pairs": [("c", 25), ("a", 40), ("d", 41)]},
]


class Sum(KeyedProcessFunction[str, Any, Any]):
    """The sum of each key, and a timer half a second later."""

    def __init__(self, step: int = 0) -> None:
        self.step = step

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        extra = self.step if value[1] == 12 else 0
        self.sum.update((self.sum.value() or 0) + value[1] + extra)
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + 500)
        yield (value[0], self.sum.value(), now)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield (ctx.get_current_key(), "timer", timestamp)


class Outside(SinkFunction[Any]):
    """A sink function that a replay must not call."""

    def invoke(self, value: Any, context: Any) -> None:
        calls.append(value)


class Broken(Sink[Any]):
    """A sink whose writer a replay must not create."""

    def create_writer(self, context: Any) -> Any:
        raise AssertionError("a replay writes nothing")


calls: list[Any] = []


def program(step: int = 0) -> Callable[[Any], Any]:
    def draw(env: Any) -> None:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        timed = strategy.with_timestamp_assigner(lambda pair, _: pair[1])
        pairs = given(env, "pairs", timed)
        sums = pairs.key_by(lambda pair: pair[0]).process(Sum(step)).uid("sums")
        sums.add_sink(Outside())
        sums.print()
        windows = pairs.key_by(lambda pair: pair[0]).window(
            TumblingEventTimeWindows.of(Time.milliseconds(10))
        )
        windows.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("windows").print()

    return draw


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run_recorded(program(), tmp_path_factory.mktemp("recorded"), EPOCHS)


@pytest.mark.parametrize("epoch", range(1, len(EPOCHS) + 1))
def test_a_replayed_epoch_gives_the_same_output_and_state(recorded: Any, epoch: int) -> None:
    job, storage = recorded
    before = storage.names()
    calls.clear()
    found = replay(job, recorded_epoch(storage, epoch))
    assert found.differences == ()
    assert found.tasks == len(job.tasks)
    assert found.records > 0
    assert found.entries > 0
    assert calls == []
    assert storage.names() == before


def test_epochs_of_restarted_runs_are_replayed(tmp_path: Path) -> None:
    for epoch in EPOCHS:  # each by a run of its own, which restores the state
        job, storage = run_recorded(program(), tmp_path, [epoch])
    for epoch in range(1, len(EPOCHS) + 1):
        assert replay(job, recorded_epoch(storage, epoch)).differences == ()


def test_a_changed_function_is_reported_with_its_first_differences(recorded: Any) -> None:
    _, storage = recorded
    job = job_of(program(step=100), "inlined", parallelism=2)
    assert replay(job, recorded_epoch(storage, 1)).differences == ()
    found = [str(item) for item in replay(job, recorded_epoch(storage, 2)).differences]
    assert [text.partition(": sends ")[2] or text.partition("state ")[2] for text in found] == [
        "other records to 'Sink: Print to Std. Out', 5 as were recorded",
        "'sum' of 'KeyedProcess' of key 'a': 116, and 16 was recorded",
    ]


def test_the_state_of_one_key_is_shown(recorded: Any) -> None:
    _, storage = recorded
    job = job_of(program(step=100), "inlined", parallelism=2)
    for key, differences in (("a", 1), ("b", 0)):
        found = replay(job, recorded_epoch(storage, 2), key=key)
        assert len(found.differences) == differences
    keyed = replay(job, recorded_epoch(storage, 2), key="a").keyed
    sums = [entries for entries in keyed if "sum" in str(entries[1])]
    assert [[entry and entry.value for entry in entries] for entries in sums] == [[4, 16, 116]]


def test_tasks_can_be_selected_and_prepared(recorded: Any) -> None:
    job, storage = recorded
    prepared: list[int] = []
    found = replay(
        job, recorded_epoch(storage, 1), [0], prepare=lambda task: prepared.append(task.info.task)
    )
    assert found.tasks == 1
    assert sorted(prepared) == list(job.tasks)


def test_a_different_job_graph_is_refused(recorded: Any) -> None:
    _, storage = recorded
    job = job_of(program(), "inlined", parallelism=3)
    with pytest.raises(
        CheckpointError, match="was run by another program, or with another parallel"
    ):
        replay(job, recorded_epoch(storage, 1))


def test_the_error_about_a_missing_epoch_lists_the_available_ones(tmp_path: Path) -> None:
    _, storage = run_recorded(program(), tmp_path / "retained", EPOCHS, retained=2)
    with pytest.raises(CheckpointError, match="no checkpoint of epoch 2; it has those of 3, 4"):
        recorded_epoch(storage, 2)
    with pytest.raises(
        CheckpointError, match="started from checkpoint 2, which is no longer retained"
    ):
        recorded_epoch(storage, 3)
    _, plain = run_recorded(program(), tmp_path / "plain", EPOCHS[:1], is_recorded=False)
    with pytest.raises(
        CheckpointError, match=r"was not recorded: run the job with opchain\.streaming"
    ):
        recorded_epoch(plain, 1)


def test_sink_writers_are_not_created(tmp_path: Path) -> None:
    class Careful(Broken):
        def create_writer(self, context: Any) -> Any:
            from opchain.runtime.connectors.simple_sinks import DiscardingSink  # noqa: PLC0415

            return DiscardingSink().create_writer(context)

    def draw(sink: Sink[Any]) -> Callable[[Any], Any]:
        return lambda env: given(env, "pairs").sink_to(sink).uid("sink")

    _, storage = run_recorded(draw(Careful()), tmp_path, EPOCHS[:1])
    found = replay(job_of(draw(Broken()), "inlined", parallelism=2), recorded_epoch(storage, 1))
    assert found.differences == ()
    assert found.records == 4
