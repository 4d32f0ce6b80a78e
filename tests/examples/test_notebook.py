"""The example notebook, and failures and interrupts in a notebook, with a real kernel."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
LONGEST_S = 240


def executed(notebook: Any) -> list[Any]:
    """The outputs of each cell of code."""
    nbclient.NotebookClient(notebook, timeout=LONGEST_S, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def shown(outputs: list[Any]) -> str:
    return "".join(output.get("data", {}).get("text/html", "") for output in outputs)


def test_the_example_notebook_shows_plans_tables_and_records() -> None:
    drawn, stream, plan, result, records, total = executed(nbformat.read(EXAMPLE, as_version=4))
    assert drawn == []
    assert "<svg" in shown(stream)
    assert "<svg" in shown(plan)
    assert "page of this plan" in shown(plan)
    assert len(shown(plan)) < 50_000
    assert "the job ran for" in shown(result)
    assert "few" in shown(result)
    assert "<td>&#x27;b&#x27;</td><td>2</td>" in shown(records)
    assert total[0]["data"]["text/plain"] == "3"


HEAD = """
from opchain import Configuration, StreamExecutionEnvironment
configuration = Configuration()
configuration.set_string("execution.target", "local")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
"""


def notebook_of(*cells: str) -> Any:
    found = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    found.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    return found


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("env.from_collection([1, 0]).map(lambda n: 1 // n).print()\nenv.execute()", "division"),
        ("env.execute()", "there is nothing to run"),
        ("env.execute() if not env.from_collection([1]).map(5) else 0", "got int 5"),
        (
            (
                "configuration.set_string('parallelism.default', 'two')\n"
                "env.execute() if StreamExecutionEnvironment.get_execution_environment(configuration) else 0"
            ),
            "'two' is not a whole number",
        ),
        (
            (
                "def f(n):\n    try:\n        return {}[n]\n    except KeyError as error:\n"
                "        raise ValueError('line\\n' * 30) from error\n"
                "env.from_collection([1]).map(f).print()\nenv.execute()"
            ),
            "ValueError: line",
        ),
        (
            "def f(n):\n    return f(n)\nenv.from_collection([1]).map(f).print()\nenv.execute()",
            "recursion",
        ),
    ],
)
def test_tracebacks_in_a_notebook_are_short(cell: str, said: str) -> None:
    notebook = notebook_of(HEAD, cell)
    with pytest.raises(nbclient.exceptions.CellExecutionError):
        executed(notebook)
    (error,) = (output for output in notebook.cells[1].outputs if output["output_type"] == "error")
    text = "\n".join(error["traceback"])
    assert said in text
    assert "env.execute()" in text
    assert len(text.splitlines()) <= 12
    assert "environment.py" not in text


ENDLESS = """
import time
from opchain import WatermarkStrategy
from opchain.runtime.connectors.data_generator import DataGeneratorSource
numbers = DataGeneratorSource(lambda n: n, records_per_second=10)
env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
env.execute("endless")
"""


def test_interrupting_the_kernel_cancels_the_job() -> None:
    notebook = notebook_of(
        HEAD, ENDLESS, "import threading; [t.name for t in threading.enumerate()]"
    )
    client = nbclient.NotebookClient(
        notebook, timeout=LONGEST_S, kernel_name="python3", allow_errors=True
    )

    def interrupt_once_it_prints(cell: Any) -> None:
        while not cell.outputs:
            threading.Event().wait(0.1)
        asyncio.run(client.km.interrupt_kernel())

    def on_execute(cell: Any, cell_index: int, **_: Any) -> None:
        if cell_index == 1:
            threading.Thread(target=interrupt_once_it_prints, args=(cell,)).start()

    client.on_cell_execute = on_execute
    client.execute()
    (error,) = (output for output in notebook.cells[1].outputs if output["output_type"] == "error")
    assert error["ename"] == "KeyboardInterrupt"
    (threads,) = notebook.cells[2].outputs
    assert "job " not in threads["data"]["text/plain"]
