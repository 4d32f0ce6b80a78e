import pytest
from random_plans import random_plan

from opchain import StreamExecutionEnvironment
from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.commands.code import chosen_vertex, in_order_of_the_plan
from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.passes.pipeline import compile_program


@pytest.fixture
def plan() -> Plan:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_sequence(1, 9).name("numbers").disable_chaining()
    numbers.map(abs).name("1").uid("absolute").map(abs).name("again").disable_chaining().print()
    return compile_program(env.program())


@pytest.mark.parametrize(
    ("chosen", "number"),
    [("1", 1), ("2", 2), ("3", 3), ("Source: numbers", 1), ("absolute", 2), ("again", 3)],
)
def test_a_vertex_is_chosen_by_number_name_or_uid(plan: Plan, chosen: str, number: int) -> None:
    assert chosen_vertex(plan, chosen) == number
    assert chosen_vertex(plan, required(plan.job_graph).vertices[number - 1].id) == number


@pytest.mark.parametrize("chosen", ["0", "5", "-1", "nothing", ""])
def test_an_unknown_vertex_is_an_error_that_lists_the_vertices(plan: Plan, chosen: str) -> None:
    with pytest.raises(CommandError, match=f"no vertex '{chosen}'; it has 1 'Source: numbers', 2"):
        chosen_vertex(plan, chosen)


def test_vertices_are_numbered_as_in_the_plan() -> None:
    for size in (30, 60):
        plan = compile_program(random_plan(size, 1).program())
        vertices = required(plan.job_graph).vertices
        assert [vertex.vertex_id for vertex in in_order_of_the_plan(plan)] == [
            vertex.id for vertex in vertices
        ]
        assert [vertex.vertex_id for vertex in required(plan.job_program).vertices] != [
            vertex.id for vertex in vertices
        ]
