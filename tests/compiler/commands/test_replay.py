"""The command `replay`, on epochs that this process has run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recorded_runs import run_recorded

PROGRAM = """
from epoch_runs import given
from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor


class Sum(KeyedProcessFunction):
    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        total = (self.sum.value() or 0) + value[1]
        self.sum.update(total)
        yield total


def build(env):
    env.set_parallelism(2)
    pairs = given(env, "pairs")
    pairs.key_by(lambda pair: pair[0]).process(Sum()).name("sum").uid("sum").print()
"""

EPOCHS = [{"pairs": [("a", 1), ("b", 2), ("a", 3)]}, {"pairs": [("a", 10), ("b", 20)]}]


@pytest.fixture
def place(write: Any) -> str:
    write(PROGRAM)
    spec = importlib.util.spec_from_file_location("clicks", "clicks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run_recorded(module.build, Path("checkpoints"), EPOCHS)
    return "checkpoints"


@pytest.mark.parametrize("chosen", [["--epoch", "1"], ["--epoch", "2"], []])
def test_replay_of_an_epoch_gives_the_same_results(place: str, run: Any, chosen: list[str]) -> None:
    done = run("replay", place, "clicks.py:build", *chosen)
    assert done.exit_code == 0, done.output
    epoch = chosen[-1] if chosen else "2"
    assert done.stdout.startswith(f"epoch {epoch} of 'test': the same (4 tasks, ")


def test_replay_takes_the_epoch_of_a_checkpoint_folder(place: str, run: Any) -> None:
    done = run("replay", f"{place}/chk-1", "clicks.py:build")
    assert done.stdout.startswith("epoch 1 of 'test': the same")


def test_replay_reports_the_differences_of_a_changed_program(
    place: str, write: Any, run: Any
) -> None:
    write(PROGRAM.replace("+ value[1]", "+ 2 * value[1]"))
    done = run("replay", place, "clicks.py:build")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("epoch 2 of 'test': 3 differences (")
    assert any(line.endswith("of key 'a': 24, and 14 was recorded") for line in lines)
    one = run("replay", place, "clicks.py:build", "--vertex", "sum", "--key", "b")
    assert one.stdout.splitlines()[0] == (
        "state 'sum' of 'sum' of key 'b': 2 before, 22 recorded, 42 replayed"
    )
    assert one.exit_code == 1


def test_replay_reports_an_error_of_the_program(place: str, write: Any, run: Any) -> None:
    write(PROGRAM.replace("yield total", "raise ValueError(total)"))
    done = run("replay", place, "clicks.py:build")
    assert done.exit_code == 1
    assert "ValueError: " in done.stderr
    assert "in 'sum' (clicks.py:" in done.stderr
    assert "operator_chain.py" not in done.stderr
    assert "'opchain --traceback replay' shows all of it" in done.stderr
    whole = run("--traceback", "replay", place, "clicks.py:build")
    assert "operator_chain.py" in whole.stderr


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (["--epoch", "7"], "no checkpoint of epoch 7; it has those of 1, 2"),
        (["--subtask", "1"], "--subtask needs --vertex"),
        (["--vertex", "sum", "--subtask", "2"], "has 2 subtasks, counted from 0"),
        (["--vertex", "nothing"], "has no vertex 'nothing'; it has 1 'Source: pairs', 2 '"),
    ],
)
def test_replay_refuses_an_unknown_epoch_or_operator(
    place: str, run: Any, chosen: list[str], said: str
) -> None:
    done = run("replay", place, "clicks.py:build", *chosen)
    assert done.exit_code == 2
    assert said in done.stderr


def test_replay_with_pdb_stops_at_the_records_of_a_key(
    place: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops: list[Any] = []

    class Debugger:
        def __init__(self, **options: Any) -> None:
            assert options == {"skip": ["opchain.*"]}

        def runcall(self, process: Any, number: int, values: Any, timestamps: Any) -> None:
            stops.append(list(values))
            process(number, values, timestamps)

    module = SimpleNamespace(Pdb=Debugger)
    monkeypatch.setattr("opchain.compiler.commands.replay.pdb", module)
    arguments = ("replay", place, "clicks.py:build", "--pdb", "--epoch", "1")
    assert run(*arguments, "--key", "a").exit_code == 0
    assert sorted(stops) == [[("a", 1)], [("a", 3)]]
    stops.clear()
    assert run(*arguments, "--vertex", "1").exit_code == 0
    assert sorted(stops) == [[("a", 1), ("a", 3)], [("b", 2)]]


def test_replay_notes_a_key_without_state(place: str, run: Any) -> None:
    done = run("replay", place, "clicks.py:build", "--key", "nobody")
    assert "note: no state of key 'nobody' is recorded, and none is replayed" in done.stderr
    assert done.exit_code == 0
    assert run("replay", place, "clicks.py:build", "--key", "a").stderr == ""


def test_replay_refuses_a_savepoint(place: str, run: Any) -> None:
    run("savepoint", place, "saved")
    assert (
        "it has none, and a savepoint can't be run again"
        in run("replay", "saved", "clicks.py:build").stderr
    )
