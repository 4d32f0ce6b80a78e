"""Jobs in Spark's UI, read by the REST interface that its pages use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from own_process import run_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("needs_spark")]

PROGRAM = """
import json
from urllib.request import urlopen
from opchain import StreamExecutionEnvironment
from pyspark import SparkContext

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
words = env.from_collection(["to be or", "not to be"]).name("lines").flat_map(str.split).name("words")
words.key_by(len).max().name("longest").print()
env.execute("word lengths")

context = SparkContext.getOrCreate()
context._jsc.sc().listenerBus().waitUntilEmpty()  # the UI's numbers come by events
place = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
answers = {name: json.load(urlopen(f"{place}/{name}")) for name in ("jobs", "stages")}
print(json.dumps(answers))
"""

OPTIONS = (
    "--master local[2] --conf spark.ui.enabled=true --conf spark.ui.port=0 "
    "--conf spark.ui.showConsoleProgress=false pyspark-shell"
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, needs_spark: None) -> dict[str, Any]:
    """The jobs and stages of a program that has run one job."""
    program: Path = tmp_path_factory.mktemp("ui") / "program.py"
    program.write_text(PROGRAM, "utf-8")
    done = run_program(str(program), PYSPARK_SUBMIT_ARGS=OPTIONS, SPARK_LOCAL_IP="127.0.0.1")
    assert done.exit_code == 0, done.err
    answers: dict[str, Any] = json.loads(done.out.splitlines()[-1])
    return answers


STAGES = [
    "Source: lines x1",
    "words x2",
    "longest -> Sink: Print to Std. Out x2",
]


def test_an_opchain_job_is_one_spark_job_with_its_name(answers: dict[str, Any]) -> None:
    (job,) = answers["jobs"]
    assert job["status"] == "SUCCEEDED"
    assert job["description"] == f"word lengths: {'; '.join(STAGES)}"
    assert job["jobGroup"].startswith("opchain ")
    assert job["numTasks"] == 5


def test_stages_have_the_names_of_their_vertices(answers: dict[str, Any]) -> None:
    stages = sorted(answers["stages"], key=lambda stage: stage["stageId"])
    assert [stage["name"] for stage in stages] == STAGES
    assert [stage["numCompleteTasks"] for stage in stages] == [1, 2, 2]


def test_the_details_of_a_stage_show_the_program_line(answers: dict[str, Any]) -> None:
    details = {stage["name"]: stage["details"].splitlines() for stage in answers["stages"]}
    assert details["words x2"] == [
        "words x2",
        "  words (program.py:9)",
        "  -> longest (hash by len)",
    ]
