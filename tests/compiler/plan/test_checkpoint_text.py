"""Checkpoints and restores as text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from opchain import StreamExecutionEnvironment
from opchain.common import WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.checkpoint_text import (
    checkpoint_text,
    listing,
    program_operators,
    restore_text,
)
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.model import JobPlan, to_json
from opchain.runtime.checkpoint.metadata import (
    NO_INPUT,
    CheckpointMetadata,
    Committable,
    EpochInput,
    OperatorMetadata,
    StateDescription,
    StoredSource,
    TaskMetadata,
)
from opchain.runtime.checkpoint.restore_plan import plan_restore
from opchain.runtime.checkpoint.state_files import TaskState
from opchain.runtime.checkpoint.storage import StoredFile
from opchain.runtime.connectors.data_generator import DataGeneratorSource


def plan_of(uid: str | None = "sums", parallelism: int = 2, **settings: Any) -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    numbers = env.from_sequence(1, 9).uid("numbers")
    sums = numbers.key_by(lambda value: value % 3).reduce(lambda a, b: a + b).name("sums")
    if uid is not None:
        sums.uid(uid)
    for name, value in settings.items():
        getattr(sums, name)(value)
    sums.print()
    return job_plan(compile_program(env.program(), "job-graph"))


def checkpoint_of(plan: JobPlan, *, with_plan: bool = False) -> CheckpointMetadata:
    stateful = [operator for operator in plan.operators if operator.state is not None]
    operators = []
    tasks = []
    for operator in stateful:
        first = len(tasks)
        operators.append(
            OperatorMetadata(
                operator.id,
                operator.name,
                operator.call_site,
                first,
                operator.parallelism,
                128,
                operator.uid,
                is_keyed=bool(operator.keys),
                states=(StateDescription("_op_state", "table"),) if operator.keys else (),
            )
        )
        for subtask in range(operator.parallelism):
            file = StoredFile(f"shared/7/{len(tasks)}.state", 1500, "")
            state = TaskState(len(tasks), 7, (file,), (operator.id,))
            tasks.append(TaskMetadata(len(tasks), operator.id, subtask, state))
    return CheckpointMetadata(
        7,
        1_700_000_000_000,
        "clicks",
        "run-1",
        tuple(operators),
        tuple(tasks),
        EpochInput(
            6,
            1_700_000_000_012,
            unbounded=(StoredSource("a" * 32, "DataFrame", "'Source: rows' (clicks.py:7)"),),
            bounded=WORDS_READ.bounded,
        ),
        (Committable("c" * 32, 0, b""),),
        json.loads(to_json(plan)) if with_plan else None,
    )


WORDS_READ = EpochInput(
    bounded=(StoredSource("b" * 32, "bounded", "'Source: words' (clicks.py:8)"),)
)


def text_of(
    before: JobPlan,
    after: JobPlan,
    *,
    allow: bool = False,
    with_plan: bool = False,
    epoch_input: EpochInput = NO_INPUT,
) -> str:
    metadata = replace(checkpoint_of(before, with_plan=with_plan), input=epoch_input)
    restore = plan_restore(metadata, program_operators(after))
    return restore_text(restore, after, allow_non_restored_state=allow)


def test_a_checkpoint_is_listed_in_one_line() -> None:
    line = "checkpoint 7  2023-11-14 22:13:20 UTC  2 operators  4 tasks  4 files  5.9 KiB\n"
    assert listing([checkpoint_of(plan_of())]) == line


def test_checkpoint_text_describes_operators_state_and_positions() -> None:
    text = checkpoint_text(checkpoint_of(plan_of()))
    assert "job 'clicks', run run-1\n" in text
    assert "operator 'sums' (test_checkpoint_text.py:" in text
    assert "uid 'sums', id " in text
    assert "  2 tasks, 128 key groups, 2 files with 2.9 KiB\n  state  _op_state  table" in text
    positions = "micro-batch 6 of Spark\nprocessing time 2023-11-14 22:13:20.012 UTC\n"
    positions += f"source 0 of Spark's log: 'Source: rows' (clicks.py:7) (id {'a' * 32})\n"
    positions += f"bounded source, read: 'Source: words' (clicks.py:8) (id {'b' * 32})\n"
    assert f"{positions}1 committable" in text


def test_checkpoint_text_has_the_next_processing_time_timer() -> None:
    metadata = replace(checkpoint_of(plan_of()), input=EpochInput(next_timer_ms=1_700_000_000_000))
    assert "next timer of processing time 2023-11-14 22:13:20.000 UTC\n" in checkpoint_text(
        metadata
    )


def test_the_same_program_can_start_from_its_checkpoint() -> None:
    text = text_of(plan_of(), plan_of())
    assert text.count("restored  ") == 2
    assert text.endswith("the program can start from this checkpoint\n")
    assert "->" not in text


def test_checkpoint_diff_names_a_changed_parallelism() -> None:
    assert ", 2 -> 4 tasks\n" in text_of(plan_of(), plan_of(parallelism=4))


def test_a_changed_uid_loses_state_unless_non_restored_state_is_allowed() -> None:
    text = text_of(plan_of(), plan_of("totals"))
    assert "new       'sums' (test_checkpoint_text.py:" in text
    assert "dropped   the state of 'sums'" in text
    assert text.endswith(
        "the program can't start from this checkpoint\n"
        "  --allow-non-restored-state would discard the state that no operator claims\n"
    )
    allowed = text_of(plan_of(), plan_of("totals"), allow=True)
    assert allowed.endswith("the program can start from this checkpoint\n")


def test_checkpoint_diff_explains_lost_state_with_the_stored_plan() -> None:
    text = text_of(plan_of(), plan_of("totals"), with_plan=True)
    joined = " ".join(text.split())
    assert "note keyed state of 'sums' would not be found: its operator id changed" in joined
    assert "uid('sums') again" in joined


def test_set_uid_hash_finds_state_after_a_changed_uid() -> None:
    before = plan_of()
    stored = next(operator.id for operator in before.operators if operator.name == "sums")
    assert "restored  'sums'" in text_of(before, plan_of("totals", set_uid_hash=stored.upper()))


def test_a_changed_max_parallelism_of_keyed_state_is_refused() -> None:
    text = text_of(plan_of(), plan_of(set_max_parallelism=64))
    assert "refused   keyed state of 'sums'" in text
    assert "stored in 128 key groups" in " ".join(text.split())
    assert text.endswith("the program can't start from this checkpoint\n")


def test_operators_take_the_max_parallelism_of_their_vertex() -> None:
    operators = {operator.name: operator for operator in program_operators(plan_of())}
    assert operators["sums"].max_parallelism is None
    operators = {
        operator.name: operator for operator in program_operators(plan_of(set_max_parallelism=64))
    }
    assert operators["sums"].max_parallelism == 64
    assert operators["sums"].uid == "sums"


def test_checkpoint_text_names_savepoints() -> None:
    metadata = replace(checkpoint_of(plan_of()), kind="savepoint")
    assert listing([metadata]).startswith("savepoint 7  ")


def sources_plan(*uids: str) -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment()
    for uid in uids:
        source = DataGeneratorSource(lambda number: number)
        env.from_source(source, WatermarkStrategy.no_watermarks(), uid).uid(uid).print()
    return job_plan(compile_program(env.program(), "job-graph"))


def test_a_new_unbounded_source_that_sparks_log_lacks_is_refused() -> None:
    before = sources_plan("a", "b")
    stored = sorted(
        (
            StoredSource(operator.id, operator.source, f"'{operator.name}' (clicks.py:7)")
            for operator in before.operators
            if operator.source is not None
        ),
        key=lambda source: source.operator_id,
    )
    read = EpochInput(6, unbounded=tuple(stored))
    same = text_of(before, sources_plan("b", "a"), epoch_input=read)
    assert same.endswith("the program can start from this checkpoint\n")
    for now, told in ((("a", "b", "c"), "'Source: c' "), (("a",), "'Source: b' ")):
        text = text_of(before, sources_plan(*now), epoch_input=read, allow=True)
        assert "refused   its unbounded sources have changed" in text
        assert told in " ".join(text.split())
        assert text.endswith("the program can't start from this checkpoint\n")


def test_checkpoint_diff_names_bounded_sources_that_would_be_read_again() -> None:
    text = text_of(plan_of(), plan_of(), epoch_input=WORDS_READ)
    assert "reread    bounded source 'Source: words' (clicks.py:8) has been read" in text
    assert text.endswith(
        "the program can't start from this checkpoint\n"
        "  --allow-non-restored-state would let sources be read again\n"
    )
    allowed = text_of(plan_of(), plan_of(), epoch_input=WORDS_READ, allow=True)
    assert allowed.endswith("the program can start from this checkpoint\n")


def test_sources_and_sinks_resume_without_files_of_state() -> None:
    unbounded, bounded = sources_plan("a"), plan_of()
    source, sink = unbounded.operators[0], unbounded.operators[-1]
    saved = replace(
        checkpoint_of(unbounded),
        operators=(),
        tasks=(),
        input=EpochInput(
            unbounded=(StoredSource(source.id, "positions", "'Source: a' (clicks.py:7)"),)
        ),
        committables=(Committable(sink.id, 0, b""),),
    )

    def text(plan: JobPlan, metadata: CheckpointMetadata) -> str:
        restore = plan_restore(metadata, program_operators(plan))
        return restore_text(restore, plan, allow_non_restored_state=False)

    lines = text(unbounded, saved).splitlines()
    assert [line.partition(" (")[0] for line in lines[:2]] == [
        "restored  'Source: a'",
        "restored  'Sink: Print to Std. Out'",
    ]
    assert lines[0].endswith(" from its position")
    assert lines[1].endswith(" commits what the checkpoint holds")
    refused = replace(plan_restore(saved, program_operators(unbounded)), refused=("a state",))
    said = restore_text(refused, unbounded, allow_non_restored_state=False)
    assert said.splitlines()[:2] == text(unbounded, saved).splitlines()[:2]
    read = EpochInput(
        bounded=(StoredSource(bounded.operators[0].id, "bounded", "'Source: numbers'"),)
    )
    lines = text(bounded, replace(saved, input=read, committables=())).splitlines()
    assert lines[0].endswith(" has been read to its end")
    assert lines[1].startswith("new       'sums' ")
