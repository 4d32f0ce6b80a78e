"""Which reduces are kept as one field per key, and that nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.compiler.codegen.inline import expression_of
from opchain.compiler.codegen.running_sum import running_sum
from opchain.compiler.codegen.static_types import TupleOf
from opchain.runtime.program.vertex_program import KeyProgram
from opchain.runtime.state.keys.key_hashers import hash_declared_double

COUNTED = TupleOf((str, int))
FIRST: Any = lambda pair: pair[0]  # noqa: E731
SECOND: Any = lambda pair: pair[1]  # noqa: E731
ADD: Any = lambda a, b: (a[0], a[1] + b[1])  # noqa: E731


def found(selector: Any, reduce: Any, records: Any, hasher: Any = None) -> Any:
    key = KeyProgram(selector, "key", "job.py:1", hasher)
    return running_sum(key, expression_of(selector), expression_of(reduce), records)


@pytest.mark.parametrize(
    ("selector", "reduce", "records", "added", "pair"),
    [
        (FIRST, ADD, COUNTED, "t + 1", "(k, n)"),
        (FIRST, lambda x, y: (x[0], 2 * y[1] - x[1]), COUNTED, "2 * 1 - t", "(k, n)"),
        (SECOND, lambda a, b: (b[0] + a[0], a[1]), TupleOf((float, int)), "1 + t", "(n, k)"),
    ],
)
def test_sums_of_pairs(selector: Any, reduce: Any, records: Any, added: str, pair: str) -> None:
    summed = found(selector, reduce, records)
    assert summed.added("t", "1") == added
    assert summed.pair("k", "n") == pair


@pytest.mark.parametrize(
    ("selector", "reduce", "records"),
    [
        pytest.param(FIRST, ADD, None, id="records of unknown type"),
        pytest.param(FIRST, ADD, TupleOf((str, int, int)), id="more than a pair"),
        pytest.param(FIRST, ADD, TupleOf((None, int)), id="unknown key"),
        pytest.param(FIRST, ADD, TupleOf((float, int)), id="key that Java compares otherwise"),
        pytest.param(FIRST, ADD, TupleOf((str, None)), id="unknown field"),
        pytest.param(FIRST, ADD, TupleOf((str, type(None))), id="field that cannot be added"),
        pytest.param(lambda pair: pair[0] + "", ADD, COUNTED, id="key that is no field"),
        pytest.param(len, ADD, COUNTED, id="selector that is a call"),
        pytest.param(FIRST, max, COUNTED, id="reduce that is a call"),
        pytest.param(FIRST, lambda a, b: (b[0], a[1] + b[1]), COUNTED, id="the latest key"),
        pytest.param(FIRST, lambda a, b: (a[0], a[1] // b[1]), COUNTED, id="may raise"),
        pytest.param(FIRST, lambda a, b: (a[0], a[1] / b[1]), COUNTED, id="another type"),
        pytest.param(FIRST, lambda a, b: (a[0], a[1] + len(b)), COUNTED, id="reads the pair"),
        pytest.param(FIRST, lambda a, b: (a[0], a[1] + len(b[0])), COUNTED, id="reads the key"),
        pytest.param(FIRST, lambda a, b: a, COUNTED, id="keeps a pair"),
        pytest.param(FIRST, lambda a, b: (a[0], a[1], b[1]), COUNTED, id="makes more of it"),
    ],
)
def test_anything_else_is_kept_whole(selector: Any, reduce: Any, records: Any) -> None:
    assert found(selector, reduce, records) is None


@pytest.mark.parametrize(
    ("reduce", "addend", "is_count"),
    [
        (ADD, "1", True),
        (lambda a, b: (a[0], b[1] + a[1]), "1", True),
        (lambda a, b: (a[0], a[1] + 1), "1", True),
        (ADD, "5", False),
        (lambda a, b: (a[0], a[1] + 1), "5", False),
        (lambda a, b: (a[0], a[1] + 1), "value", False),
    ],
)
def test_what_counts_begins_at_one(reduce: Any, addend: str, is_count: bool) -> None:
    assert found(FIRST, reduce, COUNTED).counts(addend) is is_count


def test_a_declared_key_type_may_change_the_key() -> None:
    assert found(FIRST, ADD, TupleOf((int, int)), hash_declared_double) is None


def draw(env: Any, count: int, keys: int, by: int) -> None:
    numbers = env.from_sequence(0, count - 1)
    if by == 0:
        pairs = numbers.map(lambda x: (x * x % keys, x))
        sums = pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] - b[1]))
    elif by == 1:
        pairs = numbers.map(lambda x: (x % keys, 5))
        sums = pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + 1))
    else:
        pairs = numbers.map(lambda x: (0.5, x % keys)).filter(lambda pair: pair[1] != 2)
        sums = pairs.key_by(lambda pair: pair[1]).reduce(lambda a, b: (a[0] * 3.0 - b[0], a[1]))
    seen(sums, "sums")


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 60),
    keys=st.integers(1, 9),
    by=st.integers(0, 2),
    mode=st.sampled_from(["STREAMING", "BATCH"]),
)
def test_nobody_can_tell(count: int, keys: int, by: int, mode: str) -> None:
    runs = [
        run_form(lambda env: draw(env, count, keys, by), form, mode=mode, parallelism=2)
        for form in FORMS
    ]
    for run in runs:
        assert run.subtasks("sums") == runs[0].subtasks("sums")
        assert run.counters() == runs[0].counters()
