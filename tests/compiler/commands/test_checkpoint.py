"""The commands `checkpoint` and `savepoint`, on real files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planted import planted_pickle

from opchain.runtime.checkpoint.epoch_files import metadata_name
from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    Committable,
    OperatorMetadata,
    StateDescription,
    TaskMetadata,
    encode,
    read_metadata,
)
from opchain.runtime.checkpoint.state_files import write_task_state
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.state.operator_snapshot import OperatorSnapshot

PROGRAM = """
from opchain import StreamExecutionEnvironment

def build(env):
    numbers = env.from_sequence(1, 9).name("numbers").uid("numbers")
    sums = numbers.key_by(lambda value: value % 3).reduce(lambda a, b: a + b)
    sums.name("sums").uid("sums").set_parallelism(1).print()

if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    build(environment)
    environment.execute("clicks")
"""


@pytest.fixture
def place(write: Any, run: Any) -> str:
    """Two checkpoints of the program."""
    write(PROGRAM)
    plan = json.loads(run("plan", "clicks.py", "--format", "json").stdout)
    stored = {operator["name"]: operator for operator in plan["operators"]}
    storage = checkpoint_storage("checkpoints")
    for epoch in (1, 2):
        operators, tasks = [], []
        for task, name in enumerate(("Source: numbers", "sums")):
            operator = stored[name]
            snapshot = {operator["id"]: OperatorSnapshot({1: b"x" * 100})}
            state = write_task_state(storage, epoch, task, "0", snapshot)
            tasks.append(TaskMetadata(task, operator["id"], 0, state))
            operators.append(
                OperatorMetadata(
                    operator["id"],
                    operator["name"],
                    operator["call_site"],
                    task,
                    1,
                    128,
                    operator["uid"],
                    is_keyed=name == "sums",
                )
            )
        metadata = CheckpointMetadata(
            epoch, 0, "clicks", "run-1", tuple(operators), tuple(tasks), plan=plan
        )
        storage.publish(metadata_name(epoch), encode(metadata))
    return "checkpoints"


def test_checkpoint_ls_lists_checkpoints_by_id(place: str, run: Any, tmp_path: Path) -> None:
    done = run("checkpoint", "ls", place)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["checkpoint 1", "checkpoint 2"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "empty has no checkpoints" in run("checkpoint", "ls", empty).stderr
    none = run("checkpoint", "ls", tmp_path / "none")
    assert (none.exit_code, none.stdout) == (2, "")
    assert f"there is no folder {tmp_path}/none" in none.stderr


def test_checkpoint_show_prints_the_latest_or_a_given_checkpoint(place: str, run: Any) -> None:
    done = run("checkpoint", "show", place)
    assert done.stdout.startswith("checkpoint 2  1970-01-01 00:00:00 UTC")
    assert "operator 'sums' (clicks.py:6, uid 'sums', id " in done.stdout
    assert run("checkpoint", "show", f"{place}/chk-1").stdout.startswith("checkpoint 1")
    missing = run("checkpoint", "show", f"{place}/chk-9")
    assert missing.exit_code == 2
    assert "chk-9/_metadata is missing" in missing.stderr


def test_checkpoint_verify_checks_files_and_reports_damage(place: str, run: Any) -> None:
    done = run("checkpoint", "verify", place)
    assert done.exit_code == 0
    assert done.stdout.startswith("checkpoint 2: 2 files with ")
    path = next(Path(place, "shared/2").iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    broken = run("checkpoint", "verify", place)
    assert broken.exit_code == 1
    assert f"{path} has " in broken.stdout
    assert broken.stdout.endswith("checkpoint 2: 1 of 2 files can't be read\n")
    assert run("checkpoint", "verify", f"{place}/chk-1").exit_code == 0


def test_checkpoint_diff_compares_state_with_a_program(place: str, run: Any, write: Any) -> None:
    done = run("checkpoint", "diff", place, "clicks.py")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("restored  ") == 2
    write(PROGRAM.replace('uid("sums")', 'uid("totals")'), "other.py")
    lost = run("checkpoint", "diff", place, "other.py:build")
    assert lost.exit_code == 1
    assert "dropped   the state of 'sums'" in lost.stdout
    allowed = run("checkpoint", "diff", place, "other.py", "--allow-non-restored-state")
    assert allowed.exit_code == 0
    write(PROGRAM.replace('uid("sums")', 'uid("sums").set_max_parallelism(64)'), "other.py")
    refused = run("checkpoint", "diff", place, "other.py", "--allow-non-restored-state")
    assert refused.exit_code == 1
    assert "refused   keyed state of 'sums'" in refused.stdout
    assert run("checkpoint", "diff", place, "nothing.py").exit_code == 2


def test_checkpoint_diff_names_state_that_is_found_by_position(write: Any, run: Any) -> None:
    """The state of a program without uids, and the same program with one more operator ahead of it."""
    program = PROGRAM.replace('.uid("numbers")', "").replace('.uid("sums")', "")
    write(program)
    plan = json.loads(run("plan", "clicks.py", "--format", "json").stdout)
    sums = next(operator for operator in plan["operators"] if operator["name"] == "sums")
    storage = checkpoint_storage("checkpoints")
    state = write_task_state(storage, 1, 0, "0", {sums["id"]: OperatorSnapshot({1: b"x"})})
    operator = OperatorMetadata(
        sums["id"], "sums", sums["call_site"], 0, 1, 128, None, is_keyed=True
    )
    task = TaskMetadata(0, sums["id"], 0, state)
    metadata = CheckpointMetadata(1, 0, "clicks", "run-1", (operator,), (task,), plan=plan)
    storage.publish(metadata_name(1), encode(metadata))
    same = run("checkpoint", "diff", "checkpoints", "clicks.py")
    assert same.exit_code == 0
    assert "restored  'sums'" in same.stdout
    assert ", by position" in same.stdout
    assert "1 operator without uid is found by position" in " ".join(same.stdout.split())
    write(program.replace("numbers.key_by", "numbers.rebalance().map(abs).key_by"))
    moved = run("checkpoint", "diff", "checkpoints", "clicks.py")
    assert moved.exit_code == 1
    assert "which no operator matches by position" in " ".join(moved.stdout.split())
    assert f"set_uid_hash('{sums['id']}')" in moved.stdout


def test_savepoint_copies_a_checkpoint_to_a_new_folder(place: str, run: Any) -> None:
    done = run("savepoint", f"{place}/chk-1", "saved")
    assert done.exit_code == 0
    assert done.stdout.startswith("savepoint 1  ")
    assert run("checkpoint", "verify", "saved").stdout.startswith("savepoint 1: 2 files")
    again = run("savepoint", place, "saved")
    assert again.exit_code == 2
    assert "saved is not empty" in again.stderr


def test_a_program_file_is_refused_as_a_checkpoint(write: Any, run: Any) -> None:
    write()
    done = run("checkpoint", "verify", "clicks.py")
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "opchain: clicks.py has no checkpoint and is not a savepoint; pass"
    )


def test_checkpoint_ls_lists_intact_checkpoints_beside_a_damaged_one(place: str, run: Any) -> None:
    Path(place, "chk-1", "_metadata").write_text("nothing")
    done = run("checkpoint", "ls", place)
    assert done.exit_code == 2
    (line,) = done.stdout.splitlines()
    assert line.startswith("checkpoint 2  ")
    assert "chk-1/_metadata is not checkpoint metadata" in done.stderr


def test_commands_say_that_an_unsigned_checkpoint_runs_code(
    place: str, run: Any, tmp_path: Path
) -> None:
    warning = "is not signed: restoring a checkpoint unpickles its state, and a pickle can run code"
    for arguments in (("checkpoint", "show", place), ("checkpoint", "verify", place)):
        assert warning in run(*arguments).stderr
    assert warning in run("savepoint", place, tmp_path / "target").stderr


def test_a_savepoint_is_signed(place: str, run: Any, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("0123456789abcdef0123456789abcdef")
    target = tmp_path / "target"
    done = run("savepoint", place, target, "--sign-with", key)
    assert done.exit_code == 0, done.stderr
    assert "signed by the key" in done.stdout
    assert "is not signed" not in done.stdout + done.stderr
    unknown = run("checkpoint", "show", target)
    assert unknown.exit_code == 2
    assert "set execution.checkpointing.key-file, or --key-file of a command" in unknown.stderr
    for command in ("show", "verify"):
        done = run("checkpoint", command, target, "--key-file", key)
        assert done.exit_code == 0, done.stderr
        assert "signed by the key" in done.stdout
    assert run("checkpoint", "diff", target, "clicks.py", "--key-file", key).exit_code == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "empty has no checkpoints" in run("checkpoint", "ls", empty).stderr
    none = run("checkpoint", "show", target, "--key-file", tmp_path / "none")
    assert none.exit_code == 2
    assert "cannot be read" in none.stderr


def test_commands_unpickle_nothing(place: str, run: Any, tmp_path: Path) -> None:
    payload = planted_pickle(tmp_path / "ran")
    storage = checkpoint_storage(place)
    latest = read_metadata(storage, 2)
    tasks = []
    for task in latest.tasks:
        snapshot = OperatorSnapshot({1: payload}, {1: payload})
        state = write_task_state(storage, 3, task.task, "0", {task.vertex_id: snapshot})
        tasks.append(replace(task, state=state, event_time=payload))
    planted = replace(
        latest, checkpoint_id=3, tasks=tuple(tasks), committables=(Committable("c", 0, payload),)
    )
    storage.publish(metadata_name(3), encode(planted))
    for arguments in (
        ("checkpoint", "ls", place),
        ("checkpoint", "show", place),
        ("checkpoint", "verify", place),
        ("checkpoint", "diff", place, "clicks.py"),
        ("savepoint", place, tmp_path / "copy"),
    ):
        done = run(*arguments)
        assert done.exit_code == 0, done.stderr
    assert not (tmp_path / "ran").exists()


WITH_STATE = """
from opchain import StreamExecutionEnvironment
from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor

class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.TYPE()))

    def process_element(self, value, ctx):
        yield value

def build(env):
    numbers = env.from_sequence(1, 9).name("numbers").uid("numbers")
    numbers.key_by(lambda value: value % 3).process(Count()).name("sums").uid("sums").print()
"""


KEYED = """
from opchain import StreamExecutionEnvironment
from opchain.common import Types, WatermarkStrategy
from opchain.datastream.connectors import DataGeneratorSource

env = StreamExecutionEnvironment.get_execution_environment()
env.get_configuration().set_string("opchain.streaming.trigger", "available-now")
source = DataGeneratorSource(str, None, 100)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
numbers.key_by(lambda text: text[-1], KEY).reduce(max).uid("sums").print().uid("out")
env.execute("clicks")
"""


def test_checkpoint_diff_compares_types_and_settings_of_states(
    place: str, run: Any, write: Any
) -> None:
    storage = checkpoint_storage(place)
    saved = read_metadata(storage, 2)
    counts = replace(
        saved.operators[1], states=(StateDescription("count", "ValueStateDescriptor", "Long"),)
    )
    plan = {**saved.plan, "settings": {"execution.checkpointing.interval": "1000"}}
    third = replace(saved, checkpoint_id=3, operators=(saved.operators[0], counts), plan=plan)
    storage.publish(metadata_name(3), encode(third))

    def diff(of_type: str) -> Any:
        write(WITH_STATE.replace("TYPE", of_type))
        return run("checkpoint", "diff", place, "clicks.py:build", "--allow-non-restored-state")

    same, other = diff("LONG"), diff("STRING")
    assert "refused" not in same.stdout
    assert "setting execution.checkpointing.interval was 1000, and is not set" in same.stdout
    assert other.exit_code == 1
    assert "state 'count' was saved with type Long and has String" in " ".join(other.stdout.split())


def test_checkpoint_diff_compares_key_types(run: Any, write: Any) -> None:
    """The checkpoint of a job that ran."""
    program = KEYED.replace("KEY", "Types.STRING()")
    write(program)
    done = run("run", "--local", "clicks.py", "-D", "execution.checkpointing.dir=checkpoints")
    assert done.exit_code == 0, done.output
    assert "keys of type String" in run("checkpoint", "show", "checkpoints").stdout
    same = run("checkpoint", "diff", "checkpoints", "clicks.py")
    assert same.exit_code == 0, same.output
    for other in ("Types.PICKLED_BYTE_ARRAY()", "None", "Types.INT()"):
        write(KEYED.replace("KEY", other))
        refused = run("checkpoint", "diff", "checkpoints", "clicks.py")
        assert refused.exit_code == 1
        assert "was saved with keys of type String" in " ".join(refused.stdout.split())
    started = run("run", "--local", "clicks.py", "-D", "execution.checkpointing.dir=checkpoints")
    assert started.exit_code != 0
    assert "was saved with keys of type String" in started.stderr


def test_checkpoint_diff_names_operators_whose_types_are_unknown(
    place: str, run: Any, write: Any
) -> None:
    write(WITH_STATE.replace("Types.TYPE()", "1 / 0"))
    done = run("checkpoint", "diff", place, "clicks.py:build", "--allow-non-restored-state")
    assert "could not be opened here (ZeroDivisionError: division by zero)" in done.stderr
