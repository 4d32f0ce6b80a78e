from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of
from python_packages import required_package

from opchain.datastream import MapFunction, RuntimeContext
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.dependencies import CachedFile, JobDependencies, PythonArchive
from opchain.runtime.spark.bounded_job import spark_run
from opchain.runtime.spark.worker_path import provide_imports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class ReadsFiles(MapFunction[str, str]):
    """Appends the content of the registered file `name`, or of the file `inner` in it."""

    def __init__(self, inner: str = "") -> None:
        self.inner = inner

    def open(self, runtime_context: RuntimeContext) -> None:
        self.cache = runtime_context.get_distributed_cache()

    def map(self, value: str) -> str:
        return (self.cache.get_file(value) / self.inner).read_text("utf-8")


def ran(dependencies: JobDependencies, values: list[Any], function: Any) -> list[Any]:
    job = job_of(lambda env: env.from_collection(values).rebalance().map(function).collect_async())
    (uid,) = [
        o.uid for vertex in job.vertices for o in vertex.operators if o.spec.kind == "collect_sink"
    ]
    assert uid is not None
    return list(spark_run(job, dependencies).run_here().collected(uid))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "text.txt").write_text(folder, "utf-8")
    return tmp_path


def test_cached_files_with_the_same_name_do_not_conflict(
    session: SparkSession, texts: Path
) -> None:
    files = tuple(CachedFile(str(texts / name / "text.txt"), name) for name in ("one", "other"))
    assert ran(JobDependencies(cached_files=files), ["one", "other"], ReadsFiles()) == [
        "one",
        "other",
    ]


def test_a_changed_file_is_copied_again(session: SparkSession, texts: Path) -> None:
    dependencies = JobDependencies(cached_files=(CachedFile(str(texts / "one" / "text.txt"), "f"),))
    assert ran(dependencies, ["f"], ReadsFiles()) == ["one"]
    (texts / "one" / "text.txt").write_text("changed", "utf-8")
    assert ran(dependencies, ["f"], ReadsFiles()) == ["changed"]


def test_a_folder_can_be_cached(session: SparkSession, texts: Path) -> None:
    dependencies = JobDependencies(cached_files=(CachedFile(f"file://{texts / 'one'}", "folder"),))
    assert ran(dependencies, ["folder"], ReadsFiles("text.txt")) == ["one"]


def test_a_cached_archive_is_extracted(session: SparkSession, texts: Path) -> None:
    archive = shutil.make_archive(str(texts / "packed"), "zip", texts / "one")
    dependencies = JobDependencies(archives=(PythonArchive(archive, "unpacked"),))
    assert ran(dependencies, ["unpacked"], ReadsFiles("text.txt")) == ["one"]


def imports(module: str) -> Any:
    def read(_: int) -> Any:
        import importlib  # noqa: PLC0415 - on the executor

        return importlib.import_module(module).NAME

    return read


@pytest.mark.parametrize("shape", ["module", "package", "folder", "zip", "whl"])
def test_python_files_of_every_shape_can_be_imported(
    session: SparkSession, tmp_path: Path, shape: str
) -> None:
    name = f"added_{shape}"
    text = f"NAME = {shape!r}"
    if shape in {"zip", "whl"}:
        path = tmp_path / f"{name}.{shape}"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{name}.py", text)
    else:
        path, inside = {
            "module": (tmp_path / f"{name}.py", tmp_path / f"{name}.py"),
            "package": (tmp_path / name, tmp_path / name / "__init__.py"),
            "folder": (tmp_path / "folder", tmp_path / "folder" / f"{name}.py"),
        }[shape]
        inside.parent.mkdir(exist_ok=True)
        inside.write_text(text, "utf-8")
    before = sys.path[:]
    assert ran(JobDependencies(python_files=(str(path),)), [1], imports(name)) == [shape]
    assert sys.path == before


def test_an_added_package_has_its_data_files(session: SparkSession, tmp_path: Path) -> None:
    package = tmp_path / "added_with_data"
    (package / "tables").mkdir(parents=True)
    (package / "tables" / "name.txt").write_text("from a file", "utf-8")
    text = "from importlib import resources\nNAME = (resources.files(__name__) / 'tables' / 'name.txt').read_text()"
    (package / "__init__.py").write_text(text, "utf-8")
    added = JobDependencies(python_files=(str(package),))
    assert ran(added, [1], imports(package.name)) == ["from a file"]


@pytest.mark.parametrize("first", range(6))
def test_modules_are_imported_from_the_first_python_file_that_has_them(
    session: SparkSession, tmp_path: Path, first: int
) -> None:
    module = f"added_{first}_times"
    folders = [tmp_path / f"folder{(first + number) % 6}" for number in range(6)]
    for folder in folders:
        folder.mkdir()
        (folder / f"{module}.py").write_text(f"NAME = {folder.name!r}", "utf-8")
    added = JobDependencies(python_files=tuple(map(str, folders)))
    assert ran(added, [1], imports(module)) == [f"folder{first}"]


@pytest.mark.parametrize(
    "dependencies",
    [
        JobDependencies(cached_files=(CachedFile("/nowhere/file", "f"),)),
        JobDependencies(python_files=("/nowhere/file",)),
        JobDependencies(archives=(PythonArchive("/nowhere/file", "f"),)),
    ],
)
def test_the_error_names_a_missing_file(
    session: SparkSession, dependencies: JobDependencies
) -> None:
    with pytest.raises(FileNotFoundError, match="the job needs the file '/nowhere/file'"):
        ran(dependencies, [1], str)


def test_the_interpreter_of_the_job_is_used(session: SparkSession, tmp_path: Path) -> None:
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nMARK=wrapped exec {sys.executable} "$@"\n', "utf-8")
    wrapper.chmod(0o755)

    def mark(_: int) -> Any:
        import os  # noqa: PLC0415

        return os.environ.get("MARK")

    assert ran(JobDependencies(python_executable=str(wrapper)), [1], mark) == ["wrapped"]
    assert ran(JobDependencies(), [1], mark) == [None]


def test_requirements_without_a_local_master_are_refused(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = JobDependencies(requirements="requirements.txt")
    monkeypatch.setattr(session.sparkContext, "master", "spark://host:7077")
    with pytest.raises(UnsupportedFeatureError, match=r"requirements.txt.*add_python_archive"):
        provide_imports(session.sparkContext, requirements)


def test_requirements_are_installed_on_a_local_master(
    session: SparkSession, tmp_path: Path
) -> None:
    requirements = JobDependencies(requirements=required_package(tmp_path, "tiny_on_spark"))
    assert ran(requirements, [1], imports("tiny_on_spark")) == ["tiny_on_spark"]


def test_tasks_run_in_the_folder_of_the_archives(session: SparkSession, texts: Path) -> None:
    archive = shutil.make_archive(str(texts / "packed"), "zip", texts / "one")
    dependencies = JobDependencies(archives=(PythonArchive(archive, "data"),))

    def read(_: int) -> str:
        with open("data/text.txt") as file:  # noqa: PTH123 - user programs do
            return file.read()

    before = Path.cwd()
    assert ran(dependencies, [1], read) == ["one"]
    assert ran(JobDependencies(), [1], lambda _: Path.cwd()) == [before]
