"""What is installed is what is in the folders, and executors can run from a zip of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from forms import job_of

ROOT = Path(__file__).parent.parent

PACKED = [
    "opchain",
    "compiler",
    "runtime",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "NOTICE",
    "MANIFEST.in",
]
OFFLINE = ["--quiet", "--no-deps", "--no-build-isolation"]


def modules() -> set[str]:
    """The files of the package by their places in it, found without following links."""
    below = {
        f"opchain/{path.relative_to(ROOT).as_posix()}"
        for half in ("compiler", "runtime")
        for path in (ROOT / half).rglob("*.py")
    }
    root = {path.relative_to(ROOT).as_posix() for path in (ROOT / "opchain").glob("*.py")}
    for folder in ("common", "dataset", "datastream", "metrics", "table", "testing", "util"):
        root |= {
            path.relative_to(ROOT).as_posix() for path in (ROOT / "opchain" / folder).rglob("*.py")
        }
    return below | root


def test_every_folder_with_code_is_a_package() -> None:
    folders = {place.rpartition("/")[0] for place in modules()}
    assert [folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the tracked files, without the network."""
    pytest.importorskip("setuptools", minversion="77")
    target = tmp_path_factory.mktemp("wheel")
    copy = target / "source"
    copy.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *PACKED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        source = ROOT / name
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            (copy / name).symlink_to(source.readlink())
        elif source.is_file():
            (copy / name).write_bytes(source.read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *OFFLINE, "--wheel-dir", str(target), str(copy)],
        check=True,
        capture_output=True,
    )
    (built,) = target.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_has_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith(".py")}
    assert packed == modules()


def test_the_wheel_has_all_parts_of_the_plan_page_and_every_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    static = ROOT / "compiler" / "plan" / "page" / "static"
    parts = {path.relative_to(ROOT) for path in static.rglob("*") if path.is_file()}
    assert len(parts) > 10
    assert {f"opchain/{path.as_posix()}" for path in parts} <= packed
    licences = {name.partition("/licenses/")[2] for name in packed if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE", "compiler/plan/page/static/elk/LICENSE.md"}


@pytest.mark.slow
def test_the_zip_for_spark_is_the_same_from_a_wheel_and_from_a_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import opchain; print(opchain.__file__); "
    )
    code += "from opchain.compiler.cli import main; main()"
    for place, name in ((tmp_path / "installed", "wheel.zip"), (tmp_path, "checkout.zip")):
        command = [sys.executable, "-c", code, str(place), "package", "-o", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(str(tmp_path)) is (name == "wheel.zip")
    assert (tmp_path / "wheel.zip").read_bytes() == (tmp_path / "checkout.zip").read_bytes()


PLAN_PAGE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from opchain import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 3).print()
assert env.explain().frame()._repr_html_().startswith("<iframe")
from opchain.compiler.cli import main
import opchain
assert "opchain.zip" in opchain.__file__
main()
"""


@pytest.mark.slow
def test_the_zip_for_spark_submit_draws_the_plan_page(tmp_path: Path) -> None:
    zipped = tmp_path / "opchain.zip"
    command = [sys.executable, "-m", "opchain", "package", "-o", str(zipped)]
    subprocess.run(command, check=True, capture_output=True)
    page = tmp_path / "page.html"
    example = ROOT / "examples" / "word_count.py"
    asked = ["plan", str(example), "--format", "html", "-o", str(page)]
    subprocess.run([sys.executable, "-c", PLAN_PAGE, str(zipped), *asked], check=True)
    installed = tmp_path / "installed.html"
    asked[-1] = str(installed)
    subprocess.run([sys.executable, "-m", "opchain", *asked], check=True, capture_output=True)
    assert page.read_bytes() == installed.read_bytes()


RUN_TASKS = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from opchain.runtime.shipping.outcome import read_outcome
from opchain.runtime.task.stream_task import StreamTask
with open(sys.argv[2], "rb") as file:
    job, uid = pickle.load(file)
waiting = {}
for task in job.tasks:
    buffers = sorted(waiting.pop(task, []), key=lambda buffer: buffer[1:4])
    for buffer in StreamTask(job, task, iter(buffers)).run():
        waiting.setdefault(buffer.target, []).append(buffer)
print(sorted(read_outcome(job, waiting.pop(-1)).collected(uid)), waiting)
assert not {name.partition(".")[0] for name in sys.modules} & {"numpy", "cloudpickle", "mmh3"}
assert not any(name.startswith("opchain.compiler") for name in sys.modules)
"""

LOAD_ALL = """
import importlib, sys, zipfile
sys.path.insert(0, sys.argv[1])
names = [
    name[:-3].replace("/", ".").removesuffix(".__init__")
    for name in zipfile.ZipFile(sys.argv[1]).namelist()
    if name.startswith("opchain/runtime/") and name.endswith(".py")
    and not name.startswith("opchain/runtime/spark/")
]
for name in names:
    importlib.import_module(name)
assert len(names) > 100, len(names)
assert "opchain.zip" in sys.modules["opchain.runtime"].__file__
assert not any(name.startswith("opchain.compiler") for name in sys.modules)
"""


@pytest.fixture
def archive(wheel: Path, tmp_path: Path) -> Path:
    """The wheel as Spark ships it: a zip on the import path."""
    copy = tmp_path / "opchain.zip"
    copy.write_bytes(wheel.read_bytes())
    return copy


def bare(program: str, *arguments: Path) -> str:
    """Runs a program by an interpreter that has the standard library alone; its output."""
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_executors_import_all_runtime_modules_with_only_the_standard_library(archive: Path) -> None:
    bare(LOAD_ALL, archive)


@pytest.mark.parametrize("form", ["interpreted", "inlined"])
@pytest.mark.slow
def test_executors_run_tasks_with_only_the_standard_library(
    archive: Path, tmp_path: Path, form: str
) -> None:
    def draw(env: Any) -> None:
        words = env.from_collection(["to be or", "not to be"]).rebalance().flat_map(str.split)
        words.map(str.upper).key_by(len).map(str.title).rebalance().collect_async()

    job = job_of(draw, form, parallelism=2)
    uid = job.vertices[-1].operators[-1].uid
    pickled = tmp_path / "job"
    pickled.write_bytes(pickle.dumps((job, uid)))
    assert bare(RUN_TASKS, archive, pickled) == "['Be', 'Be', 'Not', 'Or', 'To', 'To'] {}\n"
