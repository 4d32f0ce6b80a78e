"""Runs jobs in this process in each form of their code: interpreted, generated, and generated with inlining.

`run_form` compiles and runs the program of `draw`, and `Ran` has its results. To see the records of a stream, a
program calls `seen(stream, name)`: a sink that keeps each record with its timestamp and its subtask, in the order of
arrival. The module is pickled by value, so executors need not import it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle

from opchain.common import Configuration
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.functions.sink import Committer, Sink, SinkWriter
from opchain.runtime.local.job import run_in_process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.datastream import DataStream
    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.shipping.outcome import JobOutcome
    from opchain.runtime.task.stream_task import TaskEnvironment

FORMS = ("interpreted", "generated", "inlined")

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class SeenWriter(SinkWriter[Any]):
    """Keeps (value, timestamp) pairs, and returns all of them at the end as committables."""

    def __init__(self, name: str, subtask: int) -> None:
        self._name = name
        self._subtask = subtask
        self._records: list[tuple[Any, int | None]] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._records.append((value, timestamp))

    def prepare_commit(self) -> Sequence[Any]:
        written, self._records = self._records, []
        return [(self._name, self._subtask, written)]


class ForgetfulCommitter(Committer):
    """Does not commit: the test reads the committables in the outcome of the job."""

    def commit(self, committables: Sequence[Any]) -> None:
        pass


class SeenSink(Sink[Any]):
    """The sink behind `seen`."""

    has_committer = True

    def __init__(self, name: str, *, reads_timestamps: bool) -> None:
        self._name = name
        self.reads_timestamps = reads_timestamps

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return SeenWriter(self._name, context.get_index_of_this_subtask())

    def create_committer(self) -> Committer:
        return ForgetfulCommitter()


def seen(stream: DataStream[Any], name: str, *, reads_timestamps: bool = True) -> Any:
    """Adds a sink to a stream. Its records are `ran.records(name)`."""
    return stream.sink_to(SeenSink(name, reads_timestamps=reads_timestamps)).name(f"seen {name}")


@dataclass(frozen=True, slots=True)
class Ran:
    """A job that has run."""

    job: JobProgram
    outcome: JobOutcome

    def subtasks(self, name: str) -> dict[int, list[tuple[Any, int | None]]]:
        """By subtask, the (value, timestamp) pairs that reached `seen(stream, name)`."""
        found: dict[int, list[tuple[Any, int | None]]] = {}
        for committables in self.outcome.committables.values():
            for sink, subtask, records in committables:
                if sink == name:
                    assert subtask not in found
                    found[subtask] = records
        return dict(sorted(found.items()))

    def records(self, name: str) -> list[Any]:
        """The records, subtask after subtask."""
        return [value for records in self.subtasks(name).values() for value, _ in records]

    def timestamps(self, name: str) -> list[int | None]:
        """Their timestamps."""
        return [time for records in self.subtasks(name).values() for _, time in records]

    def counters(self) -> dict[tuple[str, int], tuple[int, int]]:
        """(records in, records out) by (operator, subtask), operators by name and index."""
        return {
            (f"{operator.name}.{operator.index} of {vertex.name}", subtask): numbers
            for vertex in self.job.vertices
            for subtask in range(vertex.parallelism)
            for operator, numbers in zip(
                vertex.all_operators,
                counted(self.outcome.reports[vertex.first_task + subtask]),
                strict=True,
            )
        }


def counted(report: Any) -> list[tuple[int, int]]:
    """(records in, records out) of each operator of a task, by its report."""
    return [(item.records_in, item.records_out) for item in report.metrics.operators]


def job_of(
    draw: Callable[[StreamExecutionEnvironment], Any],
    form: str = "inlined",
    *,
    parallelism: int = 1,
    **keys: Any,
) -> JobProgram:
    """The compiled job; `keys` are configuration keys, with `_` for `.` and for `-`."""
    configuration = Configuration()
    configuration.set_string("opchain.codegen.enabled", str(form != "interpreted"))
    configuration.set_string("opchain.codegen.inline", str(form == "inlined"))
    for key, value in keys.items():
        configuration.set_string(KEYS[key], str(value))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    draw(env)
    job = compile_program(env.program()).job_program
    assert job is not None
    return job


def run_job(job: JobProgram, environment: TaskEnvironment | None = None) -> Ran:
    """Runs a compiled job, commits nothing."""
    return Ran(job, run_in_process(job, environment))


def run_form(
    draw: Callable[[StreamExecutionEnvironment], Any], form: str = "inlined", **settings: Any
) -> Ran:
    """Compiles and runs; settings as of `job_of`."""
    return run_job(job_of(draw, form, **settings))


def failure_of(
    draw: Callable[[StreamExecutionEnvironment], Any], form: str = "inlined", **settings: Any
) -> BaseException:
    """The error that running raises. Raises AssertionError if there is none."""
    job = job_of(draw, form, **settings)
    try:
        run_in_process(job)
    except Exception as error:  # noqa: BLE001 - the tests look at what it is
        return error
    raise AssertionError("the job ran through")


def notes_of(error: BaseException) -> str:
    """The notes of an exception, on one line."""
    return " | ".join(getattr(error, "__notes__", []))


KEYS = {
    "state_backend": "state.backend.type",
    "batch_size": "opchain.batch-size",
    "chaining": "pipeline.operator-chaining.enabled",
    "mode": "execution.runtime-mode",
    "object_reuse": "pipeline.object-reuse",
    "watermark_interval": "pipeline.auto-watermark-interval",
    "max_parallelism": "pipeline.max-parallelism",
    "parameters": "pipeline.global-job-parameters",
    "without": "opchain.codegen.without",
}
