"""Names, uids, job names and keys may hold anything that a str can: every form of a plan, and a run, survives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opchain.common import Configuration
from opchain.compiler.plan.explain import STAGES, explain
from opchain.compiler.plan.page.render import program_page
from opchain.datastream import OutputTag, StreamExecutionEnvironment

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Program

ODD = [
    "\x00",
    "\n",
    "\r\n",
    '"""',
    "'",
    "\\",
    "{}",
    "</script>",
    "\ud800",
    "\u2028",
    "#",
    "%s",
    "\x1b[1m",
    "\x85",
]

texts = st.one_of(
    st.text(st.characters(), min_size=1, max_size=20),
    st.lists(st.sampled_from([*ODD, "a", " ", "é", "𝄞"]), min_size=1, max_size=6).map("".join),
    st.sampled_from(ODD).map(lambda odd: odd * 5_000),
)


def environment() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def draw(env: StreamExecutionEnvironment, name: str, uid: str) -> None:
    """A program in which the name is wherever one can be."""
    tag = OutputTag(name)
    words = env.from_collection([name, "b"]).name(name).map(lambda word: word).name(name).uid(uid)
    words.set_description(name)
    counts = words.key_by(lambda word: word).map(lambda word: (word, 1)).name(name)
    counts.get_side_output(tag).print(name)
    counts.rebalance().filter(lambda _: True).name(name).print(name).name(name)


def all_forms(program: Program) -> None:
    for stage, found in STAGES.items():
        for form in found.printers:
            assert explain(program, stage, form).encode("utf-8", "surrogatepass")
    assert program_page(program).isascii()


@settings(max_examples=5)
@example("\x00", "\n", "\ud800")
@example("a\nraise SystemExit(1)", '"""\nraise SystemExit(1)', "\r")
@given(texts, texts, texts)
def test_a_program_with_any_names_can_be_planned(name: str, uid: str, job_name: str) -> None:
    env = environment()
    draw(env, name, uid)
    all_forms(env.program(job_name))


@settings(max_examples=15)
@example("\x00")
@example("a\nraise SystemExit(1)")
@example("\ud800")
@given(texts)
def test_a_program_with_any_names_can_run(name: str) -> None:
    env = environment()
    words = env.from_collection([name, "b", name]).map(lambda word: (word, 1)).name(name).uid(name)
    counts = words.key_by(lambda pair: pair[0]).sum(1).name(name)
    with counts.execute_and_collect(name) as found:
        assert (
            sorted(found, key=repr) == sorted([(name, 1), ("b", 1), (name, 2)], key=repr)
            or name == "b"
        )


@pytest.mark.parametrize("name", ODD)
def test_flinks_plan_with_any_names_is_valid_json(name: str) -> None:
    env = environment()
    draw(env, name, name)
    assert json.loads(env.get_execution_plan())["nodes"]
