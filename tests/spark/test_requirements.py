from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.errors import SparkUnavailableError
from opchain.runtime.spark import session
from opchain.runtime.spark.session import require_java, require_pyspark

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(home: Path, script: str, release: str | None = None) -> dict[str, str]:
    """A JAVA_HOME with a shell script as its java."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    java.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release, "utf-8")
    return {"JAVA_HOME": str(home), "PATH": ""}


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


@pytest.mark.parametrize(
    ("script", "release"),
    [
        (says("17"), None),
        (says("17.0.15"), None),
        (says("25.0.1"), None),
        (says("24-ea"), None),
        ("exit 1", 'IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n'),
    ],
)
def test_a_supported_java_is_accepted(tmp_path: Path, script: str, release: str | None) -> None:
    require_java(fake_java(tmp_path, script, release))


@pytest.mark.parametrize(
    ("script", "release", "message"),
    [
        (says("11.0.2"), None, "Java 11 at .*bin/java is too old: Spark needs Java 17 or newer"),
        (says("1.8.0_392"), None, "Java 8 at "),
        ("exit 0", 'JAVA_VERSION="16"', "Java 16 at "),
        ("exit 3", None, "printed no version; it printed: nothing, with exit code 3"),
        ("echo hello", None, "printed no version; it printed: hello"),
    ],
)
def test_the_error_about_an_unsupported_java_is_one_sentence(
    tmp_path: Path, script: str, release: str | None, message: str
) -> None:
    with pytest.raises(SparkUnavailableError, match=message) as caught:
        require_java(fake_java(tmp_path, script, release))
    assert "opchain run --local" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_java_home_without_a_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailableError, match=r"JAVA_HOME is '.*', but it has no bin/java"):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_a_machine_without_java_is_refused() -> None:
    with pytest.raises(
        SparkUnavailableError, match=r"Spark needs Java, but none was found.*--local"
    ):
        require_java({"PATH": ""})


def test_a_java_that_does_not_start_is_refused(tmp_path: Path) -> None:
    environment = fake_java(tmp_path, "")
    (tmp_path / "bin" / "java").write_bytes(b"\x7fELF and nothing behind it")
    with pytest.raises(SparkUnavailableError, match="does not start"):
        require_java(environment)


def test_the_java_on_the_path_is_used_without_java_home(tmp_path: Path) -> None:
    fake_java(tmp_path, says("11"))
    with pytest.raises(SparkUnavailableError, match="Java 11"):
        require_java({"PATH": str(tmp_path / "bin")})


def test_the_error_about_a_missing_pyspark_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    with pytest.raises(SparkUnavailableError, match=r"pyspark is not installed.*--local"):
        require_pyspark()
