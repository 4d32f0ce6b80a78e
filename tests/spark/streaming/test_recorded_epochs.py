"""Epochs that ran on Spark are replayed in a process without Spark, with the same bytes."""

from __future__ import annotations

import json
import os
import runpy
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from opchain.compiler.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from opchain.common import Configuration, Duration, Time, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.spark.formats import SparkSource


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + STEP)
        yield value["key"], self.count.value(), ctx.timer_service().current_processing_time()


STEP = 1
folder = sys.argv[1]
configuration = Configuration()
for key, value in {
    "execution.checkpointing.dir": f"{folder}/checkpoints",
    "execution.checkpointing.num-retained": "10",
    "opchain.streaming.trigger": "available-now",
    "opchain.streaming.record-epochs": "true",
}.items():
    configuration.set_string(key, value)
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
env.set_max_parallelism(16)
strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
strategy = strategy.with_timestamp_assigner(lambda row, _: row["time"])
source = SparkSource(
    "json",
    {"maxFilesPerTrigger": "1"},
    schema="key string, time bigint",
    path=f"{folder}/input",
    is_streaming=True,
)
rows = env.from_source(source, strategy, "rows").uid("rows")
keyed = rows.key_by(lambda row: row["key"])
keyed.process(Count()).uid("count").print()
windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
windows.reduce(lambda a, b: b).uid("last").print()
env.execute("recorded")
"""


def run(folder: Path, *arguments: str, program: str = "job.py") -> Result:
    command = ["replay", str(folder / "checkpoints"), str(folder / program)]
    return CliRunner().invoke(main, [*command, *arguments, str(folder)])


@pytest.fixture(scope="module")
def folder(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    del session  # the program uses the active session
    made = tmp_path_factory.mktemp("recorded")
    (made / "input").mkdir()
    for number in range(3):
        part = [{"key": f"k{n % 4}", "time": 3 * n + 20 * number} for n in range(20)]
        path = made / "input" / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in part))
        os.utime(path, (1_700_000_000 + 10 * number,) * 2)  # Spark reads the oldest file first
    (made / "job.py").write_text(PROGRAM)
    (made / "altered.py").write_text(PROGRAM.replace("STEP = 1", "STEP = 2"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["job.py", str(made)])
        runpy.run_path(str(made / "job.py"), run_name="__main__")
    return made


def test_every_epoch_is_replayed_with_the_same_results(folder: Path) -> None:
    for epoch in ("1", "2", "3"):
        done = run(folder, "--epoch", epoch)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(f"epoch {epoch} of 'recorded': the same (")


def test_a_changed_function_is_detected(folder: Path) -> None:
    done = run(folder, "--epoch", "2", program="altered.py")
    assert done.exit_code == 1
    assert "epoch 2 of 'recorded': " in done.stdout
    assert "state 'count' of 'KeyedProcess' of key 'k0': 15, and 10 was recorded" in done.stdout


def test_the_last_epoch_and_one_key_can_be_selected(folder: Path) -> None:
    done = run(folder, "--vertex", "count", "--key", "k1")
    assert (done.exit_code, done.stderr) == (0, "")
    first, last = done.stdout.splitlines()[0], done.stdout.splitlines()[-1]
    assert first.endswith("of key 'k1': 10 before, 15 recorded, 15 replayed")
    assert last.startswith("epoch 3 of 'recorded': the same (2 tasks, ")
