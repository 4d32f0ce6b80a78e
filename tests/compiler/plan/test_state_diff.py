from collections.abc import Callable
from typing import Any

from opchain import StreamExecutionEnvironment
from opchain.common import Types
from opchain.compiler.plan.diff import StateProblem, match_operators, state_problems
from opchain.compiler.plan.model import JobPlan
from opchain.datastream import DataStream
from opchain.datastream.functions import KeyedProcessFunction
from opchain.testing import plan_of


class Count(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context[Any]) -> None: ...


def planned(draw: Callable[[DataStream[Any]], object]) -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    draw(env.from_sequence(1, 9).name("numbers").uid("numbers"))
    return plan_of(env)


def problems(
    before: Callable[[DataStream[Any]], object], after: Callable[[DataStream[Any]], object]
) -> list[StateProblem]:
    plans = planned(before), planned(after)
    return state_problems(*plans, match_operators(plans[0].operators, plans[1].operators))


def highest(numbers: DataStream[Any]) -> DataStream[Any]:
    return numbers.key_by(abs).reduce(max).name("highest")


def test_state_that_finds_its_operator_is_not_a_problem() -> None:
    assert problems(lambda n: highest(n).print(), lambda n: highest(n).print("again")) == []


def test_a_changed_uid_loses_the_state() -> None:
    [problem] = problems(
        lambda n: highest(n).uid("old").print(), lambda n: highest(n).uid("new").print()
    )
    assert problem.code == "lost"
    assert "(its uid was 'old' and is 'new')" in problem.text
    assert problem.remedy.startswith("uid('old') again, or set_uid_hash('")


def test_the_advised_uid_hash_finds_the_state() -> None:
    old = planned(lambda n: highest(n).print())
    old_id = next(operator.id for operator in old.operators if operator.name == "highest")

    def found_again(numbers: DataStream[Any]) -> object:
        return highest(numbers.map(abs).name("new").disable_chaining()).set_uid_hash(old_id).print()

    def lost(numbers: DataStream[Any]) -> object:
        return highest(numbers.map(abs).name("new").disable_chaining()).uid("x").print()

    assert [p.code for p in problems(lambda n: highest(n).print(), lost)] == ["lost"]
    assert problems(lambda n: highest(n).print(), found_again) == []


def test_a_shifted_generated_id_assigns_state_to_another_operator() -> None:
    def one(numbers: DataStream[Any]) -> object:
        return highest(numbers).print()

    def another_in_its_place(numbers: DataStream[Any]) -> object:
        first = numbers.key_by(abs).reduce(min).name("lowest")
        first.print()
        return highest(first).print()

    codes = {problem.code: problem for problem in problems(one, another_in_its_place)}
    assert "misplaced" in codes
    assert "would be handed to 'lowest'" in codes["misplaced"].text
    assert codes["misplaced"].remedy.startswith("give both operators a uid")


def test_state_of_a_removed_operator_is_a_problem() -> None:
    [problem] = problems(
        lambda n: highest(n).uid("highest").print(), lambda n: n.map(abs).name("x").print()
    )
    assert problem.code == "orphaned"
    assert "'highest'" in problem.text
    assert "has no operator any more" in problem.text


def test_a_different_kind_of_operator_cannot_read_the_state() -> None:
    [problem] = problems(
        lambda n: highest(n).uid("it").print(),
        lambda n: n.key_by(abs).process(Count()).name("highest").uid("it").print(),
    )
    assert problem.code == "kind"
    assert "was a reduce and is a process" in problem.text


def test_an_explicit_max_parallelism_must_not_change() -> None:
    [problem] = problems(
        lambda n: highest(n).uid("it").print(),
        lambda n: highest(n).uid("it").set_max_parallelism(64).print(),
    )
    assert problem.code == "max-parallelism"
    assert "stored in 128 key groups" in problem.text
    assert problem.remedy == "set_max_parallelism(128) on 'highest'"


def test_a_derived_max_parallelism_takes_the_stored_value() -> None:
    at_200 = problems(
        lambda n: highest(n).uid("it").set_parallelism(100).print(),
        lambda n: highest(n).uid("it").set_parallelism(200).print(),
    )
    assert at_200 == []
    [problem] = problems(
        lambda n: highest(n).uid("it").set_parallelism(100).print(),
        lambda n: highest(n).uid("it").set_parallelism(300).print(),
    )
    assert problem.code == "parallelism"
    assert "stored in 256 key groups, too few for the 300 tasks" in problem.text


def test_a_changed_key_type_is_a_problem() -> None:
    def drawn(key_type: Any) -> Callable[[DataStream[Any]], object]:
        return lambda n: n.key_by(abs, key_type).reduce(max).uid("it").print()

    assert problems(drawn(Types.INT()), drawn(Types.INT())) == []
    [problem] = problems(drawn(None), drawn(Types.STRING()))
    assert problem.code == "key-type"
    assert "had type PickledByteArrayTypeInfo, and now have type String" in problem.text


def test_max_parallelism_may_change_without_keyed_state() -> None:
    assert (
        problems(
            lambda n: n.map(abs).name("a").set_max_parallelism(8).print(),
            lambda n: n.map(abs).name("a").set_max_parallelism(16).print(),
        )
        == []
    )
