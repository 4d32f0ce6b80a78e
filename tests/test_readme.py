"""What the README shows is what the program prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from page_blocks import shows

from opchain.compiler.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def block(language: str, number: int = 0) -> str:
    """The nth block of a language."""
    return [text for kind, text in BLOCKS if kind == language][number]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The README's program as a file, in the folder that it is called from."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.py").write_text(block("python"), encoding="utf-8")
    return "words.py"


def test_the_plan_in_the_readme_is_the_output_of_opchain_plan(program: str) -> None:
    result = CliRunner().invoke(main, ["plan", program])
    assert shows(result.output, block("text"))


def test_the_function_in_the_readme_is_the_output_of_opchain_code(program: str) -> None:
    result = CliRunner().invoke(main, ["code", program])
    assert block("python", 1).strip() in result.output


def test_the_program_in_the_readme_counts_words(program: str) -> None:
    result = CliRunner().invoke(main, ["run", "--local", "--quiet", program])
    assert result.exit_code == 0
    assert {"1> ('that', 1)", "2> ('be', 2)"} & set(result.output.splitlines())


def test_the_kafka_program_in_the_readme_compiles_to_one_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """examples/kafka/filter_json.py does the same, and runs against a broker in tests/examples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large.py").write_text(block("python", 2), encoding="utf-8")
    assert len(block("python", 2).splitlines()) <= 20
    result = CliRunner().invoke(main, ["plan", "large.py"])
    assert result.exit_code == 0, result.output
    assert "6 operators in 1 vertex, 0 exchanges" in result.output


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 150
    paragraphs = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE).split("\n\n")
    lists = re.compile(r"^([-|!]|#|  )", re.MULTILINE)
    long = [text for text in paragraphs if not lists.search(text) and text.count("\n") >= 4]
    assert long == []


def test_links_in_the_readme_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_cluster_commands_in_the_readme_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.chdir(ROOT)
    lines = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    (submit,) = [line for line in lines if "opchain submit " in line]
    command, *words = shlex.split(submit)[1:]
    options = ["--dry-run", "--build-dir", str(tmp_path)]
    done = CliRunner().invoke(main, [command, *options, *words])
    assert done.exit_code == 0, done.stderr
    deploy = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    (by_hand,) = [line for line in deploy.splitlines() if "examples/sessions.py" in line]
    assert "--properties-file spark-conf/standalone/spark-defaults.conf" in done.stdout
    assert set(words[:2]) <= set(shlex.split(by_hand))
    assert by_hand.endswith(f" {shlex.join(words[4:])}")


def test_ci_runs_the_test_command_of_the_readme() -> None:
    command = next(
        line
        for kind, text in BLOCKS
        if kind == "sh"
        for line in text.splitlines()
        if "pytest" in line
    )
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "-e '.[test]'" in command
    assert "-e '.[test]'" in ci
