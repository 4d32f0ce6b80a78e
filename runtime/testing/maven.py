"""Servers written in Java, for tests and experiments: Maven downloads their jars once, into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from opchain.runtime.errors import StreamError


class ServerUnavailableError(StreamError):
    """A test server, such as Kafka, cannot be downloaded or started on this machine.

    What to do: Install Java and Maven, or start a server yourself.
    """


@dataclass(frozen=True)
class MavenServer:
    """A server whose jars Maven knows.

    Attributes:
        name: What people call it.
        folder_name: Below the user's cache folder; it has the version.
        artifacts: `group:artifact:version` of each. The jars that they depend on are downloaded, too.
    """

    name: str
    folder_name: str
    artifacts: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where the jars are, once they are installed."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "opchain" / self.folder_name

    def missing(self) -> str | None:
        """None if the server can be started here, else what is missing."""
        if shutil.which("java") is None:
            return "needs Java 17 or later on the PATH"
        if not self.folder.exists() and shutil.which("mvn") is None:
            return f"needs Maven (mvn) on the PATH to download {self.name}"
        return None

    def install(self) -> Path:
        """Downloads the jars unless they are there. Returns their folder.

        Raises:
            ServerUnavailableError: Java or Maven is missing, or the download fails.
        """
        missing = self.missing()
        if missing is not None:
            raise ServerUnavailableError(f"{self.name} can't be started: it {missing}")
        folder = self.folder
        if folder.exists():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            (Path(scratch) / "pom.xml").write_text(_pom(self.artifacts), "utf-8")
            done = subprocess.run(  # noqa: S603 - Maven
                [
                    *("mvn", "-q", "-B", "dependency:copy-dependencies"),
                    f"-DoutputDirectory={scratch}/jars",
                ],
                cwd=scratch,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise ServerUnavailableError(
                    f"Maven could not download {self.name}: {(done.stdout + done.stderr)[-500:]}"
                )
            try:
                (Path(scratch) / "jars").rename(folder)
            except OSError:
                if not folder.exists():  # another process was faster
                    raise
        return folder


def _pom(artifacts: tuple[str, ...]) -> str:
    lines = [
        '<project xmlns="http://maven.apache.org/POM/4.0.0">',
        "  <modelVersion>4.0.0</modelVersion>",
        "  <groupId>opchain</groupId> <artifactId>server</artifactId> <version>1</version>",
        "  <dependencies>",
    ]
    for artifact in artifacts:
        group, name, version = artifact.split(":")
        lines.append(
            f"    <dependency> <groupId>{group}</groupId> <artifactId>{name}</artifactId> "
            f"<version>{version}</version> </dependency>"
        )
    return "\n".join([*lines, "  </dependencies>", "</project>", ""])
