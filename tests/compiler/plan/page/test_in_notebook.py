from __future__ import annotations

import html
import pickle
import re

import pytest
from programs import drawn

from opchain import StreamExecutionEnvironment
from opchain.common import Configuration
from opchain.compiler.plan.page.render import ShownPlan, ShownText, framed, program_page


def test_a_notebook_shows_the_job_graph_as_its_page() -> None:
    env = drawn("word_count")
    plan = env.explain()
    assert isinstance(plan, ShownPlan)
    assert plan.page() == program_page(env.program())
    found = re.fullmatch(
        r'<iframe srcdoc="([^"]*)" sandbox="([^"]*)" style="[^"]*"></iframe>', plan._repr_html_()
    )
    assert found is not None
    assert html.unescape(found[1]) == plan.page()
    assert "allow-same-origin" not in found[2]


@pytest.mark.parametrize("stage", ["stream-graph", "execution", "generated"])
def test_other_stages_are_text_in_a_notebook_too(stage: str) -> None:
    text = drawn("word_count").explain(stage)
    assert type(text) is ShownText
    assert text._repr_html_() == f"<pre>{html.escape(text)}</pre>"


def test_it_is_a_string_and_travels_as_one() -> None:
    plan = drawn("word_count").explain()
    assert plan.startswith("job 'Flink Streaming Job'")
    assert type(pickle.loads(pickle.dumps(plan))) is str
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_the_plan_is_that_of_the_moment_when_it_was_explained() -> None:
    env = drawn("word_count")
    plan = env.explain()
    page = plan.page()
    env.from_sequence(1, 9).print()
    assert plan.page() == page


def test_numbers_come_with_the_result() -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1, 2, 3]).map(str).name("texts").print()
    plan = env.explain()
    counted = plan.with_numbers(env.execute().metrics)
    assert counted == plan
    assert '"recordsIn":3' in counted.page()
    assert '"recordsIn":3' not in plan.page()


def test_a_frame_keeps_quotes_inside() -> None:
    assert '"&lt;b title=&quot;x&quot;&gt;"' in framed('<b title="x">')
