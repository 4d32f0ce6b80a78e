"""The command that is printed; tests/spark/test_submitted_to_a_cluster.py runs it."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

PROGRAM = "import prices\n"


@pytest.fixture
def program(write: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program with a module beside it, in the working directory, and a Spark that prints its arguments."""
    write(PROGRAM)
    write("X = 1\n", "prices.py")
    script = write('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n', "spark/bin/spark-submit")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("SPARK_HOME", "spark")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return "clicks.py"


def words(result: Any) -> list[str]:
    """The words of the command that was printed, behind spark-submit."""
    assert result.exit_code == 0, result.stderr
    return in_shell(result.stdout)[1:]


def in_shell(text: str) -> list[str]:
    return shlex.split(text.replace("\\\n", ""))


OWN = f"{Path('dist', 'opchain.zip')},{Path('dist', 'clicks-modules.zip')}"
HERE = ["--conf", f"spark.pyspark.driver.python={sys.executable}"]


def test_submit_ships_opchain_and_the_modules_beside_the_program(program: str, run: Any) -> None:
    # opchain's options end at the program's first own argument.
    done = run("submit", program, "--master", "spark://h:1", "--dry-run", "--to", "9")
    expected = ["--master", "spark://h:1", "--py-files", OWN, *HERE, program, "--to", "9"]
    assert words(done) == expected
    with zipfile.ZipFile("dist/clicks-modules.zip") as archive:
        assert archive.namelist() == ["prices.py"]
    assert zipfile.is_zipfile("dist/opchain.zip")


def test_submit_passes_the_properties_file_and_then_each_conf(program: str, run: Any) -> None:
    Path("conf").mkdir()
    Path("conf/spark-defaults.conf").write_text(
        "spark.master yarn\nspark.pyspark.driver.python /p\n"
    )
    done = run("submit", program, "--conf-dir", "conf", "--conf", "spark.a=b=c", "--dry-run")
    expected = ["--properties-file", str(Path("conf/spark-defaults.conf")), "--py-files", OWN]
    assert words(done) == [*expected, "--conf", "spark.a=b=c", program]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "key"),
    [
        ("yarn", "spark.yarn.appMasterEnv.PYTHONPATH"),
        ("k8s://h", "spark.kubernetes.driverEnv.PYTHONPATH"),
    ],
)
def test_submit_ships_packages_as_an_archive(program: str, run: Any, master: str, key: str) -> None:
    Path("requirements.txt").touch()
    done = run(
        *("submit", program, "--master", master, "--deploy-mode", "cluster"),
        *("--requirements", "requirements.txt", "--dry-run"),
    )
    found = words(done)
    assert found[found.index("--archives") + 1] == f"{Path('dist/clicks-packages.zip')}#packages"
    confs = [found[at + 1] for at, word in enumerate(found) if word == "--conf"]
    assert confs == ["spark.executorEnv.PYTHONPATH=packages", f"{key}=packages"]


def test_submit_ships_a_wheel_as_a_zip(program: str, run: Any) -> None:
    with zipfile.ZipFile("thing-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("thing.py", "")
    Path("more.py").touch()
    done = run(
        *("submit", program, "--py-files", "thing-1-py3-none-any.whl"),
        *("--py-files", "more.py", "--py-files", "s3://b/x.zip", "--dry-run"),
    )
    found = words(done)
    py_files = found[found.index("--py-files") + 1]
    copy = Path("dist/thing-1-py3-none-any.zip")
    assert py_files == f"{OWN},{copy},more.py,s3://b/x.zip"
    assert zipfile.is_zipfile(copy)


def test_submit_in_cluster_mode_without_packages_prints_a_note(program: str, run: Any) -> None:
    done = run("submit", program, "--master", "yarn", "--deploy-mode", "cluster", "--dry-run")
    assert "in cluster mode the driver needs the packages" in done.stderr
    assert not any("driver.python" in word for word in words(done))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--conf", "nonsense"], "--conf 'nonsense' is not KEY=VALUE"),
        (["--conf-dir", "nowhere"], "needs a file spark-defaults.conf"),
        (["--py-files", "none.zip"], "--py-files none.zip: there is no such file"),
        (["--archive", "none.zip#env"], "--archive none.zip: there is no such file"),
    ],
)
def test_submit_refuses_invalid_options(
    program: str, run: Any, options: list[str], message: str
) -> None:
    done = run("submit", program, *options, "--dry-run")
    assert done.exit_code == 2
    assert message in done.stderr


def test_submit_refuses_a_wrong_spark_home(program: str, run: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("SPARK_HOME", "elsewhere")
    done = run("submit", program, "--dry-run")
    assert done.exit_code == 2
    assert "SPARK_HOME is 'elsewhere'" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_submit_runs_the_command_that_dry_run_prints(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opchain", "submit", program, "--master", "local[1]", "-x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7
    printed = in_shell(done.stderr)
    assert Path(printed[0]) == Path("spark/bin/spark-submit")
    assert done.stdout.splitlines() == printed[1:]
    assert done.stdout.splitlines()[-2:] == [program, "-x"]


SECRETS = (
    "--conf",
    "spark.hadoop.fs.s3a.secret.key=hush",
    "--conf",
    "spark.my.url=jdbc:postgresql://h/d?user=ada&password=hush",
)


def test_submit_dry_run_does_not_print_secrets(program: str, run: Any) -> None:
    options = ("--db-password", "hush", "--token=hush", "--to", "9")
    done = run("submit", program, *SECRETS, "--dry-run", "--", *options)
    assert done.exit_code == 0, done.stderr
    assert "hush" not in done.stdout + done.stderr
    assert "--show-secrets prints it" in done.stderr
    printed = words(done)
    assert "spark.hadoop.fs.s3a.secret.key=*****" in printed
    assert printed[-5:] == ["--db-password", "*****", "--token=*****", "--to", "9"]
    shown = run("submit", program, *SECRETS, "--dry-run", "--show-secrets", "--", *options)
    assert words(shown)[-5:] == list(options)
    assert shown.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_submit_passes_secrets_to_spark_submit(program: str) -> None:
    command = [sys.executable, "-m", "opchain", "submit", program, *SECRETS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "hush" not in done.stderr
    assert "spark.hadoop.fs.s3a.secret.key=hush" in done.stdout.splitlines()


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("nope.py", "there is no file nope.py"),
        (
            "--executor-memory",
            "--executor-memory is not an option of 'opchain submit'; pass settings of Spark",
        ),
        ("clicks.py:build", "clicks.py:build names a function"),
        (
            "clicks",
            "clicks: spark-submit runs a file as Python only if its name ends in .py; rename it",
        ),
    ],
)
def test_submit_refuses_files_that_spark_cannot_run(
    write: Any, run: Any, file: str, said: str
) -> None:
    write(PROGRAM, "clicks")
    done = run("submit", file, "--dry-run")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"opchain: {said}")


@pytest.mark.parametrize("master", ["sprak://h:1", "spark://", "local[", "yarn-client", "h:7077"])
def test_submit_refuses_an_invalid_master(program: str, run: Any, master: str) -> None:
    done = run("submit", program, "--master", master, "--dry-run")
    assert done.exit_code == 2
    assert f"--master {master} is not a master of Spark; use spark://HOST:PORT" in done.stderr


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,3]", "k8s://https://h", "yarn"])
def test_submit_accepts_the_masters_of_spark(program: str, run: Any, master: str) -> None:
    assert run("submit", program, "--master", master, "--dry-run").exit_code == 0


BARE = [sys.executable, "-I", "-S", "-c"]
"""Python without site-packages: nothing but the standard library."""


def test_package_writes_a_zip_with_all_of_opchain(
    run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("package")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"opchain: note: {Path('dist', 'opchain.zip')} written\n"
    code = "import sys; sys.path.insert(0, 'dist/opchain.zip'); import opchain.datastream as d, "
    code += "opchain.runtime.spark.stage_tasks, cloudpickle; print(d.__file__)"
    out = subprocess.run([*BARE, code], capture_output=True, text=True, check=True).stdout
    assert Path(out.strip()) == Path("dist/opchain.zip/opchain/datastream/__init__.py")


def test_package_writes_the_same_bytes_for_the_same_sources(run: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "deep" / "second.zip"
    assert run("package", "-o", first).exit_code == 0
    assert run("package", "--output", second).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_package_includes_every_module_once(run: Any, tmp_path: Path) -> None:
    run("package", "-o", tmp_path / "opchain.zip")
    with zipfile.ZipFile(tmp_path / "opchain.zip") as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert "opchain/datastream/__init__.py" in names


def test_package_fails_if_the_file_cannot_be_written(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("package", "-o", tmp_path / "file" / "opchain.zip")
    assert done.exit_code == 2
    assert "opchain: cannot write " in done.stderr


@pytest.mark.parametrize("kind", ["pyc", "properties", "zip"])
def test_package_includes_no_other_files(run: Any, tmp_path: Path, kind: str) -> None:
    run("package", "-o", tmp_path / "opchain.zip")
    with zipfile.ZipFile(tmp_path / "opchain.zip") as archive:
        assert [name for name in archive.namelist() if name.endswith(kind)] == []
