"""StreamExecutionEnvironment: where a program starts, and from where it runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from opchain.compiler import interception
from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.dsl.environment_sources import EnvironmentSources
from opchain.compiler.interception import CapturedJobClient
from opchain.runtime.errors import GraphError
from opchain.runtime.java_objects import no_java_attribute

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from opchain.compiler.dsl.collected import CloseableIterator
    from opchain.compiler.graph.job_graph import JobGraph
    from opchain.compiler.graph.plan import Program
    from opchain.compiler.graph.stream_graph import StreamGraph
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.plan.page.render import ShownPlan, ShownText
    from opchain.runtime.configuration.configuration import Configuration
    from opchain.runtime.epochs.epoch_history import EpochListener
    from opchain.runtime.job.client import JobClient
    from opchain.runtime.job.execution_result import JobExecutionResult


class StreamExecutionEnvironment(EnvironmentSources):
    """The context of a program: its settings, its sources, and what was drawn so far.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.from_collection(["a", "b"]).map(str.upper).print()
    >>> [transformation.name for transformation in env.get_transformations()]
    ['Map', 'Print to Std. Out']
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__(configuration)
        self._has_run = False
        self._collecting: list[CloseableIterator[Any]] = []
        self._epoch_listeners: list[EpochListener] = []
        interception.environment_made(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_j_"):
                raise no_java_attribute(self, name)
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """A new environment with these settings. Where it runs is decided when it is executed."""
        return StreamExecutionEnvironment(configuration)

    def register_collect_iterator(self, iterator: CloseableIterator[Any]) -> None:
        """Remembers an iterator that reads records of the next job. Flink: the same method."""
        self._collecting.append(iterator)

    def add_epoch_listener(self, listener: EpochListener) -> None:
        """Calls a function with the EpochProgress of each epoch of the unbounded jobs that are run from here.

        It runs on the driver once the epoch's sinks have committed, and the next epoch waits for it; what
        it raises is logged. Ours alone; the job client has `last_progress` and `recent_progress`, and Spark's
        own StreamingQueryListeners hear of the query whose name begins with the job's.
        """
        if not callable(listener):
            raise TypeError(f"add_epoch_listener() takes a function, not {listener!r}")
        self._epoch_listeners.append(listener)

    def detached_program(self, end: Transformation) -> Program:
        """The program that leads to a transformation; what leads to nothing else is drawn no more."""
        program = replace(self.program(), transformations=(end,))
        behind, stack = set(), [end]
        while stack:
            transformation = stack.pop()
            if transformation not in behind:
                behind.add(transformation)
                stack += transformation.inputs
        self._transformations[:] = [each for each in self._transformations if each not in behind]
        return program

    def program(self, job_name: str | None = None) -> Program:
        """What is registered now, with the settings, as the compiler takes it."""
        from opchain.compiler.graph.plan import Program  # noqa: PLC0415 - drawing needs no compiler
        from opchain.compiler.settings.settings_reader import read_settings  # noqa: PLC0415

        settings = read_settings(self._configuration)
        fixed: dict[str, Any] = {"parallelism": self.get_parallelism()}
        if job_name is not None:
            fixed["job_name"] = checked(job_name, str, "execute", "the job's name")
        return Program(
            transformations=tuple(self._transformations),
            settings=settings.model_copy(update=fixed),
            next_id=self._last_id + 1,
            slot_group_resources=dict(self._slot_sharing_groups),
            cached_files=tuple(self._cached_files.values()),
            epoch_listeners=tuple(self._epoch_listeners),
        )

    @overload
    def explain(self, stage: Literal["job-graph"] = "job-graph") -> ShownPlan: ...

    @overload
    def explain(self, stage: str) -> ShownText: ...

    def explain(self, stage: str = "job-graph") -> ShownText:
        """The program as text, at one stage of its way.

        A notebook shows the job graph as a page to click through; `env.explain().page()` is that page
        as HTML, and `with_numbers(result.metrics)` adds what a job has counted.

        Args:
            stage: `stream-graph`, `job-graph`, `execution` or `generated`.
        """
        from opchain.compiler.plan.explain import explain  # noqa: PLC0415 - as for program()
        from opchain.compiler.plan.page.render import shown  # noqa: PLC0415

        program = self.program()
        return shown(explain(program, stage), stage, program)

    def get_execution_plan(self) -> str:
        """The program as Flink's JSON plan of its operators, which Flink's plan visualizer reads.

        The plan of what they are chained to is `opchain plan --format flink-json`.
        """
        from opchain.compiler.plan.flink_json import streaming_plan  # noqa: PLC0415 - as for program()

        return json.dumps(streaming_plan(self.get_stream_graph()), indent=2)

    def get_stream_graph(self) -> StreamGraph:
        """The operators and edges of the program, before chaining; `to_networkx()` gives a plain graph.

        The environment keeps what was drawn. PyFlink has no such call; Java's is `getStreamGraph(false)`.
        """
        from opchain.compiler.graph.plan import made  # noqa: PLC0415 - as for program()
        from opchain.compiler.passes.pipeline import compile_program  # noqa: PLC0415

        return made(compile_program(self.program(), "stream-graph").stream_graph)

    def get_job_graph(self) -> JobGraph:
        """The vertices and edges that the program compiles to; `to_networkx()` gives a plain graph.

        The environment keeps what was drawn. PyFlink has no such call; Java's is `getStreamGraph(false).getJobGraph()`.
        """
        from opchain.compiler.graph.plan import made  # noqa: PLC0415 - as for program()
        from opchain.compiler.passes.pipeline import compile_program  # noqa: PLC0415

        return made(compile_program(self.program(), "job-graph").job_graph)

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs what was drawn, and waits for its end.

        As in Flink the environment is empty afterwards: what is drawn next is a new job.
        """
        client = self._submitted(job_name, "execute", wait=True)
        return client.get_job_execution_result().result()

    def execute_async(self, job_name: str = "Flink Streaming Job") -> JobClient:
        """Starts what was drawn, and hands back a client to watch it, cancel it or wait for it."""
        return self._submitted(job_name, "execute_async")

    def close(self) -> None:
        """Does nothing: an environment holds no resources. Flink drops cached streams here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _submitted(self, job_name: str | None, method: str, *, wait: bool = False) -> JobClient:
        if not self._transformations:
            drawn = "nothing was drawn since the last execute()" if self._has_run else "it is empty"
            raise GraphError(
                f"{at_call(method)}: there is nothing to run, {drawn}; add an operator or a sink "
                "first (a source alone does nothing)"
            )
        program = self.program(job_name)
        self._transformations.clear()
        self._has_run = True
        client = self._started(program, method, wait=wait)
        for iterator in self._collecting:
            iterator.attach(client)
        self._collecting.clear()
        return client

    def _started(self, program: Program, method: str, *, wait: bool) -> JobClient:
        if interception.job_intercepted(program, method):
            return CapturedJobClient()
        from opchain.compiler.execution import submit  # noqa: PLC0415 - drawing runs nothing

        return submit(program, wait=wait)
