import json

import pytest
from programs import PROGRAMS, drawn

from opchain import StreamExecutionEnvironment
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.explain import FORMATS, STAGES, Form, explain, print_saved
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.model import from_json
from opchain.runtime.errors import GraphError

OFFERED = [(stage, form) for stage, found in STAGES.items() for form in found.printers]


@pytest.mark.parametrize(("stage", "form"), OFFERED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_explained_in_every_stage_and_format(
    name: str, stage: str, form: str
) -> None:
    text = explain(drawn(name).program(), stage, form)
    assert text.endswith("\n")
    assert text == explain(drawn(name).program(), stage, form)
    if "json" in form:
        json.loads(text)


def test_the_job_graph_has_all_formats() -> None:
    assert set(STAGES["job-graph"].printers) == set(FORMATS)


def test_environment_explain_equals_explain_of_its_program() -> None:
    env = drawn("word_count")
    assert env.explain() == explain(env.program(), "job-graph")
    assert env.explain("stream-graph") == explain(env.program(), "stream-graph")


def test_format_flink_json_is_flinks_execution_plan() -> None:
    document = json.loads(explain(drawn("word_count").program(), "job-graph", "flink-json"))
    assert document["type"] == "STREAMING"
    assert len(document["nodes"]) == 4


def test_unknown_stages_and_formats_are_refused_with_a_list() -> None:
    program = drawn("word_count").program()
    with pytest.raises(ValueError, match="there is no stage 'job'; the stages are stream-graph, "):
        explain(program, "job")
    with pytest.raises(ValueError, match="stage generated has no format 'dot'; its formats are "):
        explain(program, "generated", "dot")


def test_a_stage_can_be_explained_although_a_later_pass_fails() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(40_000)
    env.from_sequence(1, 9).map(abs).name("wide").print()
    assert "'wide'" not in explain(env.program(), "stream-graph")
    with pytest.raises(GraphError, match="40000 tasks"):
        explain(env.program(), "job-graph")


def test_a_saved_plan_is_printed_like_the_program() -> None:
    program = drawn("two_sinks").program()
    plan = from_json(explain(program, "job-graph", "json"))
    for form in ("text", "json", "dot", "mermaid"):
        assert print_saved(plan, "job-graph", form, Form()) == explain(program, "job-graph", form)
    with pytest.raises(ValueError, match="not stage generated"):
        print_saved(plan, "generated", "text", Form())
    with pytest.raises(ValueError, match="a saved plan has no format flink-json"):
        print_saved(plan, "job-graph", "flink-json", Form())
    assert job_plan(compile_program(program, "job-graph")) == plan


def test_the_page_of_a_saved_plan_leaves_out_data_that_the_file_lacks() -> None:
    program = drawn("two_sinks").program()
    plan = from_json(explain(program, "job-graph", "json"))
    page = print_saved(plan, "job-graph", "html", Form())
    assert '"name":"archive: Writer"' in page
    assert '"code":null' in page
    assert '"code":null' not in explain(program, "job-graph", "html")
