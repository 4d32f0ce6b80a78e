"""mypy --strict, and so an editor, accepts correct programs and finds mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

import opchain

pytest.importorskip("mypy")
pytestmark = pytest.mark.slow

Mypy = Callable[[Path], list[str]]

CASES = Path(__file__).with_name("typing_cases.py")
ERROR = re.compile(r":(\d+): error: .*\[([\w-]+)\]$")
EXPECTED = re.compile(r"#\s*error: ([\w, -]+)$")

PROGRAM = """
from collections.abc import Iterable, Iterator
from typing import Any

from opchain.common import Duration, Types
from opchain.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimeWindow,
)
from opchain.datastream.functions import KeySelector, SourceFunction
from opchain.datastream.state import MapStateDescriptor, ValueState, ValueStateDescriptor
from opchain.datastream.window import CountTrigger, PurgingTrigger, Trigger, TumblingEventTimeWindows

LATE = OutputTag("late", Types.INT())


class Typed(MapFunction[int, str]):
    def map(self, value: int) -> str:
        return str(value)


class Plain(MapFunction):
    def map(self, value):  # type: ignore[no-untyped-def]
        return value


class OfAnything(MapFunction[object, str]):
    def map(self, value: object) -> str:
        return repr(value)


class Split(ProcessFunction[int, int]):
    def process_element(
        self, value: int, ctx: ProcessFunction.Context
    ) -> Iterator[int | tuple[OutputTag[int], int]]:
        if value > 3:
            yield LATE, value
        yield value


class Counting(KeyedProcessFunction[str, int, tuple[str, int]]):
    count: ValueState[int]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        seen = runtime_context.get_map_state(MapStateDescriptor("m", Types.STRING(), Types.INT()))
        reveal_type(seen)
        reveal_type(self.count.value())

    def process_element(
        self, value: int, ctx: "KeyedProcessFunction.Context[str]"
    ) -> Iterable[tuple[str, int]]:
        reveal_type(ctx.get_current_key())
        self.count.update((self.count.value() or 0) + value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1)
        return []

    def on_timer(
        self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext[str]"
    ) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), self.count.value() or 0


class Windowed(ProcessWindowFunction[int, str, str, TimeWindow]):
    def process(
        self,
        key: str,
        context: "ProcessWindowFunction.Context[TimeWindow]",
        elements: Iterable[int],
    ) -> Iterable[str]:
        reveal_type(context.window().end)
        return [key for _ in elements]


env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection([1, 2, 3])
reveal_type(numbers.map(Typed()))
reveal_type(numbers.map(OfAnything()))
reveal_type(numbers.map(lambda value: value + 0.5))
keyed = numbers.key_by(lambda value: str(value))
reveal_type(keyed.process(Counting()))
trigger: Trigger[int, TimeWindow] = PurgingTrigger.of(CountTrigger.of(3))
reveal_type(keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(1))).process(Windowed()))
"""

REVEALED = [
    "MapState[str, int]",
    "int | None",
    "str",
    "int",
    "DataStream[str]",
    "DataStream[str]",
    "DataStream[float]",
    "DataStream[tuple[str, int]]",
    "DataStream[str]",
]

WRONG = {
    "a function of other records": (
        """
from opchain.datastream import MapFunction, StreamExecutionEnvironment
class F(MapFunction[str, int]):
    def map(self, value: str) -> int:
        return len(value)
StreamExecutionEnvironment.get_execution_environment().from_collection([1]).map(F())
""",
        "[arg-type]",
    ),
    "a method of another signature": (
        """
from opchain.datastream import ReduceFunction
class F(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> str:
        return ''
""",
        "[override]",
    ),
    "a missing method": (
        """
from opchain.datastream import FilterFunction
class F(FilterFunction[int]):
    pass
F()
""",
        "[abstract]",
    ),
    "a state of another type": (
        """
from opchain.common import Types
from opchain.datastream.state import ValueState, ValueStateDescriptor
from opchain.datastream.functions import RuntimeContext
def f(context: RuntimeContext) -> ValueState[str]:
    return context.get_state(ValueStateDescriptor('s', Types.INT()))
""",
        "[arg-type]",
    ),
}


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> Mypy:
    """Checks a file against the package alone: what mypy says of the file."""
    folder = tmp_path_factory.mktemp("typing")
    root = folder / "root"
    root.mkdir()
    (root / "opchain").symlink_to(Path(opchain.__path__[0]))

    def run(file: Path) -> list[str]:
        options = ["--strict", "--config-file=", "--follow-imports=silent"]
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, f"--cache-dir={folder / 'cache'}", str(file)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,  # mypy prints absolute paths of what is elsewhere
            env={"MYPYPATH": str(root), "PATH": ""},
        )
        assert done.stderr == ""
        return [line for line in done.stdout.splitlines() if line.startswith(str(file))]

    return run


def test_mypy_finds_mistakes_at_their_lines(mypy: Mypy) -> None:
    found: dict[int, set[str]] = defaultdict(set)
    for line in mypy(CASES):
        if matched := ERROR.search(line):
            found[int(matched[1])].add(matched[2])
    expected = {
        number: set(matched[1].split(", "))
        for number, line in enumerate(CASES.read_text().splitlines(), start=1)
        if (matched := EXPECTED.search(line))
    }
    assert dict(found) == expected
    assert len(expected) == 10


def written(folder: Path, program: str) -> Path:
    file = folder / "program.py"
    file.write_text(program)
    return file


def short(revealed: str) -> str:
    """`Revealed type is "a.b.C[x.D]"` -> `C[D]`."""
    text = revealed.partition('"')[2].rpartition('"')[0]
    words = text.replace("[", " [ ").replace("]", " ] ").replace(",", " , ").split()
    joined = " ".join(word.rpartition(".")[2] for word in words)
    return joined.replace(" [ ", "[").replace(" ]", "]").replace(" , ", ", ")


def test_mypy_accepts_a_correct_program_with_exact_types(mypy: Mypy, tmp_path: Path) -> None:
    lines = mypy(written(tmp_path, PROGRAM))
    assert [line for line in lines if "error:" in line] == []
    assert [short(line) for line in lines if "Revealed type" in line] == REVEALED


@pytest.mark.parametrize(("program", "error"), WRONG.values(), ids=WRONG.keys())
def test_mypy_reports_an_error_in_a_wrong_program(
    mypy: Mypy, tmp_path: Path, program: str, error: str
) -> None:
    lines = mypy(written(tmp_path, program))
    assert [line for line in lines if "error:" in line and line.endswith(error)]
