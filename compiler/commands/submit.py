"""`opchain submit`: a program on a cluster, by the spark-submit command that it prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from opchain.compiler.commands.failures import CommandError, clear_errors
from opchain.compiler.commands.output import answer, note
from opchain.compiler.commands.package import DEFAULT_FOLDER, write_archive
from opchain.compiler.commands.program_arguments import PASSES_ARGUMENTS_ON, takes_arguments
from opchain.compiler.commands.program_command import ProgramCommand
from opchain.compiler.commands.program_file import whole_program
from opchain.compiler.commands.program_modules import modules_beside
from opchain.compiler.commands.shipped_packages import FOLDER, install_packages, packed_python
from opchain.compiler.commands.spark_submit import (
    CLUSTER,
    Submission,
    command_text,
    configured,
    read_properties,
)
from opchain.runtime.spark.source_archive import opchain_sources, zipped
from opchain.runtime.spark.spark_home import spark_home


@click.command(
    cls=ProgramCommand,
    context_settings=PASSES_ARGUMENTS_ON,
    short_help="Runs FILE by spark-submit, with all that its executors need.",
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
    help="Unpacked as NAME where tasks run; one with bin/python in it (venv-pack, conda-pack) becomes their Python.",
)
@click.option(
    "--requirements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Packages for the executors: pip installs them into an archive that goes along.",
)
@click.option(
    "--build-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Where opchain.zip and the program's own archives are written.",
)
@click.option("--dry-run", is_flag=True, help="Write the archives and print the command only.")
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
) -> None:
    """Runs FILE by spark-submit, with all that its executors need; prints the command first.

    opchain and the modules beside FILE go along as zips. FILE gets ARGUMENTS and every option that is not
    listed here; use -- in front of its own options of the same name.

    Exit codes: that of spark-submit; 2 where the command cannot be made.
    """
    path = _program(file)
    with clear_errors():
        spark_submit = spark_home() / "bin" / "spark-submit"
    properties, said = (None, {}) if conf_dir is None else read_properties(conf_dir)
    given = dict(map(_setting, confs))
    said = {**said, **given}
    is_cluster_mode = (deploy_mode or said.get("spark.submit.deployMode")) == CLUSTER
    if requirements is not None:
        archive = build_dir / f"{path.stem}-packages.zip"
        install_packages(requirements, archive)
        archives = (*archives, f"{archive}#{FOLDER}")
        for key in _import_path_keys(master or said.get("spark.master", ""), is_cluster_mode):
            given[key] = ":".join(filter(None, (FOLDER, said.get(key))))
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
            said,
            os.environ,
            is_cluster_mode=is_cluster_mode,
            this_python=sys.executable,
            packed_python=packed_python(archives),
        ),
        py_files=[*_own_files(path, build_dir), *(_py_file(name, build_dir) for name in py_files)],
        archives=archives,
    )
    lines = submission.command(spark_submit)
    if dry_run:
        answer(command_text(lines))
        return
    click.echo(command_text(lines), err=True, nl=False)
    _become([word for line in lines for word in line])


def _program(file: str) -> Path:
    if file.startswith("-") and not Path(file).exists():
        raise CommandError(
            f"{file} is no option of 'opchain submit'; settings of Spark are given as --conf KEY=VALUE, such "
            "as --conf spark.executor.memory=4g, and options of the program come behind FILE"
        )
    path = whole_program(file)
    if path.suffix != ".py":
        raise CommandError(f"{path}: spark-submit takes only a name that ends in .py for Python")
    return path


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise CommandError(f"--conf '{text}' is not KEY=VALUE")
    return key, value


def _import_path_keys(master: str, is_cluster_mode: bool) -> list[str]:
    """The settings that tell Python processes where the folder of packages is."""
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
    """A file as Spark takes it: executors import no wheel, but the same bytes called a zip."""
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
    """Goes on as another program, so that signals and the exit code are its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is meant
    except OSError as error:
        raise CommandError(f"{command[0]} cannot be run: {error.strerror}") from None
