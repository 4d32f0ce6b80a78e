"""States with a time to live behave the same in each form of a program. The records move the clock."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun
from epoch_runs import given as given_records
from forms import FORMS, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st
from state_backends import BACKENDS

from opchain.common import Types
from opchain.datastream import KeyedProcessFunction
from opchain.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from opchain.runtime.mailbox.timer_service import SystemTimerService
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keyed.ttl_states import TtlListState, TtlMapState, TtlValueState

if TYPE_CHECKING:
    from pathlib import Path

TTL = 10


class Clock:
    """A clock that advances by one step at each read."""

    now = 0
    step = 0

    @classmethod
    def read(cls) -> int:
        cls.now += cls.step
        return cls.now


class Lives(KeyedProcessFunction[Any, Any, Any]):
    """A record is (key, what to do, a number)."""

    def __init__(self, config: StateTtlConfig) -> None:
        self.config = config

    def open(self, runtime_context: Any) -> None:
        last = ValueStateDescriptor("last", Types.LONG())
        last.enable_time_to_live(self.config)
        self.last = runtime_context.get_state(last)
        anything = ValueStateDescriptor("anything")
        anything.enable_time_to_live(self.config)
        self.anything = runtime_context.get_state(anything)
        named = MapStateDescriptor("named", Types.LONG(), Types.LONG())
        named.enable_time_to_live(self.config)
        self.named = runtime_context.get_map_state(named)
        unnamed = MapStateDescriptor("unnamed")
        unnamed.enable_time_to_live(self.config)
        self.unnamed = runtime_context.get_map_state(unnamed)
        many = ListStateDescriptor("many", Types.LONG())
        many.enable_time_to_live(self.config)
        self.many = runtime_context.get_list_state(many)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:  # noqa: C901, PLR0912 - one branch for each method
        what, number = value[1], value[2]
        self.count.update((self.count.value() or 0) + 1)
        found: Any = None
        if what == 0:
            self.last.update(number or None)
        elif what == 1:
            found = self.last.value()
        elif what == 2:
            self.named.put(number % 3, number)
        elif what == 3:
            found = self.named.get(number % 3), self.named.contains(1)
        elif what == 4:
            self.named.remove(number % 3)
            found = self.named.is_empty()
        elif what == 5:
            self.last.clear()
            self.named.clear()
        elif what == 6:
            self.many.update([*self.many.get(), number])
        elif what == 7:
            found = [self.named.get(item) for item in range(number) if self.named.contains(item)]
        elif what == 8:
            found = list(self.named.items()), list(self.named.keys()), list(self.many.get())
        elif what == 9:
            self.anything.update((self.anything.value(), number))
        elif what == 10:
            found = self.refused()
        elif what == 11:
            self.unnamed.put(number % 3, None if number % 2 else number)
        elif what == 13:
            contained = self.unnamed.contains(number % 3)
            found = contained, self.unnamed.get(number % 3)
        elif what == 14:
            contained = self.named.contains(1)
            found = contained
        elif what == 15:
            self.anything.update(None)
        else:
            Clock.now += number
        ctx.timer_service().register_event_time_timer(number * 5)
        yield value, found, self.count.value()

    def refused(self) -> bool:
        try:
            self.last.update("text")
        except TypeError:
            return True
        return False

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        if timestamp % 2:
            self.last.update(timestamp)
            self.named.put(1, timestamp)
        Clock.now += timestamp % 3
        yield timestamp, self.last.value(), self.named.get(1)


class OnlyLives(KeyedProcessFunction[Any, Any, Any]):
    """Makes only calls that become look-ups. A record is (key, what to do, a number)."""

    def __init__(self, config: StateTtlConfig) -> None:
        self.config = config

    def open(self, runtime_context: Any) -> None:
        last = ValueStateDescriptor("last", Types.LONG())
        last.enable_time_to_live(self.config)
        self.last = runtime_context.get_state(last)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        before = self.last.value()
        if value[1] % 3 == 0:
            self.last.update(value[2])
        elif value[1] == 1:
            self.last.clear()
        yield value, before, self.last.value(), self.count.value()


def outcome(
    form: str,
    records: list[Any],
    config: StateTtlConfig,
    mode: str,
    function: Any = Lives,
    step: int = 0,
) -> Any:
    """Results, counters, all entries with their times at the end, and the keys that may have changed."""
    backends: list[Any] = []
    make = HashMapKeyedStateBackend.__init__

    def tracking(self: Any, *arguments: Any, **how: Any) -> None:
        make(self, *arguments, **how)
        if mode == "STREAMING":
            self.track_changes()
            self._begin_changes(1)
        backends.append(self)

    def draw(env: Any) -> None:
        keyed = env.from_collection(records).key_by(lambda record: record[0])
        seen(keyed.process(function(config)), "results")

    Clock.now, Clock.step = 0, step
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HashMapKeyedStateBackend, "__init__", tracking)
        patched.setattr(SystemTimerService, "current_processing_time", lambda _: Clock.read())
        ran = run_form(draw, form, mode=mode, batch_size=4)
    spaces = [
        {name: table.spaces for name, table in backend._tables.items()} for backend in backends
    ]
    touched = [set(map(repr, backend.touched_keys())) for backend in backends]
    return repr(ran.subtasks("results")), ran.counters(), repr(spaces), touched


def configured(reads: bool, shows: bool, cleanup: int | None) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(TTL)
    if reads:
        builder.update_ttl_on_read_and_write()
    if shows:
        builder.return_expired_if_not_cleaned_up()
    if cleanup is None:
        builder.disable_cleanup_in_background()
    else:
        builder.cleanup_incrementally(cleanup, False)
    return builder.build()


SIZES = (None, 1, 3)
CONFIGURATIONS = st.builds(configured, st.booleans(), st.booleans(), st.sampled_from(SIZES))
KEYS = st.sampled_from(["a", "b", 1, 1.0])
RECORDS = st.lists(
    st.tuples(KEYS, st.integers(0, 15), st.integers(0, TTL)), min_size=1, max_size=40
)


@settings(max_examples=12, deadline=None)
@given(RECORDS, CONFIGURATIONS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_states_with_ttl_behave_the_same_in_each_form(
    mode: str, records: list[Any], config: StateTtlConfig
) -> None:
    interpreted = outcome("interpreted", records, config, mode)
    for form in FORMS[1:]:
        assert outcome(form, records, config, mode) == interpreted


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("function", [Lives, OnlyLives])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    ("reads", "shows", "cleanup"), list(product([False, True], [False, True], SIZES))
)
def test_states_with_ttl_behave_the_same_for_many_records(
    reads: bool, shows: bool, cleanup: int | None, mode: str, function: Any, step: int
) -> None:
    random = Random(1)
    records = [
        (random.choice("ab"), random.randrange(16), random.randrange(TTL + 1) // 2)
        for _ in range(400)
    ]
    config = configured(reads, shows, cleanup)
    interpreted, inlined = (
        outcome(form, records, config, mode, function, step) for form in ("interpreted", "inlined")
    )
    assert inlined == interpreted


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("waits", "found"), [((9,), 7), ((10,), None), ((9, 1), None), ((9, 9), None)]
)
@pytest.mark.parametrize(("write", "read"), [(0, 1), (2, 3)])
def test_a_state_entry_expires_exactly_at_its_time(
    form: str, waits: tuple[int, ...], found: int | None, write: int, read: int
) -> None:
    moves = [("b", 12, wait) for wait in waits]
    records = [("a", write, 7), *moves, ("a", read, 7)]
    results, *_ = outcome(form, records, configured(False, False, None), "STREAMING")
    expected = found if read == 1 else (found, found is not None)
    assert f"(('a', {read}, 7), {expected}, 2)" in results


METHODS: dict[Any, list[str]] = {
    TtlValueState: ["value"],
    TtlListState: ["get", "update"],
    TtlMapState: ["items", "keys", "put", "remove"],
}


@pytest.mark.parametrize(("form", "are_called"), [("interpreted", True), ("inlined", False)])
def test_generated_code_inlines_reads_of_states_with_ttl(
    form: str, are_called: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = set()

    def note(state: Any, method: str) -> None:
        made = getattr(state, method)
        monkeypatch.setattr(
            state, method, lambda *arguments: calls.add((state, method)) or made(*arguments)
        )

    for state, methods in METHODS.items():
        for method in methods:
            note(state, method)
    records = [("a", 0, 3), ("a", 1, 3), ("b", 1, 3), *(("a", what, 3) for what in (2, 4, 6, 8))]
    results, *_ = outcome(form, records, StateTtlConfig.new_builder(TTL).build(), "STREAMING")
    assert "(('a', 1, 3), 3, 2)" in results
    assert "(('a', 8, 3), ([], [], [3]), 6)" in results
    assert len(calls) == (sum(map(len, METHODS.values())) if are_called else 0)


def history(form: str, backend: str, config: StateTtlConfig, folder: Path, restarts: bool) -> Any:
    """Results of epochs. If the job restarts, it continues from the checkpoint after each epoch."""

    def draw(env: Any) -> None:
        keyed = given_records(env, "in").key_by(lambda record: record[0])
        seen(keyed.process(OnlyLives(config)).uid("lives"), "results")

    random = Random(1)
    Clock.now, Clock.step = 0, 1
    results = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SystemTimerService, "current_processing_time", lambda _: Clock.read())
        settings = {"state_backend": backend, "batch_size": 4}
        run = EpochRun(draw, folder, form=form, settings=settings)
        for _ in range(12):
            records = [(random.choice("abcdef"), random.randrange(4), 1) for _ in range(5)]
            results.append(run.run(**{"in": records}).records("results"))
            if restarts:
                run = run.restarted()
        run.close()
    return results


@pytest.mark.parametrize("shows", [False, True])
@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_states_with_ttl_continue_from_checkpoints(
    backend: str, reads: bool, shows: bool, tmp_path: Path
) -> None:
    config = configured(reads, shows, None)
    expected = history("interpreted", "hashmap", config, tmp_path / "expected", restarts=False)
    for form in FORMS:
        assert history(form, backend, config, tmp_path / form, restarts=True) == expected
