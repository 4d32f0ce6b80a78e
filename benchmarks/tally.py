"""Programs and baselines reduce a stream to two numbers, its tally, to compare their results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import environment
from benchmarks.json_lines import empty_folder
from opchain.datastream.functions import FlatMapFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opchain import StreamExecutionEnvironment


class Tally(FlatMapFunction[Any, Any]):
    """Counts results, adds up one of their fields (or the results, for None), and writes a file for each subtask."""

    def __init__(self, folder: str, field: Any = None) -> None:
        self.folder, self.field, self.results, self.sum = folder, field, 0, 0

    def open(self, runtime_context: Any) -> None:
        """Chooses the subtask's file."""
        self.name = f"tally-{runtime_context.get_index_of_this_subtask()}"

    def flat_map(self, value: Any) -> Any:
        """Adds a result to the tally."""
        self.results += 1
        self.sum += value if self.field is None else value[self.field]
        return ()

    def close(self) -> None:
        """Writes the file."""
        Path(self.folder, self.name).write_text(f"{self.results} {self.sum}", encoding="ascii")


def tally_by(
    name: str, draw: Callable[[StreamExecutionEnvironment, str], None], **settings: Any
) -> tuple[int, ...]:
    """Runs the program that `draw` adds to an environment, and returns its tally."""
    folder = str(empty_folder(name))
    env = environment(**settings)
    draw(env, folder)
    env.execute(name)
    return tally_of(folder)


def tally_of(folder: str) -> tuple[int, ...]:
    """The number of results of all subtasks, and their sum."""
    return added(tuple(map(int, path.read_text().split())) for path in Path(folder).glob("tally-*"))


def tallied(numbers: Iterable[int]) -> tuple[int, int]:
    """The number of numbers, and their sum."""
    results = total = 0
    for number in numbers:
        results += 1
        total += number
    return results, total


def added(tallies: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Adds up tuples, element by element.

    >>> added([(1, 10), (2, 20)])
    (3, 30)
    """
    return tuple(map(sum, zip(*tallies, strict=True)))
