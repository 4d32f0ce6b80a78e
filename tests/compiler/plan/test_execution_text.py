from pathlib import Path

import pytest
from programs import drawn

from opchain import StreamExecutionEnvironment
from opchain.compiler.plan.explain import explain
from opchain.testing import assert_plan_matches

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("name", ["word_count", "diamond", "side_outputs"])
def test_the_execution_plan_is_as_reviewed(name: str) -> None:
    assert_plan_matches(drawn(name), GOLDEN / f"{name}.execution", stage="execution")


def test_of_many_subtasks_the_first_key_groups_are_listed() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).key_by(abs).reduce(max).set_parallelism(64).print()
    text = explain(env.program(), "execution")
    assert "key groups: 0-1, 2-3," in text
    assert "30-31, ..." in text
