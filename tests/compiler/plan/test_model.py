import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import PROGRAMS, drawn

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import stream_plan
from opchain.compiler.plan.model import SCHEMA_VERSION, PlanFileError, from_json, to_json
from opchain.testing import plan_of

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_read_from_json_equals_the_written_plan(name: str) -> None:
    plan = plan_of(drawn(name))
    assert from_json(to_json(plan)) == plan
    assert to_json(from_json(to_json(plan).encode())) == to_json(plan)


def test_the_json_of_a_plan_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from programs import PROGRAMS, drawn; from opchain.testing import plan_of; "
        "from opchain.compiler.plan.model import to_json; "
        "sys.stdout.write(''.join(to_json(plan_of(drawn(name))) for name in PROGRAMS))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, str(TESTS)],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_the_json_of_a_plan_has_a_version() -> None:
    document = json.loads(to_json(plan_of(drawn("word_count"))))
    assert document["schema_version"] == SCHEMA_VERSION
    compiled = compile_program(drawn("word_count").program(), "operator-ids")
    assert json.loads(to_json(stream_plan(compiled)))["schema_version"] == SCHEMA_VERSION


def test_a_plan_knows_the_edges_and_vertices_of_its_operators() -> None:
    plan = plan_of(drawn("diamond"))
    names = {operator.name: operator.node for operator in plan.operators}
    sides = names["sides"]
    assert [edge.source for edge in plan.in_edges[sides]] == [names["left"], names["right"]]
    assert [edge.target for edge in plan.out_edges[names["same"]]] == [
        names["left"],
        names["right"],
    ]
    assert plan.vertex_number_of[sides] == 2
    assert plan.operator_at[sides].kind == "co_map"


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(to_json(plan_of(drawn("word_count"))))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "plan.json is not JSON"),
        (b"\xff\xfe\xff", "plan.json is not JSON"),
        ("[]", "it holds a JSON list, expected an object"),
        ("{}", "it has no schema_version; create one with 'opchain plan FILE --format json'"),
        (
            changed(lambda plan: plan.update(schema_version=99)),
            "has schema_version 99 but this opchain reads version 1",
        ),
        (
            changed(lambda plan: plan["vertices"][1].pop("parallelism")),
            "at vertices.1.parallelism: Field required",
        ),
        (changed(lambda plan: plan.update(colour="red")), "at colour: Extra inputs"),
        (
            changed(lambda plan: plan["operators"][0].update(node="x", parallelism="y")),
            "(and 1 more)",
        ),
        (
            changed(lambda plan: plan["operators"][1].update(node=1)),
            "two operators have the same node number",
        ),
        (
            changed(lambda plan: plan["vertices"].pop()),
            "its vertices do not hold each operator once",
        ),
        (
            changed(lambda plan: plan["edges"][0].update(target=77)),
            "an edge leads to an operator that does not exist (77)",
        ),
    ],
)
def test_a_file_that_is_not_a_plan_is_refused_with_the_reason(
    text: str | bytes, message: str
) -> None:
    with pytest.raises(PlanFileError) as refused:
        from_json(text, "plan.json")
    assert message in str(refused.value)
    assert "plan.json" in str(refused.value)
