from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.functions.window import GlobalWindow
from opchain.runtime.time import Duration
from opchain.runtime.windows.evictors import (
    CountEvictor,
    DeltaEvictor,
    Evictor,
    TimeEvictor,
    TimestampedValue,
)

EVERY = "-5 1 2 3 4 9"


def left(evictor: Any, when: str, *, timed: bool = True) -> str:
    """The elements that are kept; each value is its own timestamp."""
    elements = [TimestampedValue(int(v), int(v) if timed else None) for v in EVERY.split()]
    window: Any = GlobalWindow.get()
    context: Any = None
    getattr(evictor, f"evict_{when}")(elements, len(elements), window, context)
    return " ".join(str(element.value) for element in elements)


def distance(old: int, new: int) -> float:
    return abs(new - old)


EVICTORS: list[tuple[Any, Any, str]] = [
    (CountEvictor, (3,), "3 4 9"),
    (CountEvictor, (6,), EVERY),
    (CountEvictor, (0,), ""),
    (TimeEvictor, (Duration.of_millis(6),), "4 9"),
    (TimeEvictor, (5,), "9"),
    (TimeEvictor, (0,), ""),
    (DeltaEvictor, (7, distance), "3 4 9"),
    (DeltaEvictor, (5, distance), "9"),
    (DeltaEvictor, (0, distance), ""),
]


@pytest.mark.parametrize(("kind", "arguments", "kept"), EVICTORS)
def test_evictors_keep_the_elements_of_flink_before_or_after(
    kind: Any, arguments: Any, kept: str
) -> None:
    assert [left(kind.of(*arguments), when) for when in ("before", "after")] == [kept, EVERY]
    assert [left(kind.of(*arguments, True), when) for when in ("before", "after")] == [EVERY, kept]


def test_time_evictor_measures_from_the_newest_element_at_any_position() -> None:
    elements = [TimestampedValue(t, t) for t in (10, 1, 9, 5)]
    TimeEvictor.of(2).evict_before(elements, 4, GlobalWindow.get(), None)  # type: ignore[arg-type]
    assert [element.value for element in elements] == [10, 9]


def test_time_evictor_does_nothing_without_timestamps() -> None:
    assert left(TimeEvictor.of(1), "before", timed=False) == EVERY


@pytest.mark.parametrize("evictor", [TimeEvictor.of(1), DeltaEvictor.of(1, distance)], ids=repr)
def test_evictors_of_an_empty_window_do_nothing(evictor: Any) -> None:
    elements: list[Any] = []
    evictor.evict_before(elements, 0, GlobalWindow.get(), None)
    assert elements == []


def test_timestamped_value_knows_whether_it_has_a_timestamp() -> None:
    assert TimestampedValue("a", 5).get_timestamp() == 5
    assert TimestampedValue("a", 5).get_value() == "a"
    assert not TimestampedValue("a").has_timestamp()
    with pytest.raises(ValueError, match="'a' has no timestamp"):
        TimestampedValue("a").get_timestamp()


def test_a_users_evictor_changes_the_list_of_elements() -> None:
    class OddOnly(Evictor):  # type: ignore[type-arg]
        def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
            elements[:] = [element for element in elements if element.value % 2]

        def evict_after(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
            pass

    assert left(OddOnly(), "before") == "-5 1 3 9"


def test_evict_before_and_evict_after_are_abstract() -> None:
    class Half(Evictor[Any, Any]):
        def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
            pass

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_evictors_are_printed_as_in_flink_and_can_be_pickled() -> None:
    evictors = [CountEvictor.of(3), TimeEvictor.of(5), DeltaEvictor.of(1.5, distance)]
    assert [repr(pickle.loads(pickle.dumps(evictor))) for evictor in evictors] == [
        "CountEvictor(3)",
        "TimeEvictor(5)",
        "DeltaEvictor(distance, 1.5)",
    ]
