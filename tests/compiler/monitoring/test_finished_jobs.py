from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, Any

from epoch_runs import EpochRun, given
from example_epoch import PROGRESS
from forms import seen

from opchain import StreamExecutionEnvironment
from opchain.common import Configuration
from opchain.compiler.commands.run import show_finished, write_pages
from opchain.compiler.interception import StartedJob, watching_jobs
from opchain.compiler.monitoring.job_watch import JobWatch
from opchain.runtime.epochs.epoch_progress import EpochHistory
from opchain.runtime.job.run import JobRun
from opchain.runtime.shipping.outcome import JobOutcome

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def finished_job() -> StartedJob:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1, 2, 3]).map(str).name("texts").print()
    with watching_jobs() as jobs:
        env.execute("numbers")
    (job,) = jobs
    return job


def test_the_table_of_a_finished_job_is_plain_ascii_in_a_file(capsys: Any) -> None:
    job = finished_job()
    capsys.readouterr()
    show_finished([job])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("\njob 'numbers' ran for ")
    assert "   texts " in captured.err
    assert captured.err.isascii()
    assert "\x1b" not in captured.err


def test_the_table_of_a_finished_job_fits_the_terminal_and_has_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = finished_job()
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show_finished([job])
    lines = terminal.getvalue().splitlines()
    assert any("\x1b[" in line for line in lines)
    assert any(set(line) == {"─", " "} and len(line) == 100 for line in lines)


def test_no_table_is_shown_for_a_failed_job(capsys: Any) -> None:
    job = finished_job()
    capsys.readouterr()
    client: Any = job.run
    client._status = type(client._status).FAILED
    show_finished([job])
    assert capsys.readouterr().err == ""


def test_pages_of_further_jobs_have_a_number_in_their_file_name(tmp_path: Path) -> None:
    job = finished_job()
    write_pages([JobWatch(job), JobWatch(job)], tmp_path / "plan.v1.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.v1-2.html", "plan.v1.html"]
    assert '"recordsIn":3,' in (tmp_path / "plan.v1.html").read_text(encoding="ascii")


def stopped_job(tmp_path: Path) -> StartedJob:
    """An unbounded job that was cancelled after an epoch with three records."""
    epochs = EpochRun(lambda env: seen(given(env, "words"), "words"), tmp_path / "state")
    history = EpochHistory(epochs.job)
    history.add(PROGRESS, epochs.run(words=["a", "b", "c"]).outcome)
    epochs.close()
    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(60)
        raise RuntimeError("stopped")

    client = JobRun(run, let_go.set, history=history).start()
    client.cancel().result(60)
    return StartedJob("words", client, finished_job().plan)


def test_the_metrics_of_a_stopped_unbounded_job_are_shown(tmp_path: Path, capsys: Any) -> None:
    job = stopped_job(tmp_path)
    capsys.readouterr()
    show_finished([job])
    title, header, _, row, *_ = capsys.readouterr().err.strip().splitlines()
    assert title == "job 'words' was stopped"
    assert header.split()[:2] == ["vertex,", "operator"]
    assert [cell for cell in row.split() if cell.isdecimal()][:2] == ["1", "3"]  # tasks, records


def test_a_job_without_metrics_has_no_table(capsys: Any) -> None:
    client = JobRun(JobOutcome, stop=lambda: None).start()
    client.get_job_execution_result().result(60)
    show_finished([StartedJob("words", client, finished_job().plan)])
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("job 'words' ran for ")
    assert line.endswith(" ms and had no work to do")
