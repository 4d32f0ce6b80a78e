import pytest
from programs import drawn

from opchain import GraphError, StreamExecutionEnvironment
from opchain.compiler.assertions.chaining import program_of
from opchain.testing import plan_of


def test_an_environment_a_program_and_a_plan_give_the_same_plan() -> None:
    env = drawn("union")
    plan = plan_of(env)
    assert plan_of(env.program()) == plan
    assert plan_of(plan) is plan
    assert program_of(env) == env.program()


def test_looking_changes_nothing() -> None:
    env = drawn("union")
    before = env.get_transformations()
    plan_of(env)
    assert env.get_transformations() == before


def test_an_empty_program_is_refused_as_when_it_is_run() -> None:
    with pytest.raises(GraphError, match="no operator or sink"):
        plan_of(StreamExecutionEnvironment.get_execution_environment())
