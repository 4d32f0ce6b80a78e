"""Takes the code blocks of a page of the docs, and runs them as a reader would: one after the other in one folder.

- ``python`` with a title is a file; without one it is run at once.
- ``sh`` is run by bash.
- ``text`` is what the block before it printed; a line ``...`` stands for any number of lines.
- ``json``, ``toml``, ``yaml`` and the like with a title are files.
- `<!-- needs: checkout -->` has the blocks run with a copy of the sources, and a titled block whose file exists is added to it.
- `<!-- not run: REASON -->` before a block leaves it out; `<!-- needs: spark -->` at any place marks the page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"(?:^[ ]*<!-- not run: (?P<reason>[^>]*?) -->\n)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
_COMPILED = shutil.ignore_patterns("__pycache__")
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    title: str | None
    text: str
    line: int
    not_run: str | None


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    content = page.read_text("utf-8")
    found = []
    for match in _BLOCK.finditer(content):
        title = _TITLE.search(match["options"])
        indent = match["indent"]
        found.append(
            Block(
                language=match["language"],
                title=title[1] if title else None,
                text=re.sub(rf"^{indent}", "", match["text"], flags=re.MULTILINE),
                line=content.count("\n", 0, match.start("language")) + 1,
                not_run=match["reason"],
            )
        )
    return found


def needs(page: Path) -> set[str]:
    """What a page says that its blocks need."""
    return set(re.findall(r"<!-- needs: (\w+) -->", page.read_text("utf-8")))


def run_page(page: Path, folder: Path) -> None:
    """Runs the blocks; an AssertionError names the block that does not do what the page says."""
    printed = ""
    root = ROOT
    if "checkout" in needs(page):
        root = folder
        for part in ("opchain", "compiler", "runtime"):
            shutil.copytree(ROOT / part, folder / part, symlinks=True, ignore=_COMPILED)
    for block in blocks_of(page):
        place = f"{page.relative_to(ROOT)}:{block.line}"
        if block.not_run is not None:
            continue
        if block.title is not None:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            before = target.read_text("utf-8") if target.exists() and root == folder else ""
            target.write_text(before + block.text, encoding="utf-8")
        elif block.language == "python":
            printed = _run([sys.executable, "-c", block.text], folder, place, root)
        elif block.language == "sh":
            printed = _run(["bash", "-euo", "pipefail", "-c", block.text], folder, place, root)
        elif block.language == "text":
            assert shows(printed, block.text), f"{place} is not what was printed:\n{printed}"
        else:
            raise AssertionError(
                f"{place}: a block of '{block.language}' can't be run; say why not"
            )


def shows(printed: str, expected: str) -> bool:
    """Whether a text is what the page shows, where `...` stands for any lines."""
    wanted = expected.strip("\n").splitlines()
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"[ ]*\n"
        for line in wanted
    )
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def _run(command: list[str], folder: Path, place: str, root: Path = ROOT) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PROJECT": str(ROOT),
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, (
        f"{place} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    )
    return done.stdout
