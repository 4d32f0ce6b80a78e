from __future__ import annotations

import html
import pickle
import re
import urllib.error
import urllib.request
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from programs import drawn
from random_plans import random_plan

from opchain import StreamExecutionEnvironment
from opchain.common import Configuration, Row, Types
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.page.render import (
    ShownPlan,
    ShownText,
    framed,
    plan_picture,
    program_page,
)
from opchain.runtime.job.client import CompletableFuture, JobStatus


def test_a_plan_in_a_notebook_is_a_picture_with_a_link_to_the_page() -> None:
    env = drawn("word_count")
    plan = env.explain()
    assert isinstance(plan, ShownPlan)
    text = plan._repr_html_()
    assert len(text) < 50_000
    root = parsed(f"<div>{text}</div>")
    (picture,) = root.iter("{http://www.w3.org/2000/svg}svg")
    boxes = list(picture.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(boxes) == len(env.get_job_graph().to_networkx().nodes)
    (link,) = root.iter("a")
    with urllib.request.urlopen(link.attrib["href"], timeout=60) as answer:  # noqa: S310
        assert answer.read().decode() == plan.page() == program_page(env.program())
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{link.attrib['href']}9", timeout=60)  # noqa: S310


def test_the_frame_in_a_notebook_has_the_whole_page() -> None:
    plan = drawn("word_count").explain()
    found = re.fullmatch(
        r'<iframe srcdoc="([^"]*)" sandbox="([^"]*)" style="[^"]*"></iframe>',
        plan.frame()._repr_html_(),
    )
    assert found is not None
    assert html.unescape(found[1]) == plan.page()
    assert "allow-same-origin" not in found[2]


@pytest.mark.parametrize("number", range(12))
def test_pictures_of_random_plans_are_small_and_nothing_overlaps(number: int) -> None:
    env = random_plan(1 + 5 * number, number)
    plan = job_plan(compile_program(env.program(), "job-graph"))
    text = plan_picture(plan)
    assert text == plan_picture(plan)
    assert len(text) < 45_000
    places = [
        (int(box.attrib["x"]), int(box.attrib["y"]))
        for box in parsed(text).iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert len(set(places)) == len(places) == len(plan.vertices)


def test_a_name_in_a_picture_is_text() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 3).name("<script>&\x00").print()
    parsed(f"<div>{env._repr_html_()}</div>")
    assert "<script>" not in env._repr_html_()


def test_environments_and_streams_show_their_plan_in_a_notebook() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert "no operators yet" in env._repr_html_()
    doubled = env.from_sequence(1, 3).map(lambda n: 2 * n, Types.LONG()).name("double")
    text = doubled._repr_html_()
    assert "double" in text
    assert "<svg" in text
    assert "test_in_notebook.py:" in text
    keyed = doubled.key_by(str)._repr_html_()
    assert "KeyedStream of &#x27;double&#x27; (test_in_notebook.py:" in keyed
    doubled.print()
    assert "<svg" in env._repr_html_()


def test_types_and_results_are_tables_in_a_notebook() -> None:
    row = Types.ROW_NAMED(["id", "<name>"], [Types.LONG(), Types.STRING()])
    assert "<td>id</td>" in row._repr_html_()
    assert "&lt;name&gt;" in row._repr_html_()
    env = local_environment()
    env.from_collection([1, 2, 3]).map(str).name("texts").print()
    text = env.execute()._repr_html_()
    assert "the job ran for" in text
    assert re.search(r"texts.*?<td>3</td>", text)


def test_collected_records_are_shown_as_a_table_and_can_still_be_read() -> None:
    env = local_environment()
    pairs = env.from_collection([(n, "<b>") for n in range(30)])
    with pairs.execute_and_collect() as records:
        first = next(records)
        text = records._repr_html_()
        assert text.count("<tr>") == 21
        assert "&#x27;&lt;b&gt;&#x27;" in text
        assert "the first 20 records" in text
        assert [first, *records] == [(n, "<b>") for n in range(30)]
        assert "<th>value</th>" in records._repr_html_()


def test_collected_rows_are_shown_as_a_table_with_a_column_per_field() -> None:
    pet = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    env = local_environment()
    with env.from_collection([Row("cat", 3)], pet).execute_and_collect() as records:
        assert "<th>name</th><th>age</th>" in records._repr_html_()
    with env.from_collection([Row("cat", 3)]).execute_and_collect() as records:
        assert "<th>f0</th><th>f1</th>" in records._repr_html_()


def test_interrupting_the_reader_of_collected_records_cancels_the_job() -> None:
    class Waits:
        def collected(self, _uid: str) -> Any:
            raise KeyboardInterrupt

        def get_job_status(self) -> Any:
            return CompletableFuture.completed(JobStatus.RUNNING)

        def cancel(self) -> Any:
            cancelled.append(True)
            return CompletableFuture.completed(None)

    cancelled: list[bool] = []
    env = StreamExecutionEnvironment.get_execution_environment()
    records = env.from_collection([1]).collect_async()
    records.attach(Waits())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        next(records)
    assert cancelled == [True]


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own text


def local_environment() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.mark.parametrize("stage", ["stream-graph", "execution", "generated"])
def test_plans_of_other_stages_are_text_in_a_notebook(stage: str) -> None:
    text = drawn("word_count").explain(stage)
    assert type(text) is ShownText
    assert text._repr_html_() == f"<pre>{html.escape(text)}</pre>"


def test_a_shown_plan_is_a_string_and_is_pickled_as_str() -> None:
    plan = drawn("word_count").explain()
    assert plan.startswith("job 'Flink Streaming Job'")
    assert type(pickle.loads(pickle.dumps(plan))) is str
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_shown_plan_does_not_change_with_the_program() -> None:
    env = drawn("word_count")
    plan = env.explain()
    page = plan.page()
    env.from_sequence(1, 9).print()
    assert plan.page() == page


def test_with_numbers_adds_metrics_to_a_shown_plan() -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1, 2, 3]).map(str).name("texts").print()
    plan = env.explain()
    counted = plan.with_numbers(env.execute().metrics)
    assert counted == plan
    assert '"recordsIn":3' in counted.page()
    assert '"recordsIn":3' not in plan.page()


def test_quotes_in_a_frame_are_escaped() -> None:
    assert '"&lt;b title=&quot;x&quot;&gt;"' in framed('<b title="x">')
