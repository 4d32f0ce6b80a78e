from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.compiler.commands.submit import modules_beside

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "prices.py": "import taxes\n",
    "taxes.py": "RATE = 19\n",
    "unused.py": "",
    "shop/__init__.py": "",
    "shop/items.py": "from shop.deep import names\n",
    "shop/deep/__init__.py": "",
    "shop/deep/names.py": "",
    "shop/data.txt": "not code",
    "spaces/inner.py": "",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import json, opchain\n", []),
        ("import taxes\n", ["taxes.py"]),
        ("def f():\n    from prices import taxes\n", ["prices.py", "taxes.py"]),
        (
            "import shop.items\n",
            ["shop/__init__.py", "shop/deep/__init__.py", "shop/deep/names.py", "shop/items.py"],
        ),
    ],
)
def test_modules_beside_finds_imports_from_the_programs_folder(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    for name, source in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, "utf-8")
    (tmp_path / "program.py").write_text(text, "utf-8")
    found = modules_beside(tmp_path / "program.py")
    assert sorted(found) == expected
    assert all(found[name] == FILES[name].encode() for name in expected)
