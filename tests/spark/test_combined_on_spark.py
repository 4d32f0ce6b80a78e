"""Combined programs on Spark, which read a DataFrame: the same records, order and counters interpreted and inlined.

`OPCHAIN_SPARK_EXAMPLES` says how many programs there are, `OPCHAIN_SEED` which is the first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest
from combined_programs import combined_program
from forms import Ran, job_of
from program_texts import module_of

from opchain.runtime.spark.bounded_job import spark_run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

PROGRAMS = int(os.environ.get("OPCHAIN_SPARK_EXAMPLES", "3"))
SEED = int(os.environ.get("OPCHAIN_SEED", "1"))

FRAME = "env.from_dataframe(SparkSession.active().range(10)).map(lambda row: row['id'])"


@pytest.mark.parametrize("seed", range(SEED, SEED + PROGRAMS))
def test_combined_programs_have_the_same_results_in_each_form_on_spark(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, text = combined_program(seed)
    file = tmp_path / "combined_program.py"
    file.write_text(
        f"from pyspark.sql import SparkSession\n{text.replace('env.from_sequence(0, 9)', FRAME)}"
    )
    module = module_of(file, monkeypatch)
    cloudpickle.register_pickle_by_value(module)

    def result(form: str) -> Any:
        job = job_of(module.draw, form, parallelism=seed % 3 + 1, batch_size=7)
        try:
            ran = Ran(job, spark_run(job)._run())
        except Exception as error:  # noqa: BLE001 - the functions raise what they like
            return type(error)  # the subtasks run at once, so any of their errors can be the first
        return repr(ran.subtasks("results")), ran.counters()

    assert result("inlined") == result("interpreted"), names
