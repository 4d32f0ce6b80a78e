"""What the site has beside the pages in docs: ARCHITECTURE.md, CHANGELOG.md and the API reference."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
FROM_ROOT = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md"}
API = ("opchain.datastream", "opchain.common", "opchain.spark", "opchain.testing")
_PATH_IN_PROJECT = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+((?:compiler|runtime|examples|tests|spark-conf|benchmarks|opchain)[^)]*)\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    for name, page in FROM_ROOT.items():
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "reference/api.md", content=api_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs passes these by name
    """Links to source files become their paths; links to root pages become links in the site."""
    for name, target in FROM_ROOT.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{name}", rf"](\1{target}", markdown)
    return _PATH_IN_PROJECT.sub(r"`\2`", markdown)


def api_page() -> str:
    """Every public class and function, from its docstring."""
    sys.path.insert(0, str(ROOT))
    lines = ["# API", "", "Names and signatures are PyFlink's, unless a docstring says otherwise."]
    seen = set()
    for package in API:
        lines += ["", f"## {package}", ""]
        module = importlib.import_module(package)
        for name in sorted(module.__all__):
            found = getattr(module, name)
            if not (inspect.isclass(found) or inspect.isfunction(found)):
                continue
            place = f"{found.__module__}.{found.__qualname__}"
            if place not in seen and found.__module__.startswith("opchain."):
                seen.add(place)
                lines.append(f"::: {place}")
    return "\n".join(lines) + "\n"
