from __future__ import annotations

import re
from pathlib import Path

import pytest

from opchain.runtime.errors import MissingLibraryError, imported


def test_imported_returns_an_installed_library() -> None:
    assert imported("json.decoder", "files", "reading").__name__ == "json.decoder"


@pytest.mark.parametrize("module", ["no_such_library", "no_such_library.inside"])
def test_the_error_about_a_missing_library_names_its_extra(module: str) -> None:
    with pytest.raises(
        MissingLibraryError,
        match=r"^reading needs the library 'no_such_library', .* pip install 'opchain\[files\]'$",
    ):
        imported(module, "files", "reading")


def test_a_missing_dependency_of_a_library_raises_its_own_error(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "half_a_library.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ModuleNotFoundError, match="no_such_library") as failed:
        imported("half_a_library", "files", "reading")
    assert not isinstance(failed.value, MissingLibraryError)


ROOT = Path(__file__).parents[2]


def test_every_mentioned_extra_exists_in_pyproject() -> None:
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    table = settings.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = set(re.findall(r"^([a-z-]+) = \[", table, re.MULTILINE))
    assert "kafka" in extras
    files = [path for half in ("compiler", "runtime") for path in (ROOT / half).rglob("*.py")]
    files += [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named: dict[str, str] = {}
    for path in files:
        text = path.read_text("utf-8")
        found = re.findall(r"opchain\[([a-z,-]+)\]", text)
        found += re.findall(r'\bimported\(\s*"[\w.]+",\s*"([a-z-]+)"', text)
        named |= dict.fromkeys(",".join(found).split(","), str(path))
    named.pop("")
    assert {"iceberg", "sql"} <= named.keys()
    assert {extra: path for extra, path in named.items() if extra not in extras} == {}
