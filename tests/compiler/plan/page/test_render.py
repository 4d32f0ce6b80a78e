from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest
from programs import PROGRAMS, drawn

from opchain import StreamExecutionEnvironment
from opchain.common import Configuration
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan import page as package
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.page.render import SCRIPTS, plan_page, program_page
from opchain.runtime.errors import StreamError
from opchain.runtime.measurements.job_metrics import JobMetrics

if TYPE_CHECKING:
    from pathlib import Path

ELKJS_SHA256 = "b1032b7cfd2a57c54c6f0e8369d7665e19a579954f7cd20a6dae28f1912ea0d7"
"""Of lib/elk.bundled.js of elkjs 0.12.1 as npm has it."""

EVIL = "</script><script>alert(1)</script><!--<script><b a='\"'>&amp;{{ script }}\u5358\U0001f600\u202e\x07"


class Parts(HTMLParser):
    """The elements of a page with the texts in them, as a browser would tell them apart."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._within = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._within = dict(attributes).get("id") or tag

    def handle_data(self, data: str) -> None:
        self.texts[self._within] = self.texts.get(self._within, "") + data

    def value(self, name: str) -> Any:
        return json.loads(self.texts[name])


def evil_program() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_sequence(1, 9).name(EVIL).uid(EVIL).slot_sharing_group(EVIL)
    numbers.map(lambda n: n).name("x" * 5_000).rebalance().print(EVIL)
    return env


@pytest.mark.parametrize("name", PROGRAMS)
def test_rendering_a_program_twice_gives_the_same_page(name: str) -> None:
    page = program_page(drawn(name).program())
    assert page == program_page(drawn(name).program())
    assert page.isascii()
    assert page.endswith("</html>\n")


def test_text_of_the_user_is_escaped_everywhere_on_the_page() -> None:
    plain = Parts(program_page(drawn("word_count").program()))
    page = program_page(evil_program().program(EVIL))
    evil = Parts(page)
    assert evil.elements == plain.elements
    contents = evil.value("contents")
    assert contents["job"] == EVIL
    operators = contents["vertices"][0]["operators"]
    assert operators[0]["name"] == f"Source: {EVIL}"
    assert operators[1]["name"] == "x" * 5_000
    assert evil.texts["title"].startswith(EVIL[:-1])
    assert page.count("{{ script }}") == len(re.findall(r"\{\{ script \}\}", page)) > 3


def test_the_page_loads_nothing_and_its_policy_forbids_loading() -> None:
    parts = Parts(program_page(drawn("word_count").program()))
    attributes = {name for _, found in parts.elements for name in found}
    assert not attributes & {"src", "href", "action", "srcset", "data", "poster"}
    policies = [found["content"] for _, found in parts.elements if "http-equiv" in found]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"]
    assert "@import" not in parts.texts["style"]
    assert "url(" not in parts.texts["style"]


def test_every_script_of_the_folder_is_on_the_page() -> None:
    folder = resources.files(package) / "static"
    scripts = {file.name for file in folder.iterdir() if file.name.endswith(".js")}
    assert scripts == set(SCRIPTS)
    assert len(SCRIPTS) == len(scripts)


def test_the_layout_library_is_unmodified_and_its_licence_is_named() -> None:
    page = program_page(drawn("word_count").program())
    packed = base64.b64decode(Parts(page).texts["layout-library"])
    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == ELKJS_SHA256
    assert "elkjs 0.12.1" in page
    assert "https://github.com/kieler/elkjs" in page
    licence = (resources.files(package) / "static" / "elk" / "LICENSE.md").read_text("utf-8")
    assert licence.startswith("# Eclipse Public License - v 2.0")


def test_missing_page_files_are_an_error_that_names_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    with pytest.raises(StreamError, match=r"lacks page\.css; install opchain"):
        program_page(drawn("word_count").program())


def test_without_javascript_the_page_shows_the_plan_as_text() -> None:
    env = drawn("word_count")
    assert Parts(program_page(env.program())).texts["as-text"].strip() == env.explain().strip()


def test_a_saved_plan_has_a_page_without_code() -> None:
    plan = job_plan(compile_program(drawn("word_count").program(), "job-graph"))
    vertices = Parts(plan_page(plan)).value("contents")["vertices"]
    assert [vertex["code"] for vertex in vertices] == [None] * 4


@pytest.mark.slow
def test_the_page_of_a_finished_job_has_its_metrics() -> None:
    env = evil_program()
    program = env.program()
    page = Parts(program_page(program, env.execute().metrics))
    counts = page.value("numbers")
    assert list(counts) == [vertex["id"] for vertex in page.value("contents")["vertices"]]
    for vertex in page.value("contents")["vertices"]:
        known = counts[vertex["id"]]["operators"]
        assert set(known) == {operator["id"] for operator in vertex["operators"]}
    assert Parts(program_page(program)).value("numbers") is None
    assert Parts(program_page(program, JobMetrics())).value("numbers") is None
