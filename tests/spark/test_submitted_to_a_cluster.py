"""spark-submit runs programs on a cluster whose Python has only the standard library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.spark.session import spark_home

if TYPE_CHECKING:
    from pathlib import Path

    from standalone_cluster import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

PRICES = "import taxes\ndef priced(item):\n    return item, len(item) * 100 + taxes.RATE\n"
TAXES = "RATE = 19\n"

PROGRAM = """
import argparse, json
import prices
from opchain import StreamExecutionEnvironment

def seen_by_the_executor(item):
    import importlib.util, sys
    import opchain
    missing = [name for name in ("networkx", "pydantic", "click") if not importlib.util.find_spec(name)]
    return [*prices.priced(item), ".zip" in opchain.__file__, missing, sys.prefix]

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", nargs="+", default=["egg"])
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    items = env.from_collection(parser.parse_args().items).rebalance()
    with items.map(seen_by_the_executor).execute_and_collect("shop") as found:
        print(json.dumps(sorted(found)))
    words = items.map(lambda item: (item[0], 1)).key_by(lambda pair: pair[0]).sum(1)
    words.print()
    env.execute("letters")
"""

SMALL = {"spark.executor.memory": "512m"}


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty virtual environment, even without pip."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    code = "import opchain"
    answer = subprocess.run([python, "-c", code], cwd=folder, env={}, check=False)
    assert answer.returncode != 0
    return python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program with modules beside it and a configuration; its folder is that of the submission."""
    app = tmp_path / "app"
    app.mkdir()
    for name, text in (("shop.py", PROGRAM), ("prices.py", PRICES), ("taxes.py", TAXES)):
        (app / name).write_text(text, "utf-8")
    (tmp_path / "conf").mkdir()
    lines = [f"{key} {value}\n" for key, value in SMALL.items()]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(lines), "utf-8")
    return tmp_path


def submitted(folder: Path, *command: str, **variables: str) -> str:
    """The output of a command that submits a program; spark-submit mixes both output streams."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYSPARK_", "SPARK_", "PYTHONPATH"))
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean | {"SPARK_LOCAL_IP": "127.0.0.1"} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(output: str, bare_python: Path) -> None:
    """The output of the program for eggs, ham and eels."""
    lines = output.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("[["))
    first, *counts = lines[start : start + 4]
    there = [True, ["networkx", "pydantic", "click"], str(bare_python.parent.parent)]
    items = [["eel", 319, *there], ["egg", 319, *there], ["ham", 319, *there]]
    assert json.loads(first) == items
    counted = sorted(line.partition("> ")[2] for line in counts)
    assert counted == ["('e', 1)", "('e', 2)", "('h', 1)"]


ITEMS = ("--items", "egg", "ham", "eel")


def test_opchain_submit_ships_all_code_of_the_program(
    cluster: StandaloneCluster, folder: Path, bare_python: Path
) -> None:
    output = submitted(
        folder,
        *(sys.executable, "-m", "opchain", "submit", "app/shop.py"),
        *("--master", cluster.url, "--conf-dir", "conf"),
        *("--conf", f"spark.pyspark.python={bare_python}"),
        *ITEMS,
    )
    check(output, bare_python)
    assert sorted(path.name for path in (folder / "dist").iterdir()) == [
        "opchain.zip",
        "shop-modules.zip",
    ]


def test_plain_spark_submit_runs_a_packaged_program(
    cluster: StandaloneCluster, folder: Path, bare_python: Path
) -> None:
    submitted(folder, sys.executable, "-m", "opchain", "package")
    output = submitted(
        folder,
        *(str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url),
        *("--properties-file", "conf/spark-defaults.conf"),
        *("--py-files", "dist/opchain.zip", "app/shop.py"),
        *ITEMS,
        PYSPARK_PYTHON=str(bare_python),
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    check(output, bare_python)


NEEDS_PACKAGES = """
from opchain import StreamExecutionEnvironment

def there(number):
    import tiny_thing
    return number * tiny_thing.X

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).map(there).print()
env.execute()
"""


def test_packages_are_installed_on_the_executors(
    cluster: StandaloneCluster, folder: Path, bare_python: Path
) -> None:
    project = folder / "tiny"
    project.mkdir()
    (project / "tiny_thing.py").write_text("X = 21\n", "utf-8")
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "tiny-thing"\nversion = "1"\n[tool.setuptools]\npy-modules = ["tiny_thing"]\n',
        "utf-8",
    )
    (folder / "requirements.txt").write_text("./tiny\n", "utf-8")
    (folder / "needy.py").write_text(NEEDS_PACKAGES, "utf-8")
    output = submitted(
        folder,
        *(sys.executable, "-m", "opchain", "submit", "needy.py", "--master", cluster.url),
        *("--conf-dir", "conf", "--conf", f"spark.pyspark.python={bare_python}"),
        *("--requirements", "requirements.txt"),
        PIP_NO_BUILD_ISOLATION="0",
        PIP_NO_INDEX="1",
    )
    assert output.splitlines()[-2:] == ["21", "42"]
