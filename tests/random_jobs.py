"""Random jobs as plain values: how to make them, how to draw them, and what must come out of them.

A `RandomJob` is a list of steps; each reads streams that earlier steps made and makes one or two more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from forms import seen
from hypothesis import strategies as st
from random_operators import FAILING, ONE_SUBTASK, OPERATORS, SOURCES, Record

if TYPE_CHECKING:
    from opchain.datastream import DataStream, StreamExecutionEnvironment

MOST_RECORDS = 1_500
PARTITIONERS = (
    *("as it comes", "forward", "rebalance", "rescale", "shuffle"),
    *("broadcast", "global", "custom", "hash"),
)


@dataclass(frozen=True)
class Step:
    """One operator; `inputs` are the numbers of the streams it reads, each with a partitioner."""

    kind: str
    inputs: tuple[tuple[int, str], ...]
    parallelism: int
    constant: int


@dataclass(frozen=True)
class RandomJob:
    """Steps, and the numbers of the streams that are seen, with the parallelism of their sinks.

    `failing` is an operator of FAILING behind the last stream, and its constant.
    """

    steps: tuple[Step, ...]
    sinks: tuple[tuple[int, int], ...]
    is_batch: bool
    failing: tuple[str, int] | None = None

    @property
    def keys(self) -> dict[str, Any]:
        """The settings that belong to the job."""
        return {"mode": "BATCH" if self.is_batch else "STREAMING"}


@dataclass(frozen=True)
class Modelled:
    """The records of a stream; `knows_times` is False where timestamps depend on the order."""

    records: list[Record]
    knows_times: bool
    parallelism: int


def modelled_step(step: Step, streams: list[Modelled], *, is_batch: bool) -> list[Modelled]:
    """The streams that a step makes of those before it."""
    if not step.inputs:
        _, time_of = SOURCES[step.kind]
        records = [(number, time_of(number)) for number in range(step.constant + 1)]
        return [Modelled(records, True, step.parallelism)]
    operator = OPERATORS[step.kind]
    arriving = [
        streams[number].records * (step.parallelism if partitioner == "broadcast" else 1)
        for number, partitioner in step.inputs
    ]
    knows_times = all(streams[number].knows_times for number, _ in step.inputs)
    if operator.times != "kept":
        knows_times = operator.times == "made" or is_batch
    return [
        Modelled(records, knows_times, step.parallelism)
        for records in operator.model(arriving, step.constant, is_batch)
    ]


def modelled(job: RandomJob) -> list[Modelled]:
    """All streams of a job."""
    streams: list[Modelled] = []
    for step in job.steps:
        streams += modelled_step(step, streams, is_batch=job.is_batch)
    return streams


def draw_job(job: RandomJob, env: StreamExecutionEnvironment) -> None:
    """Draws a job, with a sink `seen` for each of its sinks, named by number."""
    streams: list[DataStream[Any]] = []
    for step in job.steps:
        streams += _drawn_step(step, streams, env)
    for number, (stream, parallelism) in enumerate(job.sinks):
        sink = seen(streams[stream], str(number), reads_timestamps=reads_timestamps(number))
        sink.set_parallelism(parallelism)
    if job.failing is not None:
        kind, constant = job.failing
        drawn = FAILING[kind](streams[-1], constant).name("failing")
        seen(drawn.set_parallelism(job.steps[-1].parallelism), "failing")


def _drawn_step(
    step: Step, streams: list[DataStream[Any]], env: StreamExecutionEnvironment
) -> list[DataStream[Any]]:
    if not step.inputs:
        source = SOURCES[step.kind][0](env, step.constant)
        return [source if step.kind in ONE_SUBTASK else source.set_parallelism(step.parallelism)]
    inputs = [partitioned(streams[number], partitioner) for number, partitioner in step.inputs]
    drawn: list[DataStream[Any]] = OPERATORS[step.kind].draw(
        inputs, step.constant, lambda operator: operator.set_parallelism(step.parallelism)
    )
    return drawn


def partitioned(stream: DataStream[Any], partitioner: str) -> DataStream[Any]:
    """The stream with one of PARTITIONERS."""
    if partitioner == "as it comes":
        return stream
    if partitioner == "hash":
        return stream.key_by(lambda x: x % 11)
    if partitioner == "custom":
        return stream.partition_custom(lambda key, channels: key % channels, lambda x: x)
    method = "global_" if partitioner == "global" else partitioner
    partitioned: DataStream[Any] = getattr(stream, method)()
    return partitioned


def reads_timestamps(sink: int) -> bool:
    """Whether a sink looks at timestamps: every other one does."""
    return sink % 2 == 0


parallelisms = st.integers(1, 8)


@st.composite
def random_jobs(draw: st.DrawFn, most_steps: int = 7) -> RandomJob:
    """Jobs of one to three sources and up to `most_steps` operators, none with too many records."""
    is_batch = draw(st.booleans())
    steps: list[Step] = []
    streams: list[Modelled] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from([kind for kind in SOURCES if not (is_batch and kind == "function")])
        )
        parallelism = 1 if kind in ONE_SUBTASK else draw(parallelisms)
        steps.append(Step(kind, (), parallelism, draw(st.integers(0, 12))))
        streams += modelled_step(steps[-1], streams, is_batch=is_batch)
    for _ in range(draw(st.integers(1, most_steps))):
        step = draw(_steps(streams, is_batch=is_batch))
        made = modelled_step(step, streams, is_batch=is_batch)
        if max(len(stream.records) for stream in made) <= MOST_RECORDS:
            steps.append(step)
            streams += made
    read = {number for step in steps for number, _ in step.inputs}
    extra = draw(st.sets(st.integers(0, len(streams) - 1), max_size=2))
    ends = sorted({n for n in range(len(streams)) if n not in read} | extra)
    sinks = tuple((n, draw(st.sampled_from((1, 2, streams[n].parallelism)))) for n in ends)
    return RandomJob(tuple(steps), sinks, is_batch)


@st.composite
def failing_jobs(draw: st.DrawFn) -> RandomJob:
    """Jobs with an operator more, which fails at one of the records of the last stream."""
    job = draw(random_jobs(most_steps=4).filter(lambda job: bool(modelled(job)[-1].records)))
    value, _ = draw(st.sampled_from(modelled(job)[-1].records))
    return replace(job, failing=(draw(st.sampled_from(sorted(FAILING))), value))


@st.composite
def _steps(draw: st.DrawFn, streams: list[Modelled], *, is_batch: bool) -> Step:
    known = [n for n, stream in enumerate(streams) if stream.knows_times]
    kinds = [
        kind
        for kind, operator in OPERATORS.items()
        if (is_batch or not operator.only_batch) and (known or not operator.reads_times)
    ]
    kind = draw(st.sampled_from(kinds))
    count = OPERATORS[kind].inputs
    if kind == "union":
        count = draw(st.integers(2, count))
    readable = known if OPERATORS[kind].reads_times else range(len(streams))
    numbers = [draw(st.sampled_from(readable)) for _ in range(count)]
    # Mostly the parallelism of what is read, so that chains come about.
    own = streams[numbers[0]].parallelism
    parallelism = draw(st.one_of(st.just(own), parallelisms))
    inputs = []
    for number in numbers:
        allowed = [
            partitioner
            for partitioner in PARTITIONERS
            if (partitioner != "forward" or streams[number].parallelism == parallelism)
            # A keyed stream is not a leg of a union, and connects to another keyed stream.
            and (partitioner != "hash" or count == 1)
        ]
        inputs.append((number, draw(st.sampled_from(("as it comes", *allowed)))))
    if kind.startswith("co ") and draw(st.booleans()):
        inputs = [(number, "hash") for number, _ in inputs]
    return Step(kind, tuple(inputs), parallelism, draw(st.integers(1, 9)))
