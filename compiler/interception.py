"""Captures the jobs of a program instead of running them (`opchain plan FILE`), or watches them run (`opchain run FILE`).

The environment reports itself when it is made, and every job when the user executes it. Nobody
listens in a normal run, and both calls cost one look at a module variable. Inside `capturing()`
jobs are written down and never run, so that a plan needs no change to the program and no Spark.
Inside `configuring(...)` new environments start with settings from the command line. Inside
`watching_jobs()` the jobs that really run are written down, and inside `watching_environments()` the
environments they are drawn with.

The environment's side of the contract:

- `StreamExecutionEnvironment.__init__` calls `environment_made(self)`.
- `execute`, `execute_async` and `execute_and_collect` first build the program as they would for a
  real run (job name, collecting sink, clearing of the transformations, all of it), then call
  `job_intercepted(program, "execute")` with their own name. On True they hand back the result of a
  job that took 0 ms and gave no records: the program continues, and may execute another job.
- `program()` gives what is registered now, also if that is nothing, and changes nothing.

The client of a job that was captured instead of run: it ran 0 ms and gave no records.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
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
    from opchain.runtime.configuration.configuration import Configuration
    from opchain.runtime.types.type_variables import T


class Environment(Protocol):
    """What a capture asks of an environment."""

    def program(self) -> Program:
        """What is registered now."""

    def get_configuration(self) -> Configuration:
        """Its settings, which can be changed."""


@dataclass(frozen=True, slots=True)
class CapturedJob:
    """A job that the program asked for: `method` is what it called, at `call_site`."""

    program: Program
    method: str
    call_site: CallSite

    @property
    def job_name(self) -> str | None:
        """The name the program gave the job, or the configured one; None where there is neither."""
        return self.program.settings.job_name


@dataclass(slots=True, eq=False)
class Capture:
    """The jobs in the order of their execution, and the environments in the order of their making."""

    jobs: list[CapturedJob] = field(default_factory=list)
    environments: list[tuple[Environment, CallSite]] = field(default_factory=list)

    def never_executed(self) -> list[CapturedJob]:
        """The transformations that were not executed, including those after the last `execute()`."""
        drawn = ((env.program(), call_site) for env, call_site in self.environments)
        return [
            CapturedJob(program, "nothing", call_site)
            for program, call_site in drawn
            if program.transformations
        ]


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
    """Within the block jobs are captured, not run; the innermost block takes them."""
    return _added(_captures, Capture())


_configurations: list[Mapping[str, str]] = []


def configuring(values: Mapping[str, str]) -> AbstractContextManager[Mapping[str, str]]:
    """Within the block environments start with these configuration values.

    They come before what the program itself sets by calls, and after what it gives the constructor.
    """
    return _added(_configurations, values)


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that runs, or has run; `plan` is what was compiled for it."""

    name: str
    client: JobClient
    plan: Plan


_watchers: list[list[StartedJob]] = []


def watching_jobs() -> AbstractContextManager[list[StartedJob]]:
    """Within the block the list grows by each job that is started."""
    return _added(_watchers, [])


_drawing: list[Capture] = []


def watching_environments() -> AbstractContextManager[Capture]:
    """Collects the environments that are made within the block. Their jobs run as usual, and are not captured."""
    return _added(_drawing, Capture())


def job_started(name: str, client: JobClient, plan: Plan) -> None:
    """Notifies all watchers; called right before the job runs."""
    for started in _watchers:
        started.append(StartedJob(name, client, plan))


def environment_made(environment: Environment) -> None:
    """Configures a new environment, and tells the capture, each if there is one."""
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
    """Lets a captured program continue after `execute`, although nothing has run; see `interception`."""

    def get_job_id(self) -> JobID:
        """The id of no job: all zeros."""
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
