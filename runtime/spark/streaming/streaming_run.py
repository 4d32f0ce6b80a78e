"""An unbounded job on the active session, and the client that watches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.job.dependencies import NO_DEPENDENCIES
from opchain.runtime.job.run import JobRun
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.spark.streaming.streaming_job import StreamingJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.runtime.epochs.epoch_history import EpochListener
    from opchain.runtime.job.dependencies import JobDependencies
    from opchain.runtime.job.slot_resources import SlotResources
    from opchain.runtime.spark.streaming.settings import StreamingSettings
    from opchain.runtime.task.vertex_program import JobProgram


class StreamingRun(JobRun):
    """The run of an unbounded job: what its sinks collect can be read while it goes on."""

    def __init__(self, streaming: StreamingJob) -> None:
        super().__init__(
            streaming.run,
            streaming.cancel,
            waits_for_others=True,
            name=streaming.job.job_name,
            history=streaming.history,
        )
        self._records = streaming.records

    def collected(self, sink_uid: str) -> Iterator[Any]:
        """The records of a collecting sink as they come; behind the last of a job that failed, its error."""
        yield from self._records.read(sink_uid)
        self._outcome.result()


def streaming_run(
    job: JobProgram,
    settings: StreamingSettings,
    dependencies: JobDependencies = NO_DEPENDENCIES,
    resources: Sequence[SlotResources | None] = (),
    listeners: Iterable[EpochListener] = (),
) -> JobRun:
    """The run of an unbounded job on the active session, or a new one.

    Args:
        job: The job.
        settings: How it runs.
        dependencies: The files that it needs.
        resources: What a slot of each vertex needs, None where nothing was said; empty for no resources.
        listeners: Who hears of each epoch.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
        UnsupportedFeatureError: A source can't be read epoch by epoch.
        SparkUnavailableError: There is no Spark to run on.
        OSError: The progress log can't be written.
    """
    shipped = ship_vertices(job)
    session = active_or_new_session()
    streaming = StreamingJob(
        session, job, shipped, settings, dependencies, resources, listeners=listeners
    )
    return StreamingRun(streaming)
