from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from opchain.runtime.epochs.replay import NO_KEY, stop_at


class Chain:
    """Records its calls."""

    def __init__(self) -> None:
        self.program = SimpleNamespace(
            operators=[SimpleNamespace(arrival_selectors=(lambda pair: pair[0],))]
        )
        self.noted: list[Any] = []

    def process_part(self, number: int, values: Any, timestamps: Any) -> None:
        self.noted.append((number, values, timestamps))

    def process_batch(self, number: int, values: Any, timestamps: Any) -> None:
        self.process_part(number, values, timestamps)
        self.on_batch_end()

    def on_batch_end(self) -> None:
        self.noted.append("end")


VALUES = [("a", 1), ("b", 2), ("a", 3), ("c", 4)]


@pytest.mark.parametrize(
    ("key", "stops", "parts"),
    [
        (NO_KEY, [VALUES], [VALUES]),
        ("a", [VALUES[:1], VALUES[2:3]], [VALUES[:1], VALUES[1:2], VALUES[2:3], VALUES[3:]]),
        ("c", [VALUES[3:]], [VALUES[:3], VALUES[3:]]),
        ("z", [], [VALUES]),
    ],
)
def test_a_batch_is_split_at_the_key_and_ended_once(key: Any, stops: Any, parts: Any) -> None:
    chain = Chain()
    stopped: list[Any] = []

    def call(process: Any, number: int, values: Any, timestamps: Any) -> None:
        stopped.append(values)
        process(number, values, timestamps)

    task: Any = SimpleNamespace(chain=chain)
    stop_at(task, key, call)
    chain.process_batch(0, VALUES, [1, 2, 3, 4])
    assert stopped == stops
    assert chain.noted[-1] == "end"
    assert chain.noted.count("end") == 1
    assert [values for _, values, _ in chain.noted[:-1]] == parts
    assert [time for _, _, times in chain.noted[:-1] for time in times] == [1, 2, 3, 4]
