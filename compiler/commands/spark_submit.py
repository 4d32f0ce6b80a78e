"""The command line of spark-submit for a program: what it is given, and in which order."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opchain.compiler.commands.failures import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DEFAULTS = "spark-defaults.conf"
CLUSTER = "cluster"
PYTHON = "spark.pyspark.python"
DRIVER_PYTHON = "spark.pyspark.driver.python"


@dataclass(frozen=True, slots=True)
class Submission:
    """What spark-submit is told; `configuration` are the `--conf`s, which win over `properties`."""

    program: Path
    arguments: Sequence[str] = ()
    master: str | None = None
    deploy_mode: str | None = None
    properties: Path | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    py_files: Sequence[str] = ()
    archives: Sequence[str] = ()

    def command(self, spark_submit: Path) -> list[list[str]]:
        """The words of the command, by the lines that it is printed in."""
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
    """The command for a shell, an option a line."""
    return " \\\n    ".join(map(shlex.join, lines)) + "\n"


def read_properties(folder: Path) -> tuple[Path, dict[str, str]]:
    """The spark-defaults.conf of a folder, and what it says.

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
    said = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return path, {words[0]: words[1] if len(words) > 1 else "" for words in said}


def configured(
    given: Mapping[str, str],
    properties: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    is_cluster_mode: bool,
    this_python: str,
    packed_python: str | None,
) -> dict[str, str]:
    """The `--conf`s: those given, and which Python runs driver and executors where nobody said.

    In client mode the driver is the Python that runs opchain. An environment that was sent along gives the
    executors theirs, and in cluster mode the driver.
    """
    said = {**properties, **given}
    ours = {}
    if packed_python is not None and PYTHON not in said and "PYSPARK_PYTHON" not in environment:
        ours[PYTHON] = packed_python
    is_driver_said = DRIVER_PYTHON in said or "PYSPARK_DRIVER_PYTHON" in environment
    if not is_cluster_mode and not is_driver_said:
        ours[DRIVER_PYTHON] = this_python
    return {**ours, **given}
