from typing import Any


def test_every_edge_is_explained(write: Any, run: Any) -> None:
    write()
    done = run("explain", "clicks.py")
    assert done.exit_code == 0
    assert "4 operators" not in done.stdout
    assert done.stdout.count("\nchained ") == 3


def test_a_saved_plan_is_explained_alike(write: Any, run: Any) -> None:
    write()
    write(run("plan", "clicks.py", "--format", "json").stdout, "saved.json")
    assert run("explain", "saved.json").stdout == run("explain", "clicks.py").stdout


def test_a_failing_program_is_an_error(write: Any, run: Any) -> None:
    write("1 / 0\n")
    done = run("explain", "clicks.py")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "clicks.py failed at clicks.py:1: ZeroDivisionError" in done.stderr
