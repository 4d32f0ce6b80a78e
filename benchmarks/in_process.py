"""Shared by the benchmarks in one process: runs programs and hand-written loops, and measures their CPU time."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import PARALLELISM
from benchmarks.tally import Tally, tally_of
from opchain.common import WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.runtime.local.job import run_in_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain import DataStream, StreamExecutionEnvironment

BATCH = 4096
"""Records per pickle between two partitions."""


def lines(env: StreamExecutionEnvironment, paths: Sequence[str | Path]) -> DataStream[str]:
    """A stream of the lines of text files."""
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), *map(str, paths)
    ).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")


def job_of(results: DataStream[Any], folder: str, field: Any) -> Any:
    """Compiles the program that tallies a stream."""
    results.flat_map(Tally(folder, field)).print()
    job = compile_program(results.get_execution_environment().program()).job_program
    assert job is not None
    return job


def run(job: Any, folder: str) -> tuple[int, ...]:
    """Runs a job that tallies its results; returns their number and sum."""
    run_in_process(job)
    return tally_of(folder)


def exchanged(parts: Iterable[Iterable[Any]], key: Callable[[Any], Any]) -> Iterator[Iterator[Any]]:
    """The records of each partition after an exchange by key."""
    received: list[list[bytes]] = [[] for _ in range(PARALLELISM)]
    for part in parts:
        buffers: list[list[Any]] = [[] for _ in range(PARALLELISM)]
        for record in part:
            partition = hash(key(record)) % PARALLELISM
            buffer = buffers[partition]
            buffer.append(record)
            if len(buffer) >= BATCH:
                received[partition].append(pickle.dumps(buffer, 5))
                buffers[partition] = []
        for blobs, buffer in zip(received, buffers, strict=True):
            blobs.append(pickle.dumps(buffer, 5))
    for blobs in received:
        yield (record for blob in blobs for record in pickle.loads(blob))


def read(paths: Sequence[str | Path]) -> Iterator[Iterator[str]]:
    """The lines of each file."""
    for path in paths:
        with Path(path).open(encoding="utf-8") as text:
            yield text


def measured(work: Callable[[], tuple[int, ...]]) -> tuple[float, tuple[int, ...]]:
    """Runs `work`; returns its CPU seconds and its result."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result
