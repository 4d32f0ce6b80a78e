import pytest
from programs import drawn

from opchain import GraphError, StreamExecutionEnvironment
from opchain.compiler.assertions.chaining import program_of
from opchain.testing import plan_of


def test_plan_of_takes_an_environment_a_program_or_a_plan() -> None:
    env = drawn("union")
    plan = plan_of(env)
    assert plan_of(env.program()) == plan
    assert plan_of(plan) is plan
    assert program_of(env) == env.program()


def test_plan_of_does_not_change_the_environment() -> None:
    env = drawn("union")
    before = env.get_transformations()
    plan_of(env)
    assert env.get_transformations() == before


def test_plan_of_refuses_an_empty_program_as_execute_does() -> None:
    with pytest.raises(GraphError, match="no operator or sink"):
        plan_of(StreamExecutionEnvironment.get_execution_environment())
