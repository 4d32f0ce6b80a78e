import ast

import pytest
from programs import drawn

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.text import generated_modules, generated_text


def test_there_is_a_module_for_each_vertex_in_the_order_of_the_plan() -> None:
    plan = compile_program(drawn("word_count").program())
    modules = generated_modules(plan)
    assert plan.job_graph is not None
    titles = [module.splitlines()[0] for module in modules]
    assert titles == [
        f"# vertex {number}: {vertex.name}"
        for number, vertex in enumerate(plan.job_graph.vertices, start=1)
    ]
    for module in modules:
        ast.parse(module)
    assert generated_text(plan) == "\n\n".join(modules)


def test_one_vertex_can_be_chosen() -> None:
    plan = compile_program(drawn("word_count").program())
    assert generated_text(plan, 2) == generated_modules(plan)[1]
    for number in (0, 5):
        with pytest.raises(ValueError, match=f"there is no vertex {number}: the job has 4"):
            generated_text(plan, number)


def test_comments_name_lines_unless_they_are_unwanted() -> None:
    plan = compile_program(drawn("word_count").program())
    assert "(programs.py:" in generated_text(plan)
    assert "programs.py:" not in generated_text(plan, call_sites=False)


def test_a_vertex_that_is_interpreted_says_so() -> None:
    env = drawn("word_count")
    env.get_configuration().set_string("opchain.codegen.enabled", "false")
    text = generated_text(compile_program(env.program()))
    assert text.count("# runs operator by operator: code generation is switched off\n") == 4
