"""What is installed is what is in the folders, and executors can run from a zip of it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

PACKED = ["compiler", "runtime", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"]
OFFLINE = ["--quiet", "--no-deps", "--no-build-isolation"]


def package_of(folder: Path) -> str:
    """The import name of a folder."""
    parts = folder.relative_to(ROOT).parts
    if parts[:2] == ("runtime", "_root"):
        return ".".join(("opchain", *parts[2:]))
    return ".".join(("opchain", *parts))


def test_every_folder_with_code_is_listed() -> None:
    folders = {
        package_of(path.parent)
        for half in ("compiler", "runtime")
        for path in (ROOT / half).rglob("*.py")
    }
    assert sorted(PYPROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)


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
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *OFFLINE, "--wheel-dir", str(target), str(copy)],
        check=True,
        capture_output=True,
    )
    (built,) = target.glob("*.whl")
    return built


def test_the_wheel_has_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith(".py")}
    expected = {
        f"{package_of(path.parent).replace('.', '/')}/{path.name}"
        for half in ("compiler", "runtime")
        for path in (ROOT / half).rglob("*.py")
    }
    assert packed == expected


def test_executors_load_their_half_from_a_zip_with_the_standard_library_alone(
    wheel: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "opchain.zip"
    archive.write_bytes(wheel.read_bytes())
    program = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import opchain.runtime.task.stream_task as task\n"
        "from opchain.datastream import MapFunction\n"
        "assert 'opchain.zip' in task.__file__, task.__file__\n"
        "assert not {'networkx', 'pydantic', 'opchain.compiler'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", program, str(archive)], check=True)
