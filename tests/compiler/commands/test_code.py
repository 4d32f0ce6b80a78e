import ast
from pathlib import Path
from typing import Any


def test_code_prints_the_generated_source(write: Any, run: Any) -> None:
    write()
    done = run("code", "clicks.py")
    assert done.exit_code == 0
    assert done.stdout == run("plan", "clicks.py", "--stage", "generated").stdout
    ast.parse(done.stdout)
    assert run("code", "clicks.py", "--vertex", 1).stdout == done.stdout


def test_code_names_an_unknown_vertex_in_its_error(write: Any, run: Any) -> None:
    write()
    done = run("code", "clicks.py", "--vertex", 5)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "the program has no vertex '5'; it has 1 'Source: numbers -> parse" in done.stderr


def test_code_takes_the_name_of_a_vertex(write: Any, run: Any) -> None:
    program = write()
    text = program.read_text(encoding="utf-8")
    write(text.replace('.name("parse")', '.name("parse").disable_chaining()'))
    second = run("code", "clicks.py", "--vertex", 2)
    assert second.stdout.startswith("# vertex 2: parse")
    assert run("code", "clicks.py", "--vertex", "parse").stdout == second.stdout


def test_code_writes_the_source_into_a_folder(write: Any, run: Any) -> None:
    write()
    done = run("code", "clicks.py", "--output", "new/generated")
    assert (done.exit_code, done.stdout) == (0, "")
    written = Path("new/generated/vertex_1.py")
    assert f"note: {written} written" in done.stderr
    assert written.read_text(encoding="utf-8") == run("code", "clicks.py").stdout


def test_code_fails_if_the_folder_cannot_be_created(write: Any, run: Any) -> None:
    write()
    write("", "file")
    done = run("code", "clicks.py", "--output", "file/below")
    assert done.exit_code == 2
    assert "cannot write into file/below: " in done.stderr


def test_code_can_leave_out_a_rule_or_stop_after_one(write: Any, run: Any) -> None:
    write()
    whole = run("code", "clicks.py").stdout
    without = run("code", "clicks.py", "--without", "count_once").stdout
    assert without != whole
    assert run("code", "clicks.py", "-D", "opchain.codegen.without=count_once").stdout == without
    assert run("code", "clicks.py", "--until", "inline_state").stdout == without
    done = run("code", "clicks.py", "--without", "fly")
    assert (done.exit_code, done.stdout) == (2, "")
    assert (
        "no rule is called 'fly'; the rules are inline_functions, decide_in_branches, drop_copies"
        in done.stderr
    )
