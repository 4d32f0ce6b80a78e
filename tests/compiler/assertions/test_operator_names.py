import pytest

from opchain import StreamExecutionEnvironment
from opchain.compiler.assertions.chaining import operator_called
from opchain.compiler.plan.model import JobPlan
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.testing import plan_of


@pytest.fixture
def plan() -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_sequence(1, 9).name("numbers")
    numbers.map(abs).name("parse").uid("clean").map(abs).name("clean").print().name("out")
    numbers.map(abs).map(abs).sink_to(DiscardingSink()).name("archive")
    return plan_of(env)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("parse", "parse"),
        ("clean", "parse"),  # a uid goes before a name
        ("numbers", "Source: numbers"),
        ("Source: numbers", "Source: numbers"),
        ("out", "Sink: out"),
        ("archive", "archive: Writer"),
    ],
)
def test_operator_called_finds_operators_by_name_and_uid(
    plan: JobPlan, name: str, found: str
) -> None:
    assert operator_called(plan, name).name == found


def test_an_ambiguous_operator_name_is_an_error_that_lists_the_operators(plan: JobPlan) -> None:
    with pytest.raises(ValueError, match="2 operators are called 'Map': map at test_op") as refused:
        operator_called(plan, "Map")
    assert "give the intended one a unique name or uid" in str(refused.value)


def test_an_unknown_operator_name_suggests_a_name_and_lists_all(plan: JobPlan) -> None:
    with pytest.raises(ValueError, match="no operator has the name or uid 'parze'") as refused:
        operator_called(plan, "parze")
    assert "(did you mean 'parse'?); the operators are 'Source: numbers'" in str(refused.value)
    with pytest.raises(ValueError, match="'zzz'; the operators are"):
        operator_called(plan, "zzz")


def test_an_operator_name_must_be_a_string(plan: JobPlan) -> None:
    with pytest.raises(TypeError, match="an operator is named by a string, but got 3"):
        operator_called(plan, 3)  # type: ignore[arg-type]
