from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.operators.keyed_process import KeyedTimerService
from opchain.runtime.state.keyed.keyed_backend import VOID


class Recorder:
    current_watermark = 7

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, int]] = []

    def current_processing_time(self) -> int:
        return 8

    def __getattr__(self, name: str) -> Any:
        return lambda namespace, time: self.calls.append((name, namespace, time))


@pytest.mark.parametrize("action", ["register", "delete"])
@pytest.mark.parametrize("domain", ["event", "processing"])
def test_timers_are_registered_without_a_namespace(action: str, domain: str) -> None:
    recorder: Any = Recorder()
    method = f"{action}_{domain}_time_timer"
    getattr(KeyedTimerService(recorder), method)(5)
    assert recorder.calls == [(method, VOID, 5)]


def test_both_clocks_are_read() -> None:
    recorder: Any = Recorder()
    service = KeyedTimerService(recorder)
    assert (service.current_watermark(), service.current_processing_time()) == (7, 8)


def test_numpy_integers_are_accepted_as_times() -> None:
    numpy = pytest.importorskip("numpy")
    recorder: Any = Recorder()
    KeyedTimerService(recorder).register_event_time_timer(numpy.int64(5))
    assert type(recorder.calls[0][2]) is int


def test_the_fraction_of_a_time_is_dropped() -> None:
    recorder: Any = Recorder()
    KeyedTimerService(recorder).register_event_time_timer(5.9)  # type: ignore[arg-type]
    assert recorder.calls[0][2] == 5


@pytest.mark.parametrize("time", [None, "5"])
@pytest.mark.parametrize("action", ["register", "delete"])
def test_the_error_names_a_time_that_is_not_a_number(action: str, time: Any) -> None:
    recorder: Any = Recorder()
    with pytest.raises(TypeError, match=f"for {time!r}: its time must be a number of milliseconds"):
        getattr(KeyedTimerService(recorder), f"{action}_event_time_timer")(time)
    assert not recorder.calls
