from __future__ import annotations

from pathlib import Path

import pytest

from examples.nexmark.job import QUERIES, draw
from opchain import StreamExecutionEnvironment
from opchain.testing import assert_plan_matches

GOLDEN = Path(__file__).parent.parent / "golden" / "nexmark"


@pytest.mark.parametrize("query", QUERIES)
def test_the_plan_of_each_query_equals_its_golden_file(query: str, tmp_path: Path) -> None:
    (tmp_path / "events.json").touch()
    (tmp_path / "side.csv").write_text("1,one\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    draw(
        env,
        query,
        str(tmp_path / "events.json"),
        str(tmp_path / "out"),
        side_input=str(tmp_path / "side.csv"),
    )
    assert_plan_matches(env, GOLDEN / f"{query}.job-graph")
