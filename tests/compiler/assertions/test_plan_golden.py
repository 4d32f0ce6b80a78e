from pathlib import Path

import pytest
from programs import drawn

from opchain.compiler.assertions import chaining as golden_files
from opchain.compiler.assertions.chaining import GoldenRun
from opchain.testing import assert_plan_matches


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch) -> GoldenRun:
    fresh = GoldenRun()
    monkeypatch.setattr(golden_files, "RUN", fresh)
    return fresh


@pytest.mark.parametrize("stage", ["stream-graph", "job-graph", "execution", "generated"])
def test_assert_plan_matches_compares_any_stage_with_a_golden_file(
    stage: str, tmp_path: Path, run: GoldenRun
) -> None:
    golden = tmp_path / "plan"
    run.is_updating = True
    assert_plan_matches(drawn("word_count"), golden, stage=stage)
    run.is_updating = False
    assert_plan_matches(drawn("word_count").program(), str(golden), stage=stage)
    assert "programs.py:" not in golden.read_text(encoding="utf-8")
    with pytest.raises(AssertionError, match=r"^the golden file .*plan differs"):
        assert_plan_matches(drawn("union"), golden, stage=stage)
