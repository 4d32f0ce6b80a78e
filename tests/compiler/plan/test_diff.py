from collections.abc import Callable
from typing import Any

import pytest
from programs import PROGRAMS, drawn

from opchain import StreamExecutionEnvironment
from opchain.compiler.plan.diff import diff_plans, diff_text
from opchain.compiler.plan.model import JobPlan
from opchain.datastream import DataStream, KeyedProcessFunction, ProcessFunction
from opchain.testing import plan_of


def planned(draw: Callable[[DataStream[Any]], object], **settings: str) -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment()
    for key, value in settings.items():
        env.get_configuration().set_string(key.replace("_", "."), value)
    env.set_parallelism(2)
    draw(env.from_sequence(1, 9).name("numbers"))
    return plan_of(env)


def plain(numbers: DataStream[Any]) -> object:
    return numbers.map(abs).name("parse").filter(bool).name("clean").print()


@pytest.mark.parametrize("name", PROGRAMS)
def test_diff_of_a_program_with_itself_is_empty(name: str) -> None:
    diff = diff_plans(plan_of(drawn(name)), plan_of(drawn(name)))
    assert diff.is_empty
    assert diff_text(diff) == "the plans are the same\n"


CHANGES: dict[str, tuple[Callable[[DataStream[Any]], object], str]] = {
    "unchained": (
        lambda n: n.map(abs).name("parse").filter(bool).name("clean").start_new_chain().print(),
        "'parse' -> 'clean'  FORWARD, because 'clean' (test_diff.py:",
    ),
    "renamed": (
        lambda n: n.map(abs).name("read").filter(bool).name("clean").print(),
        "'parse' -> 'read'",
    ),
    "added": (
        lambda n: n.map(abs).name("parse").map(abs).name("new").filter(bool).name("clean").print(),
        "'new' (map, test_diff.py:",
    ),
    "moved": (
        lambda n: n.map(abs).name("parse").map(abs).name("new").filter(bool).name("clean").print(),
        "'clean' reads 'new', was 'parse'",
    ),
    "removed": (lambda n: n.filter(bool).name("clean").print(), "'parse' (map, test_diff.py:"),
    "parallelism": (
        lambda n: n.map(abs).name("parse").set_parallelism(3).filter(bool).name("clean").print(),
        "'parse': 2 -> 3",
    ),
    "max parallelism": (
        lambda n: (
            n.map(abs).name("parse").set_max_parallelism(9).filter(bool).name("clean").print()
        ),
        "'parse': unset -> 9",
    ),
    "uid": (
        lambda n: n.map(abs).name("parse").uid("p").filter(bool).name("clean").print(),
        "'parse': none -> 'p'",
    ),
    "uid hash": (
        lambda n: (
            n.map(abs).name("parse").set_uid_hash("0" * 32).filter(bool).name("clean").print()
        ),
        f"'parse': none -> {'0' * 32}",
    ),
    "description": (
        lambda n: n.map(abs).name("parse").set_description("x").filter(bool).name("clean").print(),
        '-> "x"',
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_diff_names_each_kind_of_change(kind: str) -> None:
    changed, text = CHANGES[kind]
    diff = diff_plans(planned(plain), planned(changed))
    assert any(change.kind == kind and text in change.text for change in diff.changes), diff
    assert f"{kind:<16}" in diff_text(diff)
    back = diff_plans(planned(changed), planned(plain))
    assert not back.is_empty


class Same(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class SameByKey(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


def test_diff_names_operator_kinds_by_their_method() -> None:
    before = planned(lambda n: n.map(abs).uid("step").print())
    after = planned(lambda n: n.flat_map(range).uid("step").print())
    texts = [change.text for change in diff_plans(before, after).changes if change.kind == "kind"]
    assert texts == ["'Flat Map': map -> flat map"]


def test_diff_names_kinds_with_the_same_method_in_full() -> None:
    before = planned(lambda n: n.process(Same()).uid("step").print())
    after = planned(lambda n: n.key_by(abs).process(SameByKey()).uid("step").print())
    texts = [change.text for change in diff_plans(before, after).changes if change.kind == "kind"]
    assert texts == ["'KeyedProcess': process -> keyed process"]


def test_diff_names_an_edge_that_becomes_chained() -> None:
    changed, _ = CHANGES["unchained"]
    diff = diff_plans(planned(changed), planned(plain))
    assert [change.kind for change in diff.changes] == ["chained"]
    assert diff.changes[0].text == "'parse' -> 'clean'  (was FORWARD)"


def test_diff_names_a_changed_exchange() -> None:
    def spread(numbers: DataStream[Any]) -> object:
        return numbers.rebalance().map(abs).name("parse").print()

    def shuffled(numbers: DataStream[Any]) -> object:
        return numbers.shuffle().map(abs).name("parse").print()

    diff = diff_plans(planned(spread), planned(shuffled))
    assert [tuple(change) for change in diff.changes] == [
        ("exchange", "'Source: numbers' -> 'parse': REBALANCE -> SHUFFLE")
    ]


def test_diff_has_one_line_for_equal_changes_of_several_operators() -> None:
    def scaled(numbers: DataStream[Any]) -> object:
        parsed = numbers.set_parallelism(5).map(abs).name("parse").set_parallelism(5)
        return parsed.filter(bool).name("clean").set_parallelism(5).print().set_parallelism(5)

    diff = diff_plans(planned(plain), planned(scaled))
    assert [change.text for change in diff.changes] == [
        "'Source: numbers', 'parse', 'clean', 'Sink: Print to Std. Out': 2 -> 5"
    ]


def test_diff_names_changed_settings_of_the_job() -> None:
    diff = diff_plans(planned(plain), planned(plain, pipeline_name="other"))
    assert [tuple(change) for change in diff.changes] == [
        ("job name", "'Flink Streaming Job' -> 'other'")
    ]
    batch = plan_of(drawn("batch"))
    assert diff_plans(planned(plain), batch).changes[1] == ("mode", "STREAMING -> BATCH")


def test_diff_counts_two_edges_of_a_stream_united_with_itself() -> None:
    def twice(numbers: DataStream[Any]) -> object:
        return numbers.union(numbers).map(abs).name("parse").print()

    assert diff_plans(planned(twice), planned(twice)).is_empty
    once = diff_plans(planned(twice), planned(lambda n: n.map(abs).name("parse").print()))
    assert {change.kind for change in once.changes} == {"moved", "chained"}


def test_diff_says_that_new_operators_start_with_empty_state() -> None:
    def counted(numbers: DataStream[Any]) -> object:
        return numbers.key_by(abs).reduce(max).name("highest").print()

    diff = diff_plans(planned(plain), planned(counted))
    assert diff.starts_empty == ["'highest'"]
    assert "starts with empty state: 'highest'" in diff_text(diff)


def test_diff_mentions_key_groups_derived_from_the_parallelism() -> None:
    def at(parallelism: int) -> JobPlan:
        return planned(
            lambda n: n.key_by(abs).reduce(max).name("highest").set_parallelism(parallelism).print()
        )

    diff = diff_plans(at(2), at(200))
    assert ("key groups", "'highest': 128 -> 512") in [tuple(change) for change in diff.changes]
