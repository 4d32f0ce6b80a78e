import ast

import pytest
from programs import drawn

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.text import generated_modules, generated_text


def test_generated_text_has_a_module_per_vertex_in_plan_order() -> None:
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


def test_generated_text_can_show_one_vertex() -> None:
    plan = compile_program(drawn("word_count").program())
    assert generated_text(plan, 2) == generated_modules(plan)[1]
    for number in (0, 5):
        with pytest.raises(ValueError, match=f"there is no vertex {number}: the job has 4"):
            generated_text(plan, number)


def test_comments_in_generated_text_name_lines_unless_switched_off() -> None:
    plan = compile_program(drawn("word_count").program())
    assert "(programs.py:" in generated_text(plan)
    assert "programs.py:" not in generated_text(plan, call_sites=False)


def test_generated_text_says_that_a_vertex_is_interpreted() -> None:
    env = drawn("word_count")
    env.get_configuration().set_string("opchain.codegen.enabled", "false")
    text = generated_text(compile_program(env.program()))
    assert text.count("# runs operator by operator: code generation is switched off\n") == 4
