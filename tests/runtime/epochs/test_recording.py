from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from epoch_runs import given
from recorded_runs import run_recorded

from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.checkpoint.savepoint import Located, problems_of, write_savepoint
from opchain.runtime.connectors.simple_sinks import DiscardingSink

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opchain.runtime.checkpoint.epoch import RecordedTask


def draw(change: Callable[[int], Any] = lambda n: n) -> Callable[[Any], Any]:
    def program(env: Any) -> None:
        changed = given(env, "numbers").key_by(lambda n: n % 2).map(change)
        changed.sink_to(DiscardingSink())
        changed.print()

    return program


def recorded(folder: Path, program: Any, *epochs: list[int], **settings: Any) -> list[RecordedTask]:
    run = [{"numbers": numbers} for numbers in epochs]
    _, storage = run_recorded(program, folder, run, **settings)
    tasks = read_metadata(storage, len(epochs)).tasks
    found = [task.recorded for task in tasks]
    assert None not in found
    return [task for task in found if task is not None]


def sent(tasks: list[RecordedTask]) -> list[list[tuple[str, int, str]]]:
    return [[(item.name, item.records, item.digest) for item in task.outputs] for task in tasks]


def test_sources_record_their_input_and_all_tasks_digests_of_their_output(tmp_path: Path) -> None:
    tasks = recorded(tmp_path, draw(), [1, 2, 3, 4, 5])
    _, storage = run_recorded(draw(), tmp_path, [])
    inputs = [task.input for task in tasks if task.input is not None]
    assert [pickle.loads(storage.get(file)) for file in inputs] == [
        [pickle.dumps([1, 3, 5])],
        [pickle.dumps([2, 4])],
    ]
    counts = [sorted((name, records) for name, records, _ in task) for task in sent(tasks)]
    assert counts[:2] == [[("exchange 0", 3)], [("exchange 0", 2)]]
    assert sum(records for task in counts[2:] for name, records in task) == 10


def test_digests_depend_on_values_and_their_order(tmp_path: Path) -> None:
    base = sent(recorded(tmp_path / "1", draw(), [1, 2, 3, 4]))
    assert sent(recorded(tmp_path / "2", draw(), [1, 2, 3, 4])) == base
    assert sent(recorded(tmp_path / "3", draw(), [3, 2, 1, 4])) != base
    other = sent(recorded(tmp_path / "4", draw(float), [1, 2, 3, 4]))
    assert other[:2] == base[:2]
    assert other[2:] != base[2:]


def test_an_epoch_has_digests_of_its_own_records_only(tmp_path: Path) -> None:
    second = recorded(tmp_path / "both", draw(), [1, 2], [3, 4])
    alone = recorded(tmp_path / "alone", draw(), [3, 4])
    assert sent(second) == sent(alone)


def test_recorded_input_is_retained_with_its_checkpoint(tmp_path: Path) -> None:
    run = [{"numbers": [number]} for number in range(4)]
    _, storage = run_recorded(draw(), tmp_path / "run", run, retained=2)
    kept = [name for name in storage.names() if name.endswith(".input")]
    assert sorted(name.split("/")[1] for name in kept) == ["3", "3", "4", "4"]
    located = Located(storage, read_metadata(storage, 4))
    assert problems_of(located) == []
    written = write_savepoint(located, str(tmp_path / "savepoint"))
    assert set(written.recorded_files) <= set(kept)
    assert (tmp_path / "savepoint" / min(written.recorded_files)).is_file()
    storage.delete(min(written.recorded_files))
    assert ["is missing" in str(problem) for problem in problems_of(located)] == [True]
