import socket
from pathlib import Path
from typing import Any

import pytest

HEAD = """\
import sys
from opchain import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
"""


def test_run_local_runs_the_program_in_this_process(write: Any, run: Any) -> None:
    write(
        HEAD
        + "numbers = env.from_sequence(1, int(sys.argv[2])).map(lambda n: n * n)\n"
        + "print(sorted(numbers.execute_and_collect()))\n"
    )
    done = run("run", "--local", "clicks.py", "--to", "4")
    assert (done.exit_code, done.stdout) == (0, "[1, 4, 9, 16]\n"), done.stderr


def test_run_prints_the_python_traceback_of_the_program(write: Any, run: Any) -> None:
    write("def fail():\n    1 / 0\nfail()\n")
    done = run("run", "clicks.py")
    assert done.exit_code == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith('  File "clicks.py", line 3')
    assert "runpy" not in done.stderr
    assert lines[-1] == "ZeroDivisionError: division by zero"


FAILS_IN_A_JOB = (
    "def divide(n):\n"
    "    return 1 // n\n"
    "env.from_sequence(0, 1).map(divide).print()\n"
    "env.execute()\n"
)


def test_run_shows_frames_of_opchain_only_on_request(write: Any, run: Any) -> None:
    write(HEAD + FAILS_IN_A_JOB)
    done = run("run", "clicks.py", "--local", "--quiet")
    assert done.exit_code == 1
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert frames == [
        '  File "clicks.py", line 7, in <module>',
        '  File "clicks.py", line 5, in divide',
    ]
    assert done.stderr.endswith(
        "note: the traceback is shortened; 'opchain run -v' shows all of it\n"
    )
    for whole in (
        run("run", "clicks.py", "--local", "--quiet", "-v"),
        run("--traceback", "run", "clicks.py", "--local", "--quiet"),
    ):
        assert "operator_chain.py" in whole.stderr
        assert "left out" not in whole.stderr


def test_run_exits_with_the_exit_code_of_the_program(write: Any, run: Any) -> None:
    write("raise SystemExit(7)\n")
    assert run("run", "clicks.py").exit_code == 7


def test_a_record_in_an_error_does_not_control_the_terminal(write: Any, run: Any) -> None:
    write(
        f"{HEAD}def refuse(value):\n"
        "    raise ValueError('not ' + value)\n"
        "env.from_collection(['\\x1b]0;title\\x07']).map(refuse).print()\n"
        "env.execute()\n"
    )
    for options in ([], ["-v"]):
        failed = run("run", "--local", *options, "clicks.py")
        assert "ValueError: not \\x1b]0;title\\x07\n" in failed.stderr
        assert "\x1b" not in failed.stderr


def test_run_prints_an_error_of_the_compiler_as_one_sentence(write: Any, run: Any) -> None:
    write(HEAD + "env.execute()\n")
    done = run("run", "clicks.py", "--local")
    assert done.exit_code == 2
    assert done.stderr.startswith("opchain: clicks.py is refused at clicks.py:4: ")
    assert "Traceback" not in done.stderr


def test_a_checkpoint_that_does_not_exist_is_refused(write: Any, run: Any) -> None:
    write(HEAD + "env.from_collection([1, 2]).print()\nenv.execute()\n")
    done = run("run", "clicks.py", "--local", "--from", "no/checkpoint")
    assert done.exit_code == 2
    assert "opchain: clicks.py is refused at clicks.py:5: there is no folder" in done.stderr


def test_run_reports_sys_exit_in_a_function_as_a_failure(write: Any, run: Any) -> None:
    write(HEAD + "env.from_collection([1, 2]).map(lambda n: sys.exit(n)).print()\nenv.execute()\n")
    done = run("run", "clicks.py", "--local")
    assert done.exit_code == 1
    assert "opchain: clicks.py failed at clicks.py:4: " in done.stderr
    assert "Traceback" not in done.stderr


def test_run_refuses_files_that_are_not_python(write: Any, run: Any) -> None:
    write("# Title\nA text.\n", "README.md")
    assert "README.md is not a Python program" in run("run", "README.md").stderr
    assert "there is no file nope.py" in run("run", "nope.py").stderr
    lokal = run("run", "--lokal", "README.md").stderr
    assert "--lokal is not an option of this command" in lokal
    assert "-D parallelism.default=4" in lokal


def test_run_refuses_a_function_of_a_program(write: Any, run: Any) -> None:
    write("print('runs')\n")
    done = run("run", "clicks.py:build")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "clicks.py:build names a function" in done.stderr


CANCELLED = """
from opchain.common import WatermarkStrategy
from opchain.datastream.connectors.datagen import DataGeneratorSource
source = DataGeneratorSource(str, records_per_second=100)
env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").print()
client = env.execute_async("endless")
client.cancel().result()
client.get_job_execution_result().result()
"""


def test_run_shows_no_traceback_for_a_cancelled_job(write: Any, run: Any) -> None:
    write(HEAD + CANCELLED)
    done = run("run", "clicks.py", "--local")
    assert done.exit_code == 1
    assert "note: cancelled by a command, a page or a client: 'endless'" in done.stderr
    assert "Traceback" not in done.stderr


IN_THE_BACKGROUND = """
import time
slow = env.from_sequence(1, 3).map(lambda n: (time.sleep(0.1), 6 // (n - {zero}))[1])
slow.print()
env.execute_async("background")
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit()", "sys.exit(0)"])
def test_run_waits_for_jobs_that_the_program_has_not_awaited(
    write: Any, run: Any, end: str
) -> None:
    write(HEAD + IN_THE_BACKGROUND.format(zero=0, end=end))
    done = run("run", "clicks.py", "--local", "--quiet")
    assert (done.exit_code, done.stdout.split()) == (0, ["6", "3", "2"])


def test_run_fails_if_a_job_fails_that_the_program_has_not_awaited(write: Any, run: Any) -> None:
    write(HEAD + IN_THE_BACKGROUND.format(zero=2, end=""))
    done = run("run", "clicks.py", "--local", "--quiet")
    assert done.exit_code == 1
    assert "ZeroDivisionError" in done.stderr


def test_run_does_not_wait_for_records_that_the_program_does_not_read(write: Any, run: Any) -> None:
    write(
        HEAD
        + CANCELLED.partition("env.from_source")[0]
        + "numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), 'numbers')\n"
        + "print(next(iter(numbers.execute_and_collect())))\n"
    )
    done = run("run", "clicks.py", "--local", "--quiet")
    assert (done.exit_code, done.stdout) == (0, "0\n")


def test_run_waits_for_no_job_whose_failure_the_program_has_handled(write: Any, run: Any) -> None:
    handled = "try:\n    client.get_job_execution_result().result()\nexcept ZeroDivisionError:\n    print('handled')"
    text = IN_THE_BACKGROUND.format(zero=2, end=handled)
    write(HEAD + text.replace("env.execute_async", "client = env.execute_async"))
    done = run("run", "clicks.py", "--local", "--quiet")
    assert (done.exit_code, done.stdout.split()[-1]) == (0, "handled")


TWO_JOBS = """
for name in ("first", "second"):
    env.from_sequence(1, 9).filter(lambda n: n > 4).name("late ones").print()
    env.execute(name)
"""


def test_run_prints_the_metrics_of_each_finished_job(write: Any, run: Any) -> None:
    write(HEAD + TWO_JOBS)
    done = run("run", "clicks.py", "--local")
    assert done.exit_code == 0
    assert done.stdout.split() == ["5", "6", "7", "8", "9"] * 2
    first, second = done.stderr.split("\njob 'second' ran for ")
    assert first.startswith("\njob 'first' ran for ")
    for text in (first, second):
        (row,) = [line for line in text.splitlines() if line.startswith("   late ones")]
        assert row.split() == ["late", "ones", "9", "5", "1.00"]


def test_run_quiet_prints_no_metrics(write: Any, run: Any) -> None:
    write(HEAD + TWO_JOBS)
    assert run("run", "clicks.py", "--local", "--quiet").stderr == ""


def test_run_prints_no_metrics_of_a_failed_job(write: Any, run: Any) -> None:
    write(HEAD + TWO_JOBS + "env.from_sequence(1, 1).map(lambda n: n / 0).print()\nenv.execute()\n")
    done = run("run", "clicks.py", "--local")
    assert done.exit_code == 1
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.count(" ran for ") == 2


def test_run_html_writes_a_page_with_metrics_for_each_finished_job(
    write: Any, run: Any, tmp_path: Path
) -> None:
    write(HEAD + TWO_JOBS)
    done = run("run", "clicks.py", "--local", "--quiet", "--html", "jobs.html")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == "opchain: note: jobs.html written\nopchain: note: jobs-2.html written\n"
    for name, page in (("first", "jobs.html"), ("second", "jobs-2.html")):
        text = (tmp_path / page).read_text(encoding="ascii")
        assert f'"job":"{name}"' in text
        assert '"recordsIn":9,' in text


def test_run_html_writes_the_error_of_a_failed_job(write: Any, run: Any, tmp_path: Path) -> None:
    write(
        HEAD
        + "env.from_sequence(0, 1).map(lambda n: 1 // n).name('divide').print()\n"
        + "env.execute('dividing')\n"
    )
    done = run("run", "clicks.py", "--local", "--html", "job.html")
    assert done.exit_code == 1
    page = (tmp_path / "job.html").read_text(encoding="ascii")
    assert '"title":"ZeroDivisionError: ' in page
    assert '"failed"' in page


def test_run_serve_serves_the_page_of_a_running_job(write: Any, run: Any) -> None:
    # The program looks at the page of its own job, which has ended by then.
    write(
        HEAD
        + "import re, urllib.request\n"
        + "env.from_collection([1, 2]).print()\n"
        + "env.execute('two numbers')\n"
        + "sys.stderr.flush()\n"
        + "said = sys.stderr.buffer.getvalue().decode()\n"
        + "address, token = re.search(r'(http://[0-9.:]+/)(\\?token=\\S+)', said).groups()\n"
        + "page = urllib.request.urlopen(address + token).read().decode()\n"
        + "updates = urllib.request.urlopen(address + '1/updates' + token).read().decode()\n"
        + "print('two numbers' in page, 'data-updates' in page, '\"status\":\"finished\"' in updates)\n"
    )
    done = run("run", "clicks.py", "--local", "--quiet", "--serve", "0")
    assert "opchain: note: the job's page is at http://127.0.0.1:" in done.stderr
    assert done.stdout.splitlines()[-1] == "True True True", done.stderr


def test_run_serve_fails_if_the_port_is_in_use(write: Any, run: Any) -> None:
    write()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = run("run", "clicks.py", "--local", "--serve", port)
    assert done.exit_code == 2
    assert f"cannot serve the plan page at port {port}" in done.stderr


def test_run_html_fails_before_the_program_if_the_page_is_not_writable(
    write: Any, run: Any
) -> None:
    write("print('runs')\n")
    done = run("run", "clicks.py", "--html", "nowhere/page.html")
    assert (done.exit_code, done.stdout) == (2, "")
    assert (
        done.stderr
        == "opchain: cannot write nowhere/page.html: there is no folder nowhere; create it first\n"
    )


def test_run_notes_operators_that_were_never_executed(write: Any, run: Any) -> None:
    write(HEAD + TWO_JOBS + "env.from_sequence(1, 2).print()\n")
    done = run("run", "clicks.py", "--local")
    said = "note: clicks.py ended without env.execute() for some operators of its environment (clicks.py:3)"
    assert done.exit_code == 0
    assert said in done.stderr
    assert said in run("run", "clicks.py", "--local", "--quiet").stderr
    write("print('draws nothing')\n")
    assert run("run", "clicks.py").stderr == ""


INSERTS_A_STREAM = """
from opchain.common import Types
from opchain.table import StreamTableEnvironment
tables = StreamTableEnvironment.create(env)
tables.execute_sql("CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'print')")
stream = env.from_collection([1, 2], Types.LONG()).map(lambda n: n + 1, Types.LONG())
tables.from_data_stream(stream).execute_insert("numbers").wait()
"""


def test_run_notes_no_operators_that_an_insert_has_executed(write: Any, run: Any) -> None:
    write(HEAD + INSERTS_A_STREAM)
    done = run("run", "clicks.py", "--local", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "+I[2]\n+I[3]\n", "")
    assert "more operators" not in run("plan", "clicks.py").stderr
    write(HEAD + INSERTS_A_STREAM + "stream.print()\n")
    assert "ended without env.execute()" in run("run", "clicks.py", "--local").stderr
    assert "clicks.py adds 1 more operator" in run("plan", "clicks.py").stderr


def test_imports_of_pyflink_have_a_hint(write: Any, run: Any) -> None:
    write("raise ModuleNotFoundError(\"No module named 'pyflink'\", name='pyflink')\n")
    done = run("run", "clicks.py")
    assert done.exit_code == 1
    *_, raised, said = done.stderr.splitlines()
    assert raised == "ModuleNotFoundError: No module named 'pyflink'"
    assert said.startswith(
        "opchain: note: to run a PyFlink program, change its imports from pyflink to opchain"
    )
