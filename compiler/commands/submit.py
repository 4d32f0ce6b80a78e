"""`opchain submit`: runs a program on a cluster with spark-submit. `opchain package`: the zip that it needs.

A running job sends the modules that its program has loaded by itself (runtime/shipping). In cluster mode the driver
runs on another machine, so spark-submit must bring along the modules that the program will import.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass, field
from modulefinder import ModuleFinder
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opchain.compiler.command_line.failures import CommandError, clear_errors
from opchain.compiler.command_line.output import answer, examples, note
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    takes_arguments,
)
from opchain.compiler.command_line.program_file import whole_program
from opchain.runtime.redaction import HIDDEN, is_secret, redacted_setting
from opchain.runtime.spark.session import spark_home
from opchain.runtime.spark.worker_path import opchain_sources, zipped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_FOLDER = Path("dist")


@click.command(
    short_help="Writes the installed opchain as a zip for spark-submit.",
    epilog=examples("opchain package", "opchain package -o opchain.zip"),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_FOLDER / "opchain.zip",
    show_default=True,
    help="The zip to write.",
)
def package(output: Path) -> None:
    """Writes the installed opchain as a zip, for spark-submit --py-files dist/opchain.zip app.py.

    Executors need no other part of opchain. The same version gives the same bytes, whether it was installed from a
    wheel or as a checkout.
    """
    write_archive(output, zipped(opchain_sources(with_page=True)))
    note(f"{output} written")


def write_archive(path: Path, data: bytes) -> None:
    """Writes a file for spark-submit, and the folders above it.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None


def modules_beside(program: Path) -> dict[str, bytes]:
    """The sources that a program imports from its own folder, by their paths in that folder.

    If a module of a package is imported, all modules of the package are returned, without data files. Imports by a
    computed name are not found.
    """
    folder = program.resolve().parent
    finder = ModuleFinder(path=[str(folder)])
    finder.run_script(str(program))
    found: dict[str, bytes] = {}
    for name, module in sorted(finder.modules.items()):
        path: str | None = getattr(module, "__file__", None)
        if name == "__main__" or path is None:
            continue
        top_level = folder / name.partition(".")[0]
        files = sorted(top_level.rglob("*.py")) if top_level.is_dir() else [Path(path)]
        for file in files:
            found[file.relative_to(folder).as_posix()] = file.read_bytes()
    return found


FOLDER = "packages"
"""The name of the folder with installed packages, in the working directory of the tasks."""


def archive_name(archive: str) -> str:
    """The folder in which the executors find an archive: `env` for `env.tar.gz#env`."""
    path, _, name = archive.partition("#")
    return name or Path(path).name


def packed_python(archives: tuple[str, ...]) -> str | None:
    """The Python in the first archive that is an environment (venv-pack, conda-pack); None without one.

    Raises:
        CommandError: An archive is missing, or no archive.
    """
    for archive in archives:
        path = Path(archive.partition("#")[0])
        if "://" not in archive and _has_python(path):
            return f"./{archive_name(archive)}/bin/python"
    return None


def install_packages(requirements: Path, archive: Path) -> None:
    """Installs requirements into an archive. Executors must have the platform and Python of this machine.

    Raises:
        CommandError: pip is missing or fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--target", folder]
        done = subprocess.run(  # noqa: S603 - the pip of this Python
            [sys.executable, "-m", "pip", "install", *options, "--requirement", str(requirements)],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise CommandError(f"pip could not install the packages of {requirements}: {reason}")
        root = Path(folder)
        found = sorted(path for path in root.rglob("*") if path.is_file())
        write_archive(
            archive,
            zipped({path.relative_to(root).as_posix(): path.read_bytes() for path in found}),
        )


def _has_python(path: Path) -> bool:
    if not path.is_file():
        raise CommandError(f"--archive {path}: there is no such file")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    else:
        try:
            with tarfile.open(path) as tar:
                names = tar.getnames()
        except tarfile.TarError:
            raise CommandError(f"--archive {path} is neither a zip nor a tar file") from None
    return any(name.removeprefix("./") == "bin/python" for name in names)


DEFAULTS = "spark-defaults.conf"
CLUSTER = "cluster"
_MASTER = re.compile(r"(spark|k8s)://.|yarn$|local(\[.+\])?$|local-cluster\[.+\]$")
"""The masters that Spark accepts. Spark itself checks this only after its JVM has started."""
PYTHON = "spark.pyspark.python"
DRIVER_PYTHON = "spark.pyspark.driver.python"


@dataclass(frozen=True, slots=True)
class Submission:
    """The arguments of spark-submit. `configuration` has the `--conf`s, which override `properties`."""

    program: Path
    arguments: Sequence[str] = ()
    master: str | None = None
    deploy_mode: str | None = None
    properties: Path | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    py_files: Sequence[str] = ()
    archives: Sequence[str] = ()

    def command(self, spark_submit: Path) -> list[list[str]]:
        """The words of the command, grouped by printed line."""
        lines = [[str(spark_submit)]]
        for option, value in (
            ("--master", self.master),
            ("--deploy-mode", self.deploy_mode),
            ("--properties-file", self.properties),
            ("--py-files", ",".join(self.py_files)),
            ("--archives", ",".join(self.archives)),
        ):
            if value:
                lines.append([option, str(value)])
        lines += [["--conf", f"{key}={value}"] for key, value in self.configuration.items()]
        return [*lines, [str(self.program), *self.arguments]]


def command_text(lines: Sequence[Sequence[str]]) -> str:
    """The command for a shell, one option per line."""
    return " \\\n    ".join(map(shlex.join, lines)) + "\n"


def without_secrets(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """The words of a command. Values are hidden if the name of their setting or option looks like that of a secret."""
    found = []
    for line in lines:
        shown: list[str] = []
        for word, before in zip(line, ("", *line), strict=False):
            is_value = before.startswith("--") and "=" not in before and is_secret(before)
            shown.append(HIDDEN if is_value else redacted_setting(word))
        found.append(shown)
    return found


def read_properties(folder: Path) -> tuple[Path, dict[str, str]]:
    """The spark-defaults.conf of a folder, and its settings.

    Raises:
        CommandError: There is none.
    """
    path = folder / DEFAULTS
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise CommandError(
            f"--conf-dir {folder} needs a file {DEFAULTS}, which cannot be read: {error.strerror}"
        ) from None
    lines = (line.strip() for line in text.splitlines())
    settings = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return path, {words[0]: words[1] if len(words) > 1 else "" for words in settings}


def configured(
    given: Mapping[str, str],
    properties: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    is_cluster_mode: bool,
    this_python: str,
    packed_python: str | None,
) -> dict[str, str]:
    """The `--conf`s: the given ones, and the Python of driver and executors if no setting names it.

    In client mode the driver uses the Python that runs opchain. Executors use the Python of an environment that is
    sent along; in cluster mode the driver uses it too.
    """
    settings = {**properties, **given}
    ours = {}
    if packed_python is not None and PYTHON not in settings and "PYSPARK_PYTHON" not in environment:
        ours[PYTHON] = packed_python
    names_driver = DRIVER_PYTHON in settings or "PYSPARK_DRIVER_PYTHON" in environment
    if not is_cluster_mode and not names_driver:
        ours[DRIVER_PYTHON] = this_python
    return {**ours, **given}


@click.command(
    cls=ProgramCommand,
    short_help="Runs FILE with spark-submit, and sends its modules.",
    epilog=examples(
        "opchain submit --master spark://host:7077 job.py",
        "opchain submit --master yarn --deploy-mode cluster --archive env.tar.gz#env job.py",
    ),
)
@click.argument("file")
@takes_arguments
@click.option("--master", metavar="URL", help="spark://host:7077, yarn, k8s://..., local[4].")
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", CLUSTER]),
    help="Where the driver runs: here (Spark's default), or on the cluster.",
)
@click.option("--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option(
    "--conf-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder with a spark-defaults.conf, such as spark-conf/standalone.",
)
@click.option(
    "--py-files", multiple=True, metavar="FILE", help="More Python code: a .py, .zip or .whl file."
)
@click.option(
    "--archive",
    "archives",
    multiple=True,
    metavar="FILE[#NAME]",
    help="An archive that is unpacked as NAME for tasks; its bin/python, if it has one (venv-pack, conda-pack), runs them.",
)
@click.option(
    "--requirements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Packages for the executors: pip installs them into an archive, which is sent.",
)
@click.option(
    "--build-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Where opchain.zip and the program's own archives are written.",
)
@click.option("--dry-run", is_flag=True, help="Write the archives and print the command only.")
@click.option("--show-secrets", is_flag=True, help="Print the command with passwords and tokens.")
def submit(
    file: str,
    arguments: tuple[str, ...],
    master: str | None,
    deploy_mode: str | None,
    confs: tuple[str, ...],
    conf_dir: Path | None,
    py_files: tuple[str, ...],
    archives: tuple[str, ...],
    requirements: Path | None,
    build_dir: Path,
    dry_run: bool,
    show_secrets: bool,
) -> None:
    """Runs FILE with spark-submit. Prints the command first.

    opchain and the modules beside FILE are sent as zips. FILE gets ARGUMENTS and every option that is not listed here.
    Put -- before its own options of the same name.

    Exit codes: the one of spark-submit; 2 if the command cannot be built.
    """
    path = _program(file)
    if master is not None and _MASTER.match(master) is None:
        raise CommandError(
            f"--master {master} is not a master of Spark; use spark://HOST:PORT, k8s://URL, yarn, local, or local[N]"
        )
    with clear_errors():
        spark_submit = spark_home() / "bin" / "spark-submit"
    properties, settings = (None, {}) if conf_dir is None else read_properties(conf_dir)
    given = dict(map(_setting, confs))
    settings = {**settings, **given}
    is_cluster_mode = (deploy_mode or settings.get("spark.submit.deployMode")) == CLUSTER
    if requirements is not None:
        archive = build_dir / f"{path.stem}-packages.zip"
        install_packages(requirements, archive)
        archives = (*archives, f"{archive}#{FOLDER}")
        for key in _import_path_keys(master or settings.get("spark.master", ""), is_cluster_mode):
            given[key] = ":".join(filter(None, (FOLDER, settings.get(key))))
    elif is_cluster_mode and not archives:
        note(
            "in cluster mode the driver needs the packages of opchain and of the program where it runs: "
            "in its image, or by --archive"
        )
    submission = Submission(
        program=path,
        arguments=arguments,
        master=master,
        deploy_mode=deploy_mode,
        properties=properties,
        configuration=configured(
            given,
            settings,
            os.environ,
            is_cluster_mode=is_cluster_mode,
            this_python=sys.executable,
            packed_python=packed_python(archives),
        ),
        py_files=[*_own_files(path, build_dir), *(_py_file(name, build_dir) for name in py_files)],
        archives=archives,
    )
    lines = submission.command(spark_submit)
    shown = lines if show_secrets else without_secrets(lines)
    if dry_run:
        answer(command_text(shown))
    else:
        click.echo(command_text(shown), err=True, nl=False)
    if shown != lines:
        note(f"what looks like a secret is shown as {HIDDEN}; --show-secrets prints it")
    if dry_run:
        return
    _become([word for line in lines for word in line])


def _program(file: str) -> Path:
    if file.startswith("-") and not Path(file).exists():
        raise CommandError(
            f"{file} is not an option of 'opchain submit'; pass settings of Spark as --conf "
            f"KEY=VALUE, such as --conf spark.executor.memory=4g, and put options of the program "
            f"after FILE"
        )
    path = whole_program(file)
    if path.suffix != ".py":
        raise CommandError(
            f"{path}: spark-submit runs a file as Python only if its name ends in .py; rename it"
        )
    return path


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise CommandError(f"--conf '{text}' is not KEY=VALUE")
    return key, value


def _import_path_keys(master: str, is_cluster_mode: bool) -> list[str]:
    """The settings that add the folder of packages to the import path of Python processes."""
    keys = ["spark.executorEnv.PYTHONPATH"]
    if is_cluster_mode:
        on_kubernetes = master.startswith("k8s:")
        driver = "spark.kubernetes.driverEnv" if on_kubernetes else "spark.yarn.appMasterEnv"
        keys.append(f"{driver}.PYTHONPATH")
    return keys


def _own_files(program: Path, folder: Path) -> list[str]:
    """The zips of opchain and of the modules beside the program."""
    written = [folder / "opchain.zip"]
    write_archive(written[0], zipped(opchain_sources(with_page=True)))
    modules = modules_beside(program)
    if modules:
        written.append(folder / f"{program.stem}-modules.zip")
        write_archive(written[1], zipped(modules))
    return [str(path) for path in written]


def _py_file(path: str, folder: Path) -> str:
    """A file in a form that executors import: a wheel is copied to a zip of another name, with the same bytes."""
    if "://" in path:
        return path
    file = Path(path)
    if not file.is_file():
        raise CommandError(f"--py-files {path}: there is no such file")
    if file.suffix != ".whl":
        return path
    copy = folder / f"{file.stem}.zip"
    write_archive(copy, file.read_bytes())
    return str(copy)


def _become(command: list[str]) -> None:
    """Replaces this process by another program, which then receives signals and sets the exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is meant
    except OSError as error:
        raise CommandError(f"{command[0]} cannot be run: {error.strerror}") from None


COMMANDS = (
    package,
    submit,
)
