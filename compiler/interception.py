"""Captures the jobs of a program instead of running them (`opchain plan FILE`), or watches them run (`opchain run FILE`).

An environment reports its creation, and each job that the user executes. In a normal run there is no listener, and a
report only reads a module variable. Four blocks listen:

- `capturing()` collects jobs and runs none of them, so a plan needs neither Spark nor changes to the program.
- `configuring(...)` gives new environments settings from the command line.
- `watching_jobs()` collects jobs that run.
- `watching_environments()` collects environments whose jobs run.

The environment must do this:

- `StreamExecutionEnvironment.__init__` calls `environment_made(self)`.
- `execute`, `execute_async` and `execute_and_collect` build the program as for a real run: job name, collecting sink,
  and clearing of the transformations. Then they call `job_intercepted(program, "execute")` with their own name. If it
  returns True, they return the result of a job that took 0 ms and gave no records. The program continues, and may
  execute another job.
- `program()` returns the current transformations, which may be none, and changes nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from opchain.compiler.graph.transformation import CallSite, user_call_site
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.client import (
    CompletableFuture,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opchain.compiler.graph.plan import Plan, Program
    from opchain.compiler.graph.transformation import Transformation
    from opchain.runtime.configuration.configuration import Configuration
    from opchain.runtime.job.run import JobRun
    from opchain.runtime.types.type_variables import T


class Environment(Protocol):
    """The part of an environment that a capture uses."""

    def program(self) -> Program:
        """The current transformations and settings."""

    def get_configuration(self) -> Configuration:
        """The settings, which can be changed."""

    @property
    def executed_in_parts(self) -> set[Transformation]:
        """The transformations that ran as a part of the program, such as an INSERT, and what is upstream of them."""


@dataclass(frozen=True, slots=True)
class CapturedJob:
    """A job that the program executed by calling `method` at `call_site`."""

    program: Program
    method: str
    call_site: CallSite

    @property
    def job_name(self) -> str | None:
        """The name from the program, or from the configuration; None without a name."""
        return self.program.settings.job_name


@dataclass(slots=True, eq=False)
class Capture:
    """The jobs in the order of execution, and the environments in the order of creation."""

    jobs: list[CapturedJob] = field(default_factory=list)
    environments: list[tuple[Environment, CallSite]] = field(default_factory=list)

    def never_executed(self) -> list[CapturedJob]:
        """The transformations that were not executed, including those after the last `execute()`."""
        left = []
        for environment, call_site in self.environments:
            program = environment.program()
            transformations = tuple(
                each
                for each in program.transformations
                if each not in environment.executed_in_parts
            )
            if transformations:
                program = replace(program, transformations=transformations)
                left.append(CapturedJob(program, "nothing", call_site))
        return left


# A module variable and not a ContextVar: a program may execute its job from a thread of its own,
# and a thread starts with an empty context.
_captures: list[Capture] = []


@contextmanager
def _added(stack: list[T], item: T) -> Iterator[T]:
    stack.append(item)
    try:
        yield item
    finally:
        stack.pop()


def capturing() -> AbstractContextManager[Capture]:
    """Within the block jobs are captured, not run. Of nested blocks the innermost one captures."""
    return _added(_captures, Capture())


_configurations: list[Mapping[str, str]] = []


def configuring(values: Mapping[str, str]) -> AbstractContextManager[Mapping[str, str]]:
    """Within the block environments start with these configuration values.

    They override values that the program passes to the constructor. Later calls of the program override them.
    """
    return _added(_configurations, values)


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that was started, and its compiled plan."""

    name: str
    run: JobRun
    plan: Plan


_watchers: list[list[StartedJob]] = []


def watching_jobs() -> AbstractContextManager[list[StartedJob]]:
    """Within the block each job that is started is added to the list."""
    return _added(_watchers, [])


_drawing: list[Capture] = []


def watching_environments() -> AbstractContextManager[Capture]:
    """Collects the environments that are made within the block. Their jobs run as usual, and are not captured."""
    return _added(_drawing, Capture())


def job_started(name: str, run: JobRun, plan: Plan) -> None:
    """Notifies all watchers; called right before the job runs."""
    for started in _watchers:
        started.append(StartedJob(name, run, plan))


def environment_made(environment: Environment) -> None:
    """Configures a new environment, and adds it to the capture, if there is one."""
    for values in _configurations:
        for key, value in values.items():
            environment.get_configuration().set_string(key, value)
    for made in (*_captures[-1:], *_drawing):
        made.environments.append((environment, user_call_site()))


def is_capturing() -> bool:
    """Whether jobs are captured, not run."""
    return bool(_captures)


def job_intercepted(program: Program, method: str) -> bool:
    """Whether the job was captured, so that the caller must not run it."""
    if not _captures:
        return False
    _captures[-1].jobs.append(CapturedJob(program, method, user_call_site()))
    return True


_NO_JOB = JobID("0" * 32)


class CapturedJobClient(JobClient):
    """The client of a captured job. The job ran 0 ms and gave no records, so the program continues."""

    def get_job_id(self) -> JobID:
        """An id of zeros."""
        return _NO_JOB

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """FINISHED."""
        return CompletableFuture.completed(JobStatus.FINISHED)

    def cancel(self) -> CompletableFuture[None]:
        """Does nothing."""
        return CompletableFuture.completed(None)

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,  # noqa: ARG002 - the contract
        savepoint_directory: str | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Refused: there is no state."""
        self._refuse("stop_with_savepoint")

    def trigger_savepoint(
        self,
        savepoint_directory: str | None = None,  # noqa: ARG002 - the contract
    ) -> NoReturn:
        """Refused: there is no state."""
        self._refuse("trigger_savepoint")

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """None."""
        return CompletableFuture.completed({})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result of 0 ms."""
        return CompletableFuture.completed(JobExecutionResult(_NO_JOB, 0))

    def collected(self, sink_uid: str) -> Iterator[Any]:  # noqa: ARG002 - the contract
        """No records."""
        return iter(())

    def _refuse(self, call: str) -> NoReturn:
        raise UnsupportedFeatureError(
            f"{call}() needs a running job; this program is being planned, and its jobs do not run"
        )
