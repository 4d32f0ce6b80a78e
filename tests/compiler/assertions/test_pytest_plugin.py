"""The plugin as users have it: another pytest, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
from pathlib import Path
from opchain import StreamExecutionEnvironment
from opchain.testing import assert_plan_matches

def test_plan():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).map(abs).name("{name}").print()
    assert_plan_matches(env, Path(__file__).parent / "golden" / "plan.txt")
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
def test_goldens_are_missing_then_written_then_compared(tmp_path: Path) -> None:
    test = tmp_path / "test_plan.py"
    test.write_text(TEST.format(name="parse"), encoding="utf-8")
    missing = run_pytest(tmp_path)
    assert missing.returncode == 1
    assert "does not exist; run pytest --update-golden to write it" in missing.stdout
    assert "golden_files.py" not in missing.stdout  # the traceback ends at the user's line

    updated = run_pytest(tmp_path, "--update-golden")
    assert updated.returncode == 0
    assert "plan.txt" in updated.stdout
    assert "1 written" in updated.stdout
    assert run_pytest(tmp_path).returncode == 0

    test.write_text(TEST.format(name="clean"), encoding="utf-8")
    changed = run_pytest(tmp_path)
    assert changed.returncode == 1
    assert "-  -> parse" in changed.stdout
    assert "+  -> clean" in changed.stdout


def test_starting_pytest_does_not_import_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    loaded = {name for name in sys.modules if name.startswith('opchain')}\n"
        "    assert loaded == {'opchain', 'opchain.compiler', 'opchain.compiler.assertions',\n"
        "                      'opchain.compiler.assertions.pytest_plugin'}\n"
        "    assert not {'networkx', 'pydantic', 'click', 'rich'} & set(sys.modules)\n",
        encoding="utf-8",
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
