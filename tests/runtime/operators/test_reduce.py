"""Rolling reduce by key, and what batch mode makes of it; keys are told apart as Java does."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from forms import FORMS, run_form, seen
from opchain.datastream import ReduceFunction
from opchain.testing import KeyedOneInputOperatorHarness

KEYS = ["a", 1, True, 1.0, ("a", 1), ("a", 1.0), 0.0, -0.0, float("nan"), float("nan")]


class Sum(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


def test_every_record_gives_its_key_s_new_state() -> None:
    with KeyedOneInputOperatorHarness(Sum(), itemgetter(0)) as harness:
        harness.process_elements([(("a", 1), 5), (("b", 2), 6), (("a", 3), 7)])
        assert harness.records() == [(("a", 1), 5), (("b", 2), 6), (("a", 4), 7)]
        assert harness.operator.current_key == "a"


def test_state_survives_a_rescale() -> None:
    with KeyedOneInputOperatorHarness(Sum(), itemgetter(0), max_parallelism=8) as before:
        before.process_elements([((key, 1), None) for key in KEYS])
        snapshot = before.snapshot()
    for subtask in range(2):
        with KeyedOneInputOperatorHarness(
            Sum(),
            itemgetter(0),
            parallelism=2,
            subtask=subtask,
            max_parallelism=8,
            snapshots=[snapshot],
        ) as harness:
            for key in KEYS:
                if harness.owns(key):
                    harness.clear_output()
                    harness.process_element((key, 1))
                    assert harness.values()[0][1] > 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_keys_that_python_mixes_up_stay_apart(form: str, mode: str, parallelism: int) -> None:
    def draw(env: Any) -> None:
        stream = env.from_collection([(key, 1) for key in KEYS * 3])
        totals = stream.key_by(lambda value: value[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
        seen(totals, "totals")

    ran = run_form(draw, form, mode=mode, parallelism=parallelism)
    last = {repr(key): count for key, count in ran.records("totals")}
    assert last == {repr(key): 6 if key != key else 3 for key in KEYS}  # noqa: PLR0124 - a NaN


@pytest.mark.parametrize("form", FORMS)
def test_batch_mode_emits_once_per_key(form: str) -> None:
    def draw(env: Any) -> None:
        stream = env.from_collection([(number % 5, number) for number in range(100)])
        totals = stream.key_by(lambda value: value[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
        seen(totals, "totals")

    ran = run_form(draw, form, mode="BATCH", parallelism=2)
    assert sorted(ran.records("totals")) == [(key, 950 + 20 * key) for key in range(5)]
