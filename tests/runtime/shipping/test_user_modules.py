from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.spark.worker_path import user_sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module, a package and a namespace package, all imported."""
    files = {
        "rates.py": "RATE = 2",
        "shop/__init__.py": "",
        "shop/prices.py": "import rates",
        "shop/unused/__init__.py": "",
        "shop/unused/later.py": "",
        "spaces/inner.py": "X = 1",
        "spaces/later.py": "",
        "spaces/deep/later.py": "",
        "spaces/.venv/lib/site-packages/installed.py": "",
        "never.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    for name in ("shop.prices", "spaces.inner"):
        importlib.import_module(name)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_imported_modules_in_the_folder_of_the_program_are_found(program: Path) -> None:
    sources = user_sources()
    ours = {place: file for place, file in sources.items() if program in file.parents}
    assert ours == {
        place: program.resolve() / place
        for place in (
            "rates.py",
            "shop/__init__.py",
            "shop/prices.py",
            "shop/unused/__init__.py",
            "shop/unused/later.py",
            "spaces/inner.py",
            "spaces/later.py",
            "spaces/deep/later.py",
        )
    }


def test_modules_that_only_functions_import_are_found(program: Path) -> None:
    texts = {
        "main.py": "import json\ndef f(i):\n    from late import g\n    return g(i)\n",
        "late.py": (
            "def g(i):\n    import later.inner.deep as deep\n    import xml.dom.minicompat\n"
            "try:\n    import tried\nexcept ImportError:\n    import caught\n"
            "else:\n    pass\nfinally:\n    import last\n"
            "class C:\n    match 1:\n        case 1:\n            with open(0):\n                import held\n"
            "for i in ():\n    pass\nelse:\n    f = lambda: [0]\n    import other\n"
        ),
        **dict.fromkeys(("tried.py", "caught.py", "last.py", "held.py", "other.py"), ""),
        "later/inner/deep.py": "from . import near",
        "later/inner/near.py": "import broken",
        "broken.py": "def :",
    }
    for name, text in texts.items():
        (program / name).parent.mkdir(parents=True, exist_ok=True)
        (program / name).write_text(text, "utf-8")
    main = ModuleType("__main__")
    main.__file__ = str(program / "main.py")
    assert user_sources({"__main__": main}) == {
        place: program.resolve() / place for place in texts if place != "main.py"
    }


def test_the_standard_library_installed_packages_and_opchain_are_not_found() -> None:
    sources = user_sources()
    for installed in ("pytest", "json", "networkx", "opchain", "cloudpickle"):
        assert not [
            place for place in sources if place.split("/")[0].removesuffix(".py") == installed
        ]


@pytest.mark.parametrize("file", [None, "/nowhere/gone.py", "built.so"])
def test_modules_without_a_source_file_are_skipped(file: str | None) -> None:
    module = ModuleType("odd")
    module.__file__ = file
    assert user_sources({"odd": module}) == {}


def test_functions_of_the_main_program_are_pickled_by_value(tmp_path: Path) -> None:
    main = ModuleType("__main__")
    main.__file__ = str(tmp_path / "main.py")
    (tmp_path / "main.py").touch()
    assert user_sources({"__main__": main}) == {}
