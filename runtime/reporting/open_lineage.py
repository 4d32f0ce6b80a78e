"""OpenLineage events: START when a job begins, RUNNING after each epoch, and COMPLETE, FAIL or ABORT at its end.

Inputs and outputs are the datasets of the job's connectors, named as OpenLineage's naming specification says. A
connector names its own in an attribute `datasets`, a tuple of pairs (namespace, name). Needs openlineage-python
(`pip install 'opchain[openlineage]'`).
"""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from opchain.runtime.errors import GraphError, imported
from opchain.runtime.job.client import JobStatus
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.reporting.reporting import Reporter

if TYPE_CHECKING:
    from opchain.runtime.epochs.epoch_progress import EpochProgress
    from opchain.runtime.program.vertex_program import JobProgram

FROM_ENVIRONMENT = "env"
PRODUCER = "https://pypi.org/project/opchain"
_ENDS = {
    JobStatus.FINISHED: "COMPLETE",
    JobStatus.FAILED: "FAIL",
    JobStatus.CANCELED: "ABORT",
}
_SINKS = (specs.SinkSpec, specs.SinkWriterSpec, specs.SinkCommitterSpec, specs.LegacySinkSpec)

Datasets = tuple[tuple[str, str], ...]


class OpenLineageReporter(Reporter):
    """Sends the events of one run.

    Args:
        url: The server's URL, or "env": as OPENLINEAGE_URL, OPENLINEAGE_CONFIG and openlineage.yml say.
        namespace: The namespace of the job.
        job: The job.
        is_streaming: Whether it is unbounded.

    Raises:
        MissingLibraryError: openlineage-python is not installed.
        GraphError: The URL is not one of a server.
    """

    def __init__(self, url: str, namespace: str, job: JobProgram, *, is_streaming: bool) -> None:
        client = _library("openlineage.client").OpenLineageClient
        if url != FROM_ENVIRONMENT:
            _require_server(url)
        transport = {"type": "http", "url": url}
        self._client = (
            client() if url == FROM_ENVIRONMENT else client(config={"transport": transport})
        )
        self._namespace = namespace
        self._job = job
        self._is_streaming = is_streaming
        self._run_id = str(uuid.uuid4())
        self._inputs, self._outputs = datasets_of(job)
        self._checkpoints = 0
        self._records_out = 0

    def started(self) -> None:
        """START."""
        self._emit("START")

    def epoch(self, progress: EpochProgress) -> None:
        """RUNNING."""
        self._checkpoints += 1
        self._records_out += progress.records_out
        self._emit("RUNNING")

    def ended(self, status: JobStatus, error: BaseException | None) -> None:
        """COMPLETE, FAIL or ABORT."""
        self._emit(_ENDS.get(status, "OTHER"), error)

    def close(self) -> None:
        """Waits for events that are being sent."""
        self._client.close(timeout=5.0)

    def _emit(self, kind: str, error: BaseException | None = None) -> None:
        events = _library("openlineage.client.event_v2")
        self._client.emit(
            events.RunEvent(
                eventType=getattr(events.RunState, kind),
                eventTime=datetime.now(timezone.utc).isoformat(),
                producer=PRODUCER,
                run=events.Run(self._run_id, self._run_facets(error)),
                job=events.Job(self._namespace, self._job.job_name, self._job_facets()),
                inputs=[events.InputDataset(*each) for each in self._inputs],
                outputs=[
                    events.OutputDataset(*each, outputFacets=self._output_facets())
                    for each in self._outputs
                ],
            )
        )

    def _job_facets(self) -> dict[str, Any]:
        facet = _library("openlineage.client.facet_v2").job_type_job.JobTypeJobFacet
        kind = "STREAMING" if self._is_streaming else "BATCH"
        return {"jobType": facet(processingType=kind, integration="OPCHAIN", jobType="JOB")}

    def _run_facets(self, error: BaseException | None) -> dict[str, Any]:
        facets = _library("openlineage.client.facet_v2")
        found: dict[str, Any] = {
            "processing_engine": facets.processing_engine_run.ProcessingEngineRunFacet(
                version=_version("opchain"),
                name="opchain",
                openlineageAdapterVersion=_version("openlineage-python"),
            )
        }
        if error is not None:
            found["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(
                message=f"{type(error).__name__}: {error}", programmingLanguage="python"
            )
        return found

    def _output_facets(self) -> dict[str, Any]:
        """The number of records, which is known only if the job has one output."""
        if len(self._outputs) != 1 or not self._checkpoints:
            return {}
        facets = _library("openlineage.client.facet_v2").output_statistics_output_dataset
        return {
            "outputStatistics": facets.OutputStatisticsOutputDatasetFacet(
                rowCount=self._records_out
            )
        }


def datasets_of(job: JobProgram) -> tuple[Datasets, Datasets]:
    """The datasets that a job reads and writes, each once, in the order of the plan."""
    inputs: dict[tuple[str, str], None] = {}
    outputs: dict[tuple[str, str], None] = {}
    for operator in job.operators:
        spec = operator.spec
        for name in ("source", "sink", "function"):
            found = getattr(getattr(spec, name, None), "datasets", ())
            (outputs if isinstance(spec, _SINKS) else inputs).update(dict.fromkeys(found))
    return tuple(inputs), tuple(outputs)


def _require_server(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number, or the brackets of an address are wrong
        is_server = False
    if not is_server:
        raise GraphError(
            f"opchain.openlineage.url is {url!r}; it must be the URL of a server, such as http://marquez:5000, or "
            f"'{FROM_ENVIRONMENT}' for the server of OPENLINEAGE_URL or openlineage.yml"
        )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # opchain from its sources
        return "unknown"


def _library(name: str) -> Any:
    return imported(name, "openlineage", "OpenLineage")
