"""Tests that need executors in separate processes: all code and files of a job are shipped to them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_process import run_program

if TYPE_CHECKING:
    from standalone_cluster import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

HELPER = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Price:
    item: str
    cents: int
class TooDearError(Exception):
    def __init__(self, price):
        super().__init__(f"{price.item} is too dear")
        self.price = price
def priced(item):
    return Price(item, len(item) * 100)
"""

PROGRAM = """
import json, sys
from dataclasses import dataclass
from pathlib import Path
from opchain import StreamExecutionEnvironment
from opchain.datastream import MapFunction
import shop.prices

@dataclass
class Mine:  # of the main program: no executor can import it
    price: shop.prices.Price

class MineError(Exception):
    pass

class ReadsFiles(MapFunction):
    def open(self, context):
        files = context.get_distributed_cache()
        self.tax = files.get_file("tax").read_text()
        self.relative = Path("unpacked/text.txt").read_text()
        self.inside = (files.get_file("unpacked") / "text.txt").read_text()
    def map(self, mine):
        import opchain
        return [mine.price.item, mine.price.cents, self.tax, self.relative, self.inside,
                ".zip" in opchain.__file__]

def too_dear(item):
    raise shop.prices.TooDearError(shop.prices.priced(item))

def mine_error(item):
    raise MineError(item)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.register_cached_file(sys.argv[1], "tax")
env.add_python_archive(sys.argv[2], "unpacked")
prices = env.from_collection(["egg", "ham"]).rebalance().map(shop.prices.priced)
with prices.map(Mine).rebalance().map(ReadsFiles()).execute_and_collect() as found:
    print(json.dumps(sorted(found)))
env.from_collection([1, 2, 3]).rebalance().map(lambda x: x * 2).print()
env.execute()
for function, kind in ((too_dear, shop.prices.TooDearError), (mine_error, MineError)):
    env.from_collection(["egg"]).rebalance().map(function).print()
    try:
        env.execute()
    except kind as error:
        print(kind.__name__, error, getattr(error, "price", ""))
"""


def bare_python() -> str | None:
    """A Python of this minor version without the packages of this one, if there is one."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = Path(sys.base_prefix, "bin", name)
    if not python.exists():
        return None
    has_it = subprocess.run(
        [python, "-c", "import cloudpickle, opchain"], capture_output=True, check=False
    )
    return None if has_it.returncode == 0 else str(python)


@pytest.mark.skipif(bare_python() is None, reason="there is no Python without opchain")
def test_executors_without_any_packages_get_all_code_of_a_job(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    for name, text in {
        "program.py": PROGRAM,
        "shop/__init__.py": "",
        "shop/prices.py": HELPER,
        "tax.txt": "19",
        "in/text.txt": "packed",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", tmp_path / "in")
    done = run_program(
        str(tmp_path / "program.py"),
        str(tmp_path / "tax.txt"),
        archive,
        PYSPARK_SUBMIT_ARGS=f"--master {cluster.url} --executor-memory 512m pyspark-shell",
        PYSPARK_PYTHON=bare_python(),
        SPARK_LOCAL_IP="127.0.0.1",
        PYTHONPATH=None,
    )
    assert done.exit_code == 0, done.err
    lines = done.out.splitlines()
    assert json.loads(lines[0]) == [
        ["egg", 300, "19", "packed", "packed", True],
        ["ham", 300, "19", "packed", "packed", True],
    ]
    assert sorted(lines[1:4], key=lambda line: line[3:]) == ["1> 2", "2> 4", "1> 6"]
    assert lines[4:] == [
        "TooDearError egg is too dear Price(item='egg', cents=300)",
        "MineError egg ",
    ]
