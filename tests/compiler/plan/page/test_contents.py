from __future__ import annotations

import json
from typing import Any

import pytest
from programs import PROGRAMS, drawn

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.page.render import page_contents, vertex_details
from opchain.compiler.plan.text import generated_modules


def contents(name: str) -> dict[str, Any]:
    plan = compile_program(drawn(name).program())
    return page_contents(job_plan(plan), vertex_details(plan))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_has_every_operator_and_exchange_once(name: str) -> None:
    plan = job_plan(compile_program(drawn(name).program()))
    shown = contents(name)
    nodes = [operator["node"] for vertex in shown["vertices"] for operator in vertex["operators"]]
    assert sorted(nodes) == sorted(operator.node for operator in plan.operators)
    ends = [(exchange["from"], exchange["to"]) for exchange in shown["exchanges"]]
    assert ends == [(edge.source, edge.target) for edge in plan.edges if not edge.is_chained]
    assert json.loads(json.dumps(shown)) == shown


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_exchange_has_its_reasons_and_remedies(name: str) -> None:
    for exchange in contents(name)["exchanges"]:
        assert exchange["reasons"]
        for rule in exchange["reasons"]:
            assert rule["code"]
            assert rule["brief"]
            assert rule["advice"]
            assert "programs.py" not in rule["brief"]


def test_a_vertex_on_the_page_has_its_stage_and_its_code() -> None:
    plan = compile_program(drawn("word_count").program())
    shown = page_contents(job_plan(plan), vertex_details(plan))["vertices"]
    assert [vertex["stage"] for vertex in shown] == [0, 1, 2, 3]
    assert [vertex["code"] for vertex in shown] == generated_modules(plan)
    assert [vertex["keyGroups"] for vertex in shown] == [None, None, 128, None]


def test_a_page_of_a_saved_plan_has_no_stages_and_no_code() -> None:
    plan = job_plan(compile_program(drawn("word_count").program(), "job-graph"))
    for vertex in page_contents(plan)["vertices"]:
        assert (vertex["stage"], vertex["code"]) == (None, None)


def test_the_page_indents_operators_only_at_a_fork() -> None:
    _, visits = contents("sessions")["vertices"]
    tree = [(row["name"], row["role"], row["depth"]) for row in visits["operators"]]
    assert tree == [
        ("visits", "head", 0),
        ("Sink: Print to Std. Out", "branch", 1),
        ("Sink: Print to Std. Out", "branch", 1),
    ]
    assert [row["sideOutputs"] for row in visits["operators"]] == [[], [], ["late"]]
    deep = contents("deep_chain")["vertices"][-1]["operators"]
    assert {row["role"] for row in deep[1:]} == {"next"}
    assert {row["depth"] for row in deep} == {0}


def test_an_exchange_names_its_key_and_its_side_output() -> None:
    (one,) = [each for each in contents("side_outputs")["exchanges"] if each["key"] is not None]
    assert (one["strategy"], one["sideOutput"]) == ("HASH", "odd")
    inputs = [exchange["input"] for exchange in contents("broadcast")["exchanges"]]
    assert sorted(inputs) == [1, 2]


@pytest.mark.parametrize(
    ("program", "name", "expected"),
    [
        ("word_count", "Source: lines", ("source", "source")),
        ("word_count", "count", ("reduce", "state")),
        ("sessions", "visits", ("window", "window")),
        ("sessions", "Sink: Print to Std. Out", ("sink", "sink")),
        ("join", "named clicks", ("window", "join")),
        ("diamond", "sides", ("map", "join")),
        ("two_sinks", "archive: Committer", ("commit", "sink")),
        ("two_sinks", "square", ("map", "plain")),
    ],
)
def test_operators_on_the_page_have_a_kind_and_a_family(
    program: str, name: str, expected: tuple[str, str]
) -> None:
    operators = [row for vertex in contents(program)["vertices"] for row in vertex["operators"]]
    found = next(row for row in operators if row["name"] == name)
    assert (found["kind"], found["family"]) == expected


def test_an_operator_on_the_page_names_the_previous_one_in_its_chain() -> None:
    _, visits = contents("sessions")["vertices"]
    head, *sinks = visits["operators"]
    assert head["parent"] is None
    assert [sink["parent"] for sink in sinks] == [head["node"]] * 2
