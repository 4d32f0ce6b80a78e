"""The errors of the passes; `phase` says how far the program came, in the words of Flink's layers.

Flink refuses with IllegalStateException, IllegalArgumentException or UnsupportedOperationException,
and the phase can only be seen in the stack trace.
"""

from __future__ import annotations

from typing import ClassVar

from opchain.runtime.errors import GraphError


class StreamGraphError(GraphError):
    """The transformations make no StreamGraph (Flink's `StreamGraphGenerator` refuses too)."""

    phase: ClassVar[str] = "stream_graph"


class JobGraphError(GraphError):
    """The StreamGraph makes no JobGraph (Flink's `StreamingJobGraphGenerator` refuses too)."""

    phase: ClassVar[str] = "job_graph"
