from pathlib import Path

import pytest

from opchain.compiler.assertions import chaining as golden_files
from opchain.compiler.assertions.chaining import GoldenRun, assert_matches_golden


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch) -> GoldenRun:
    fresh = GoldenRun()
    monkeypatch.setattr(golden_files, "RUN", fresh)
    return fresh


def test_equal_text_passes_and_writes_nothing(tmp_path: Path, run: GoldenRun) -> None:
    golden = tmp_path / "plan"
    golden.write_text("a\nü\n", encoding="utf-8")
    run.is_updating = True
    assert_matches_golden("a\nü\n", golden)
    assert run.written == []


def test_a_difference_fails_with_the_changed_lines_and_the_whole_text(tmp_path: Path) -> None:
    golden = tmp_path / "plan"
    golden.write_text("same\nold\n", encoding="utf-8")
    with pytest.raises(AssertionError) as failed:
        assert_matches_golden("same\nnew\n", golden)
    message = str(failed.value)
    assert "-old\n+new\n" in message
    assert "pytest --update-golden" in message
    assert message.endswith("now:\nsame\nnew\n")
    assert golden.read_text(encoding="utf-8") == "same\nold\n"


def test_a_missing_final_newline_is_named_as_the_difference(tmp_path: Path) -> None:
    golden = tmp_path / "plan"
    golden.write_text("same", encoding="utf-8")
    with pytest.raises(AssertionError, match="only the newline at the end differs"):
        assert_matches_golden("same\n", golden)


def test_a_missing_golden_file_fails_with_its_expected_text(tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match="does not exist; run pytest --update-golden"
    ) as failed:
        assert_matches_golden("text\n", tmp_path / "new" / "plan")
    assert str(failed.value).endswith("text\n")
    assert not (tmp_path / "new").exists()


def test_updating_creates_folders_and_writes_unix_line_ends(tmp_path: Path, run: GoldenRun) -> None:
    run.is_updating = True
    golden = tmp_path / "new" / "plan"
    assert_matches_golden("a\nb\n", golden)
    assert golden.read_bytes() == b"a\nb\n"
    assert run.written == [golden]
