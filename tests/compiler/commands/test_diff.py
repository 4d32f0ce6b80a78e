from typing import Any

import pytest


@pytest.fixture
def changed(write: Any) -> Any:
    """clicks.py, and a changed copy of it in other.py."""

    def copy(old: str, new: str) -> None:
        text = write().read_text(encoding="utf-8")
        assert old in text
        write(text.replace(old, new), "other.py")

    return copy


def test_the_same_is_0(write: Any, run: Any) -> None:
    write()
    done = run("diff", "clicks.py", "clicks.py")
    assert (done.exit_code, done.stdout) == (0, "the plans are the same\n")


def test_lines_that_moved_are_no_difference(changed: Any, run: Any) -> None:
    changed("import sys\n", "import sys\n\n\n")
    assert run("diff", "clicks.py", "other.py").exit_code == 0


def test_a_difference_is_1(changed: Any, run: Any) -> None:
    changed('name("clean")', 'name("clean").start_new_chain()')
    done = run("diff", "clicks.py", "other.py")
    assert done.exit_code == 1
    assert done.stdout.startswith("cut             'parse' -> 'clean'  FORWARD, because")


def test_a_saved_plan_is_compared_with_a_program(changed: Any, write: Any, run: Any) -> None:
    changed('"parse"', '"read"')
    write(run("plan", "clicks.py", "--format", "json").stdout, "saved.json")
    assert run("diff", "saved.json", "clicks.py").exit_code == 0
    done = run("diff", "saved.json", "other.py")
    assert (done.exit_code, done.stdout) == (1, "renamed         'parse' -> 'read'\n")


def test_only_state_may_count(changed: Any, run: Any) -> None:
    changed('"parse"', '"read"')
    assert run("diff", "clicks.py", "other.py", "--fail-on", "state").exit_code == 0
    changed('name("numbers")', 'name("numbers").uid("n")')
    lost = run("diff", "clicks.py", "other.py", "--fail-on", "state")
    assert lost.exit_code == 1
    assert "restoring state: 1 problem\n  lost: read positions of 'Source: numbers'" in lost.stdout


def test_an_error_is_2(changed: Any, write: Any, run: Any) -> None:
    changed("import sys", "import nothing_like_it")
    for files in (("clicks.py", "other.py"), ("other.py", "clicks.py"), ("clicks.py", "no.py")):
        done = run("diff", *files)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
    write("[1", "broken.json")
    assert "broken.json is not JSON" in run("diff", "clicks.py", "broken.json").stderr
    assert run("diff", "clicks.py").exit_code == 2


def test_both_programs_get_the_arguments(write: Any, run: Any) -> None:
    text = (
        "import sys\nfrom opchain import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_sequence(1, 9).map(abs).name(sys.argv[2]).print()\nenv.execute()\n"
    )
    write(text)
    write(text + "# the same\n", "other.py")
    assert run("diff", "clicks.py", "other.py", "--name", "x").exit_code == 0
