from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import pytest

from opchain import StreamExecutionEnvironment
from opchain.compiler.graph.plan import Plan, Program
from opchain.compiler.interception import (
    capturing,
    configuring,
    environment_made,
    job_intercepted,
    job_started,
    watching_environments,
    watching_jobs,
)
from opchain.compiler.settings.job_settings import JobSettings

if TYPE_CHECKING:
    from opchain import Configuration
    from opchain.compiler.graph.transformation import Transformation
    from opchain.runtime.job.run import JobRun


def program(name: str, operators: int = 1) -> Program:
    drawn = tuple(cast("Transformation", object()) for _ in range(operators))
    return Program(drawn, JobSettings(job_name=name), next_id=operators + 1)


class Environment:
    def __init__(self, registered: Program) -> None:
        self.registered = registered
        self.executed_in_parts: set[Transformation] = set()
        environment_made(self)

    def program(self) -> Program:
        return self.registered

    def get_configuration(self) -> Configuration:
        raise AssertionError("nothing is to be configured")


def test_without_capturing_a_job_runs() -> None:
    assert not job_intercepted(program("real"), "execute")


def test_jobs_are_captured_in_the_order_of_their_execution_with_their_line() -> None:
    with capturing() as capture:
        assert job_intercepted(program("first"), "execute")
        assert job_intercepted(program("second"), "execute_async")
    assert [(job.job_name, job.method) for job in capture.jobs] == [
        ("first", "execute"),
        ("second", "execute_async"),
    ]
    first, second = (job.call_site for job in capture.jobs)
    assert str(first).startswith("test_interception.py:")
    assert second.line == first.line + 1


def test_nothing_is_captured_after_the_block_even_if_it_fails() -> None:
    with pytest.raises(KeyError), capturing():
        raise KeyError
    assert not job_intercepted(program("real"), "execute")


def test_the_innermost_block_takes_the_job() -> None:
    with capturing() as outer:
        with capturing() as inner:
            job_intercepted(program("inner"), "execute")
        job_intercepted(program("outer"), "execute")
    assert [job.job_name for job in inner.jobs] == ["inner"]
    assert [job.job_name for job in outer.jobs] == ["outer"]


def test_configuring_sets_keys_of_new_environments_only_within_the_block() -> None:
    with configuring({"parallelism.default": "3"}), configuring({"pipeline.name": "mine"}):
        inside = StreamExecutionEnvironment.get_execution_environment()
    outside = StreamExecutionEnvironment.get_execution_environment()
    assert inside.program().settings.job_name == "mine"
    assert (inside.get_parallelism(), outside.get_parallelism()) == (3, 1)


def test_settings_of_the_program_override_those_of_configuring() -> None:
    with configuring({"parallelism.default": "3"}):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(5)
    assert env.program().settings.parallelism == 5


def test_a_job_executed_from_a_thread_is_captured() -> None:
    with capturing() as capture:
        thread = threading.Thread(target=job_intercepted, args=(program("threaded"), "execute"))
        thread.start()
        thread.join()
    assert [job.job_name for job in capture.jobs] == ["threaded"]


def test_never_executed_lists_environments_until_they_execute() -> None:
    with capturing() as capture:
        Environment(program("empty", operators=0))
        Environment(program("drawn", operators=2))
    drawn = capture.never_executed()
    assert [job.job_name for job in drawn] == ["drawn"]
    assert str(drawn[0].call_site).startswith("test_interception.py:")


def test_watching_jobs_sees_only_jobs_of_its_block() -> None:
    run, plan = cast("JobRun", object()), Plan(program("planned", operators=1))
    job_started("before", run, plan)
    with watching_jobs() as outer:
        job_started("first", run, plan)
        with watching_jobs() as inner:
            job_started("second", run, plan)
        job_started("third", run, plan)
    job_started("behind", run, plan)
    assert [job.name for job in outer] == ["first", "second", "third"]
    assert [job.name for job in inner] == ["second"]
    assert inner[0].run is run
    assert inner[0].plan is plan


def test_watching_environments_sees_only_environments_of_its_block() -> None:
    with watching_environments() as outer:
        Environment(program("drawn", operators=2))
        with watching_environments() as inner:
            Environment(program("later", operators=1))
    Environment(program("behind", operators=1))
    assert [left.job_name for left in outer.never_executed()] == ["drawn", "later"]
    assert [left.job_name for left in inner.never_executed()] == ["later"]
