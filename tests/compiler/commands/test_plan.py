from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.plan.explain import STAGES

if TYPE_CHECKING:
    from pathlib import Path

plan_command = importlib.import_module("opchain.compiler.commands.plan")


@pytest.mark.parametrize(
    ("stage", "form"), [(stage, form) for stage, found in STAGES.items() for form in found.printers]
)
def test_plan_prints_every_stage_and_format(stage: str, form: str, write: Any, run: Any) -> None:
    write()
    done = run("plan", "clicks.py", "--stage", stage, "--format", form)
    assert done.exit_code == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""


def test_plan_prints_the_job_graph_as_text_by_default(write: Any, run: Any) -> None:
    write()
    done = run("plan", "clicks.py")
    assert done.stdout.startswith("job 'clicks', STREAMING: 4 operators in 1 vertex, 0 exchanges\n")
    assert "clicks.py:7" in done.stdout
    assert "clicks.py:" not in run("plan", "clicks.py", "--no-call-sites").stdout


def test_plan_refuses_a_missing_format_before_the_program_runs(write: Any, run: Any) -> None:
    write("raise SystemError('must not run')\n")
    done = run("plan", "clicks.py", "--stage", "generated", "--format", "dot")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "stage generated has no format dot; it has text" in done.stderr


def test_plan_keeps_output_of_the_program_out_of_stdout(write: Any, run: Any) -> None:
    write(
        "print('hello')\n"
        "from opchain import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_sequence(1, 9).print()\nenv.execute()\n"
    )
    done = run("plan", "clicks.py", "--format", "json")
    json.loads(done.stdout)
    assert done.stderr == "hello\n"


def test_plan_takes_the_job_that_option_job_selects(write: Any, run: Any) -> None:
    write(
        "from opchain import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "for name in ('first', 'second'):\n"
        "    env.from_sequence(1, 9).map(abs).name(name).print()\n"
        "    env.execute(name)\n"
    )
    done = run("plan", "clicks.py")
    assert "job 'first'" in done.stdout
    assert "note: clicks.py has 2 jobs: 1 is 'first' (clicks.py:5), 2 is 'second'" in done.stderr
    second = run("plan", "clicks.py", "--job", 2)
    assert "job 'second'" in second.stdout
    assert second.stderr == ""
    third = run("plan", "clicks.py", "--job", 3)
    assert (third.exit_code, third.stdout) == (2, "")
    assert "there is no job 3" in third.stderr
    assert run("plan", "clicks.py", "--job", 0).exit_code == 2


def test_plan_prints_the_plan_and_the_failure_if_the_program_fails_later(
    write: Any, run: Any
) -> None:
    write(
        "from opchain import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_sequence(1, 9).print()\nenv.execute()\nraise ValueError('boom')\n"
    )
    done = run("plan", "clicks.py")
    assert done.exit_code == 2
    assert "vertex 1" in done.stdout
    assert done.stderr == "opchain: clicks.py failed at clicks.py:5: ValueError: boom\n"


def test_plan_prints_an_error_of_the_compiler_as_one_sentence(write: Any, run: Any) -> None:
    write(
        "from opchain import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "numbers = env.from_sequence(1, 9).map(abs).uid('same')\n"
        "numbers.map(abs).uid('same').print()\nenv.execute()\n"
    )
    done = run("plan", "clicks.py")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "same" in done.stderr
    assert "clicks.py:4" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" in run("--traceback", "plan", "clicks.py").stderr


def test_plan_prints_a_saved_plan(write: Any, run: Any) -> None:
    write()
    write(run("plan", "clicks.py", "--format", "json").stdout, "saved.json")
    assert run("plan", "clicks.py").stdout.startswith(run("plan", "saved.json").stdout)
    generated = run("plan", "saved.json", "--stage", "generated")
    assert generated.exit_code == 2
    assert "saved.json is a saved plan: it holds only the job graph, not" in generated.stderr
    write("{}", "broken.json")
    broken = run("plan", "broken.json")
    assert broken.exit_code == 2
    assert "broken.json is JSON but not a saved plan" in broken.stderr
    write(
        run("plan", "clicks.py", "--stage", "stream-graph", "--format", "json").stdout, "early.json"
    )
    assert (
        "early.json is a stream graph, but a job graph is needed"
        in run("plan", "early.json").stderr
    )
    assert run("plan", "missing.json").stderr == "opchain: there is no file missing.json\n"


@pytest.mark.parametrize("form", ["text", "html"])
def test_plan_writes_to_the_file_of_option_o(
    form: str, write: Any, run: Any, tmp_path: Path
) -> None:
    write()
    printed = run("plan", "clicks.py", "--format", form)
    done = run("plan", "clicks.py", "--format", form, "-o", "plan.out")
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        "",
        "opchain: note: plan.out written\n",
    )
    assert (tmp_path / "plan.out").read_text(encoding="utf-8") == printed.stdout


def test_plan_draws_a_page_of_a_saved_plan(write: Any, run: Any, tmp_path: Path) -> None:
    write()
    run("plan", "clicks.py", "--format", "json", "--output", "plan.json")
    done = run("plan", "plan.json", "--format", "html", "--output", "plan.html")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "plan.html").read_text(encoding="ascii").startswith("<!DOCTYPE html>")


def test_plan_fails_if_the_file_cannot_be_written(write: Any, run: Any) -> None:
    write()
    done = run("plan", "clicks.py", "-o", "nowhere/plan.html", "--format", "html")
    assert done.exit_code == 2
    assert (
        "cannot write nowhere/plan.html: there is no folder nowhere; create it first" in done.stderr
    )


def test_plan_does_not_print_a_page_to_a_terminal(
    write: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    monkeypatch.setattr(plan_command, "is_terminal", lambda: True)
    done = run("plan", "clicks.py", "--format", "html")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "add -o PAGE.html" in done.stderr


def test_plan_says_how_the_job_will_run(write: Any, run: Any) -> None:
    write(
        "from opchain.common import WatermarkStrategy\n"
        "from opchain.datastream import StreamExecutionEnvironment\n"
        "from opchain.runtime.connectors.data_generator import DataGeneratorSource\n"
        "def build(env):\n"
        "    source = DataGeneratorSource(int)\n"
        "    env.from_source(source, WatermarkStrategy.no_watermarks(), 'numbers').print()\n"
    )
    settings = (
        *("-Dexecution.checkpointing.interval=10 s", "-Drestart-strategy.type=fixed-delay"),
        "-Dstate.backend.type=rocksdb",
    )
    shown = run("plan", "clicks.py:build", *settings).stdout
    assert "every 10000 ms, exactly once, in a temporary directory" in shown
    assert "rocksdb" in shown
    assert "fixed delay: 1 restarts, 1000 ms apart" in shown
    assert "blocking within an epoch: stages run one after another" in shown
    local = run("plan", "clicks.py:build", "-Dexecution.target=local").stdout
    assert "none: the job runs in this process, and sets no" in local
    assert "pipelined: all tasks run at once" in local
    local = run("plan", "clicks.py:build", "-Dexecution.target=local", settings[0]).stdout
    assert "every 10000 ms, exactly once, in a temporary directory" in local
    assert "blocking within an epoch: stages run one after another" in local


def test_explain_explains_every_edge(write: Any, run: Any) -> None:
    write()
    done = run("explain", "clicks.py")
    assert done.exit_code == 0
    assert "4 operators" not in done.stdout
    assert done.stdout.count("\nchained ") == 3


def test_explain_explains_a_saved_plan_alike(write: Any, run: Any) -> None:
    write()
    write(run("plan", "clicks.py", "--format", "json").stdout, "saved.json")
    assert run("explain", "saved.json").stdout == run("explain", "clicks.py").stdout


def test_explain_fails_if_the_program_fails(write: Any, run: Any) -> None:
    write("1 / 0\n")
    done = run("explain", "clicks.py")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "clicks.py failed at clicks.py:1: ZeroDivisionError" in done.stderr


@pytest.fixture
def changed(write: Any) -> Any:
    """clicks.py, and a changed copy of it in other.py."""

    def copy(old: str, new: str) -> None:
        text = write().read_text(encoding="utf-8")
        assert old in text
        write(text.replace(old, new), "other.py")

    return copy


def test_diff_of_equal_programs_exits_with_0(write: Any, run: Any) -> None:
    write()
    done = run("diff", "clicks.py", "clicks.py")
    assert (done.exit_code, done.stdout) == (0, "the plans are the same\n")


def test_diff_ignores_moved_lines(changed: Any, run: Any) -> None:
    changed("import sys\n", "import sys\n\n\n")
    assert run("diff", "clicks.py", "other.py").exit_code == 0


def test_diff_of_different_programs_exits_with_1(changed: Any, run: Any) -> None:
    changed('name("clean")', 'name("clean").start_new_chain()')
    done = run("diff", "clicks.py", "other.py")
    assert done.exit_code == 1
    assert done.stdout.startswith("unchained       'parse' -> 'clean'  FORWARD, because")


def test_diff_compares_a_saved_plan_with_a_program(changed: Any, write: Any, run: Any) -> None:
    changed('"parse"', '"read"')
    write(run("plan", "clicks.py", "--format", "json").stdout, "saved.json")
    assert run("diff", "saved.json", "clicks.py").exit_code == 0
    done = run("diff", "saved.json", "other.py")
    assert (done.exit_code, done.stdout) == (1, "renamed         'parse' -> 'read'\n")


def test_diff_with_fail_on_state_fails_only_for_lost_state(changed: Any, run: Any) -> None:
    changed('"parse"', '"read"')
    assert run("diff", "clicks.py", "other.py", "--fail-on", "state").exit_code == 0
    changed('name("numbers")', 'name("numbers").uid("n")')
    lost = run("diff", "clicks.py", "other.py", "--fail-on", "state")
    assert lost.exit_code == 1
    assert "restoring state: 1 problem\n  lost: source position of 'Source: numbers'" in lost.stdout


def test_diff_exits_with_2_on_an_error(changed: Any, write: Any, run: Any) -> None:
    changed("import sys", "import nothing_like_it")
    for files in (("clicks.py", "other.py"), ("other.py", "clicks.py"), ("clicks.py", "no.py")):
        done = run("diff", *files)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
    write("[1", "broken.json")
    assert "broken.json is not JSON" in run("diff", "clicks.py", "broken.json").stderr
    assert run("diff", "clicks.py").exit_code == 2


def test_diff_passes_the_arguments_to_both_programs(write: Any, run: Any) -> None:
    text = (
        "import sys\nfrom opchain import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_sequence(1, 9).map(abs).name(sys.argv[2]).print()\nenv.execute()\n"
    )
    write(text)
    write(text + "# the same\n", "other.py")
    assert run("diff", "clicks.py", "other.py", "--name", "x").exit_code == 0
