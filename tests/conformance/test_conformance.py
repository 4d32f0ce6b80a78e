"""Every recorded pipeline compiles to what Flink 2.3 compiled; each vector is a test of its own."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import check
import pytest

HERE = Path(__file__).parent
JOB_GRAPHS = HERE / "job_graphs.jsonl.gz"
RANDOM_JOB_GRAPHS = HERE / "random_job_graphs.jsonl.gz"
KEY_GROUPS = HERE / "key_groups.json.gz"
VECTORS = {vector["spec"]["name"]: vector for vector in check.vectors(JOB_GRAPHS)}
RANDOM_VECTORS = {vector["spec"]["name"]: vector for vector in check.vectors(RANDOM_JOB_GRAPHS)}


@pytest.mark.parametrize("name", VECTORS)
def test_compiled_plans_equal_flinks(name: str) -> None:
    assert check.check_vector(VECTORS[name]) == []


@pytest.mark.parametrize("name", RANDOM_VECTORS)
def test_compiled_plans_of_random_pipelines_equal_flinks(name: str) -> None:
    assert check.check_vector(RANDOM_VECTORS[name]) == []


def test_all_recorded_vectors_are_in_the_repository() -> None:
    assert (len(VECTORS), len(RANDOM_VECTORS)) == (451, 243)


def test_check_prints_the_number_of_equal_vectors(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in list(VECTORS.values())[:3]))
    assert check.main([str(path)]) == 0
    assert capsys.readouterr().out == "equal: 3 of 3\n"


def test_key_groups_equal_flinks(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(KEY_GROUPS)]) == 0
    assert capsys.readouterr().out.startswith("equal: ")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the leaves of a recorded result are, one per name of field."""
    if isinstance(value, dict):
        return [leaf for key, below in value.items() for leaf in _paths(below, (*path, key))]
    if isinstance(value, list):
        return _paths(value[0], (*path, 0)) if value else []
    return [path]


RICH = "multi_input_one_chained_source"


@pytest.mark.parametrize(
    "path", _paths(VECTORS[RICH]["expected"]), ids=lambda path: ".".join(map(str, path))
)
def test_check_finds_a_change_of_any_field(path: tuple[Any, ...]) -> None:
    vector = deepcopy(VECTORS[RICH])
    at = vector["expected"]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = {"phase": "build"} if path == ("error",) else "something else"
    assert check.check_vector(vector) != []


def test_check_finds_missing_and_unknown_fields() -> None:
    vector = deepcopy(VECTORS[RICH])
    del vector["expected"]["vertices"][0]["name"]
    vector["expected"]["vertices"][0]["colour"] = "blue"
    found = check.check_vector(vector)
    assert any(line.startswith("vertices[0].name: expected 'nothing'") for line in found)
    assert any(line.startswith("vertices[0].colour: expected 'blue'") for line in found)


UNKNOWN = {
    "kind 'teleport'": lambda spec: spec["nodes"][1].update(kind="teleport"),
    "attribute 'colour'": lambda spec: spec["nodes"][1].update(colour="blue"),
    "partitioner 'fan'": lambda spec: spec["nodes"][1]["inputs"][0].update(partitioner="fan"),
    "input attribute 'lag'": lambda spec: spec["nodes"][1]["inputs"][0].update(lag=1),
    "env setting 'moon'": lambda spec: spec["env"].update(moon="full"),
    "chaining 'maybe'": lambda spec: spec["nodes"][1].update(chaining="maybe"),
}


@pytest.mark.parametrize("part", UNKNOWN)
def test_check_reports_an_unknown_part_as_a_difference(part: str) -> None:
    vector = deepcopy(VECTORS["chain_explicit_forward"])
    UNKNOWN[part](vector["spec"])
    assert check.check_vector(vector) == [f"this check does not know {part}"]


def test_check_reports_a_malformed_vector_as_a_difference(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "broken.jsonl"
    good = VECTORS["chain_explicit_forward"]
    dangling = deepcopy(good)
    dangling["spec"]["nodes"][1]["inputs"][0]["from"] = 99
    path.write_text("".join(json.dumps(each) + "\n" for each in (dangling, good)))
    assert check.main([str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("chain_explicit_forward: crashed: ")
    assert lines[-1] == "equal: 1 of 2"


def test_check_reports_an_error_in_another_phase_as_a_difference() -> None:
    vector = deepcopy(VECTORS["error_empty"])
    vector["expected"]["error"]["phase"] = "job_graph"
    (line,) = check.check_vector(vector)
    assert line.startswith("refused in phase stream_graph, but Flink does so in job_graph")


def test_check_names_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["nowhere.jsonl"]) == 2
    assert "there is no file nowhere.jsonl" in capsys.readouterr().err
