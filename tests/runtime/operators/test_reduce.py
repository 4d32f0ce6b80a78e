from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Row, Types, WatermarkStrategy
from opchain.datastream.functions import ProcessFunction, ReduceFunction
from opchain.runtime.operators.reduce import BATCH_SIZE
from opchain.runtime.program.operator_specs import ReduceSpec
from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness
from opchain.runtime.time import MAX_LONG_VALUE

ROW = Types.ROW_NAMED(["key", "total", "name"], [Types.LONG(), Types.LONG(), Types.STRING()])


class Longest(ReduceFunction[str]):
    def reduce(self, value1: str, value2: str) -> str:
        return max(value1, value2, key=len)


class Sees(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def initial(word: str) -> str:
    return word[0]


@pytest.mark.parametrize("spec", [ReduceSpec(Longest()), ReduceSpec(Longest().reduce)])
def test_every_record_emits_the_new_reduced_value_of_its_key(spec: ReduceSpec) -> None:
    with KeyedOneInputOperatorHarness(spec, initial) as harness:
        for time, word in enumerate(("be", "or", "bear", "b", "orange")):
            harness.process_element(word, time)
        assert harness.records() == [
            *(("be", 0), ("or", 1), ("bear", 2), ("bear", 3), ("orange", 4)),
        ]
        assert harness.operator.current_key == "o"


def join_until_b(joined: Any, value: Any) -> Any:
    return None if value[1] == "b" else (value[0], joined[1] + value[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_after_a_result_of_none_the_next_record_starts_over(form: str, parallelism: int) -> None:
    def draw(env: Any) -> None:
        pairs = [("k", text) for text in "abcd"] + [("empty", "a"), ("empty", "b")]
        keyed = env.from_collection(pairs).key_by(lambda pair: pair[0])
        for name, function in (
            ("function", join_until_b),
            ("lambda", lambda a, b: None if b[1] == "b" else (b[0], a[1] + b[1])),
        ):
            seen(keyed.reduce(function), name)

    for name in ("function", "lambda"):
        records = run_form(draw, form, parallelism=parallelism).records(name)
        assert [record for record in records if record is None] == [None, None]
        found = {record for record in records if record is not None}
        assert found == {("k", "a"), ("k", "c"), ("k", "cd"), ("empty", "a")}
        batch = run_form(draw, form, mode="BATCH", parallelism=parallelism)
        assert batch.records(name) == [("k", "cd")]


def test_a_reduced_value_of_none_is_not_passed_to_the_function() -> None:
    calls: list[Any] = []

    def reduce(one: Any, other: Any) -> Any:
        calls.append((one, other))
        return None

    with KeyedOneInputOperatorHarness(ReduceSpec(reduce), lambda _: "k") as harness:
        for value in (None, 1, 2, 3, 4):
            harness.process_element(value)
        assert harness.values() == [None, 1, None, 3, None]
    assert calls == [(1, 2), (3, 4)]


def test_the_key_is_that_of_the_record_and_not_of_the_reduced_value() -> None:
    with KeyedOneInputOperatorHarness(ReduceSpec(lambda a, b: a + b), lambda x: x % 2) as harness:
        for value in (1, 3, 5, 2):
            harness.process_element(value)
        assert harness.values() == [1, 4, 9, 2]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_batch_mode_emits_each_key_once_with_its_last_timestamp(
    form: str, parallelism: int
) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )

    def draw(env: Any) -> None:
        numbers = env.from_sequence(1, 10).assign_timestamps_and_watermarks(strategy)
        sums = numbers.key_by(lambda x: x % 3).reduce(lambda a, b: a + b)
        seen(sums, "sums")
        seen(sums.process(Sees()), "behind")

    ran = run_form(draw, form, mode="BATCH", parallelism=parallelism)
    assert sorted(ran.records("sums")) == [15, 18, 22]
    assert set(ran.timestamps("sums")) == {MAX_LONG_VALUE}
    # The results are not late: the last watermark is emitted after them.
    assert sorted(ran.records("behind")) == [
        (total, MAX_LONG_VALUE, -(2**63)) for total in (15, 18, 22)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_batch_mode_emits_keys_in_the_order_of_their_first_records(form: str) -> None:
    def draw(env: Any) -> None:
        words = env.from_collection(["be", "or", "bear", "a", "orange"])
        seen(words.key_by(initial).reduce(Longest()), "words")

    assert run_form(draw, form, mode="BATCH").records("words") == ["bear", "orange", "a"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_none_is_a_valid_key(mode: str, form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 3).key_by(lambda _: None).reduce(max), "greatest")

    assert run_form(draw, form, mode=mode).records("greatest")[-1] == 3


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("form", FORMS)
def test_a_reduce_function_that_changes_its_argument_affects_no_other_reader(
    form: str, mode: str
) -> None:
    def add(one: list[int], other: list[int]) -> list[int]:
        one.extend(other)
        return one

    def draw(env: Any) -> None:
        lists = env.from_sequence(1, 4).map(lambda x: [x])
        seen(lists.key_by(lambda row: row[0] % 2).reduce(add).map(tuple), "sums")
        seen(lists.map(len), "lengths")

    ran = run_form(draw, form, mode=mode)
    sums = {(1, 3), (2, 4)} if mode == "BATCH" else {(1,), (2,), (1, 3), (2, 4)}
    assert set(ran.records("sums")) == sums
    assert ran.records("lengths") == [1, 1, 1, 1]


@pytest.mark.parametrize("form", FORMS)
def test_batch_mode_results_of_many_keys_have_all_their_fields(form: str) -> None:
    keys = BATCH_SIZE + 10

    def draw(env: Any) -> None:
        numbers = env.from_sequence(0, 2 * keys - 1)
        rows = numbers.map(lambda x: Row(key=x % keys, total=x, name="a"), ROW)
        sums = rows.key_by(lambda row: row.key).reduce(
            lambda a, b: Row(key=a.key, total=a.total + b.total, name=a.name + b.name)
        )
        seen(sums.map(lambda row: (row.key, row.total)), "totals")
        seen(sums.filter(lambda row: row.key < 2), "rows")

    ran = run_form(draw, form, mode="BATCH")
    assert sorted(ran.records("totals")) == [(key, 2 * key + keys) for key in range(keys)]
    assert sorted(map(tuple, ran.records("rows"))) == [(0, keys, "aa"), (1, keys + 2, "aa")]


@pytest.mark.parametrize(
    ("key_field", "pairs"), [(0, [("a", 1), ("b", 2)]), (1, [(1, "a"), (2, "b")])]
)
def test_sums_kept_by_generated_code_are_in_the_snapshot(key_field: int, pairs: Any) -> None:
    spec = ReduceSpec(lambda a, _: a)
    with KeyedOneInputOperatorHarness(spec, lambda pair: pair[key_field]) as harness:
        sums = harness.operator.keep_sums(("sum", "key") if key_field else ("key", "sum"))
        harness.process_element(pairs[1])
        sums.update(a=1, b=2)
        whole = harness.snapshot()
        assert sums == {}
        assert dict(harness.operator.table) == {pair[key_field]: pair for pair in pairs}
        sums["a"] = 5
        changed = harness.snapshot_changes()
        assert harness.operator.table["a"] == ((5, "a") if key_field else ("a", 5))
    assert len(whole.keyed) == len(changed.keyed) == 2
