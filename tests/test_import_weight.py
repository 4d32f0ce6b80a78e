"""The cost of imports, as the number of modules. Time would depend on the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("networkx", "pydantic", "click", "rich", "numpy", "mmh3", "cloudpickle", "pyspark")


def modules_after(statement: str) -> set[str]:
    script = (
        f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_opchain_imports_no_submodule() -> None:
    loaded = modules_after("import opchain")
    assert {name for name in loaded if name.startswith("opchain")} == {"opchain"}
    assert len(loaded) < 40  # an editable installation loads up to 30 to find it


@pytest.mark.parametrize(
    "statement",
    [
        "import opchain",
        "import opchain.testing",
        "import opchain.datastream, opchain.common",
        "from opchain import StreamExecutionEnvironment",
        "from opchain.datastream.functions import KeyedProcessFunction",
        "import opchain.compiler.assertions.pytest_plugin",
    ],
)
def test_drawing_a_program_imports_no_third_party_library(statement: str) -> None:
    loaded = {name.partition(".")[0] for name in modules_after(statement)}
    assert not loaded & set(HEAVY)


def test_modules_for_functions_do_not_import_the_compiler() -> None:
    loaded = modules_after("from opchain.datastream.functions import KeyedProcessFunction")
    assert not {name for name in loaded if name.startswith("opchain.compiler")}
