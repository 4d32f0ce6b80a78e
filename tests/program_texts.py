"""Runs programs that tests write as text: their results in each form of their code."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from forms import FORMS, job_of, run_job

from opchain.runtime.mailbox.timer_service import SteppedClock
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


def module_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a file for one test."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    return module


def outcomes(
    draw: Any, names: list[str], parallelism: int = 2
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The outcome of a program in each form, by mode, at time 0. `names` lists its `seen` streams."""
    for mode in ("STREAMING", "BATCH"):
        yield mode, {form: _outcome(draw, names, form, mode, parallelism) for form in FORMS}


def _outcome(draw: Any, names: list[str], form: str, mode: str, parallelism: int) -> Any:
    """What a job gives: records and counters, or the error."""
    try:
        job = job_of(draw, form, mode=mode, parallelism=parallelism, batch_size=7)
        ran = run_job(job, TaskEnvironment(timers=SteppedClock()))
    except Exception as error:  # noqa: BLE001 - the functions raise what they like
        return type(error), str(error)
    return {name: repr(ran.subtasks(name)) for name in names}, ran.counters()
