"""Looks for what Spark needs before it is started: one sentence instead of a shell script's complaint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.errors import SparkUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST_JAVA = 17
"""What Spark 4 needs; its class files are of that version."""

WITHOUT_SPARK = "or run in this process, without Spark: `opchain run --local FILE`, or set execution.target to local"

_VERSION = re.compile(r'(?:version|JAVA_VERSION)[ =]"(\d+)(?:\.(\d+))?')


def require_pyspark() -> None:
    """Checks that pyspark is installed.

    Raises:
        SparkUnavailableError: It is not.
    """
    if find_spec("pyspark") is None:
        raise SparkUnavailableError(
            f"pyspark is not installed: `pip install 'opchain[spark]'`, {WITHOUT_SPARK}"
        )


def require_java(environment: Mapping[str, str] = os.environ) -> None:
    """Checks that the Java that Spark's scripts would run is there, and new enough.

    Raises:
        SparkUnavailableError: It is not.
    """
    java = _java(environment)
    version = _version_from_release(java) or _version_from_java(java)
    if version < OLDEST_JAVA:
        raise SparkUnavailableError(
            f"Java {version} at {java} is too old: Spark needs Java {OLDEST_JAVA} or newer; "
            f"install it and set JAVA_HOME to it, {WITHOUT_SPARK}"
        )


def _java(environment: Mapping[str, str]) -> Path:
    """The program that Spark's scripts start: that of JAVA_HOME, else the first on the path."""
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if os.access(java, os.X_OK) or java.with_suffix(".exe").exists():
            return java
        raise SparkUnavailableError(
            f"JAVA_HOME is '{home}', but it has no bin/java: set it to the folder of a Java "
            f"{OLDEST_JAVA} or newer, {WITHOUT_SPARK}"
        )
    found = shutil.which("java", path=environment.get("PATH"))
    if found is None:
        raise SparkUnavailableError(
            f"Spark needs Java, but none was found: install Java {OLDEST_JAVA} or newer, or set "
            f"JAVA_HOME; {WITHOUT_SPARK}"
        )
    return Path(found)


def _version_from_release(java: Path) -> int | None:
    """The version as the Java's `release` file gives it: starting Java takes 50 ms or more."""
    try:
        return _version(java.resolve().parent.parent.joinpath("release").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _version_from_java(java: Path) -> int:
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailableError(
            f"Java at {java} does not start ({error}): set JAVA_HOME to a Java {OLDEST_JAVA} or "
            f"newer, "
            f"{WITHOUT_SPARK}"
        ) from error
    text = answer.stderr + answer.stdout
    version = _version(text)
    if version is None:
        said = " ".join(text.split())[:200] or f"nothing, with exit code {answer.returncode}"
        raise SparkUnavailableError(
            f"Java at {java} printed no version; it printed: {said}; set JAVA_HOME to a Java "
            f"{OLDEST_JAVA} or newer, {WITHOUT_SPARK}"
        )
    return version


def _version(text: str) -> int | None:
    """The major version: 17 for "17.0.15", and 8 for "1.8.0_392"."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)
