"""The packages that a program needs on executors: a packed environment, or a folder that pip has filled."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from opchain.compiler.commands.failures import CommandError
from opchain.compiler.commands.package import write_archive
from opchain.runtime.spark.source_archive import zipped

FOLDER = "packages"
"""What the folder of installed packages is called in the working directory of the tasks."""


def archive_name(archive: str) -> str:
    """The folder in which the executors find an archive: `env` for `env.tar.gz#env`."""
    path, _, name = archive.partition("#")
    return name or Path(path).name


def packed_python(archives: tuple[str, ...]) -> str | None:
    """The Python of the first archive that is an environment (venv-pack, conda-pack), None without one.

    Raises:
        CommandError: An archive is missing, or no archive.
    """
    for archive in archives:
        path = Path(archive.partition("#")[0])
        if "://" not in archive and _has_python(path):
            return f"./{archive_name(archive)}/bin/python"
    return None


def install_packages(requirements: Path, archive: Path) -> None:
    """Installs requirements into a folder, and packs it; executors must be of this machine's kind.

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
            said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise CommandError(f"pip could not install the packages of {requirements}: {said}")
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
