"""A process that runs thousands of jobs, as fuzzing does, must not grow with each job."""

from __future__ import annotations

import gc
import linecache
import os
import subprocess
import sys
import threading

import pytest

from opchain.common import Configuration
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.task import generated_code
from opchain.runtime.task.generated_code import show_in_tracebacks


def run_job(number: int) -> None:
    """A job with its own names and functions; each third job fails."""
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    names: dict[str, object] = {}
    exec(f"def plus(x):\n    return x % 5, x // (x + {number} % 3)", names)  # noqa: S102 - each job needs its own functions
    sums = env.from_collection([0, 1, 2]).map(names["plus"]).name(f"plus {number}")  # type: ignore[arg-type]
    collected = sums.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    if number % 3:
        assert len(list(collected.execute_and_collect())) == 3
    else:
        with pytest.raises(ZeroDivisionError):
            list(collected.execute_and_collect())


@pytest.mark.slow
def test_the_number_of_objects_threads_and_files_stays_constant() -> None:
    """In its own process, since objects of other tests may be freed meanwhile."""
    subprocess.run([sys.executable, __file__], check=True, timeout=300)


def run_many_jobs() -> None:
    generated_code.MOST_SHOWN = 8

    def counted() -> tuple[int, int, int]:
        gc.collect()
        files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0  # noqa: PTH110, PTH208
        return len(gc.get_objects()), threading.active_count(), files

    for number in range(30):
        run_job(number)
    before = counted()
    for number in range(30, 90):
        run_job(number)
    after = counted()
    assert after[0] - before[0] < 60, f"an object or more for each of 60 jobs: {before}, {after}"
    assert after[1:] == before[1:], f"threads or open files: {before}, {after}"


def test_tracebacks_show_the_lines_of_the_latest_generated_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generated_code, "MOST_SHOWN", 2)
    for name in ("<a>", "<b>", "<a>", "<c>"):
        show_in_tracebacks(f"{name}\n", name)
    assert linecache.getline("<a>", 1) == "<a>\n"
    assert linecache.getline("<c>", 1) == "<c>\n"
    assert linecache.getline("<b>", 1) == ""


if __name__ == "__main__":
    run_many_jobs()
