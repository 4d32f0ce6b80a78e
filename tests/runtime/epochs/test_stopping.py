from __future__ import annotations

from operator import itemgetter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from opchain.runtime.epochs.replay import NO_KEY, stop_at
from opchain.runtime.records.columns import FOLDED, Columns


class Chain:
    """Records its calls."""

    def __init__(self) -> None:
        self.program = SimpleNamespace(
            operators=[SimpleNamespace(arrival_selectors=(lambda pair: pair[0],))],
            inputs=[SimpleNamespace(input_number=0, key_list=None)],
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


@pytest.mark.parametrize(
    ("values", "key_list", "stops"),
    [
        (Columns([["a", "b", "a"], [1, 2, 3]], ((), ())), 0, [("a", 1), ("a", 3)]),
        (Columns([["b", "a"], [2, 1], [7, 4]], ((FOLDED, "sum"),)), None, [("a", 1, 4)]),
        ([("x", "a"), ("y", "b")], None, [("x", "a")]),
    ],
)
def test_a_replay_stops_at_the_records_of_a_key(values: Any, key_list: Any, stops: Any) -> None:
    passed: list[Any] = []
    program = SimpleNamespace(
        operators=[SimpleNamespace(arrival_selectors=(itemgetter(1),))],
        inputs=[SimpleNamespace(input_number=0, key_list=key_list)],
    )
    chain = SimpleNamespace(program=program, process_part=lambda _, part, __: passed.extend(part))
    stopped: list[Any] = []

    def call(process: Any, number: int, part: Any, times: Any) -> None:
        stopped.extend(part)
        process(number, part, times)

    stop_at(cast("Any", SimpleNamespace(chain=chain)), "a", call)
    chain.process_part(0, values, None)
    assert stopped == stops
    assert passed == list(values)
