"""The words of docs, docstrings, comments and messages: turns to avoid, and one name for one concept."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
FOLDERS = ("compiler", "runtime", "examples", "benchmarks", "tests")
LONGEST_SENTENCE = 45
"""Words in a sentence of a page; the guide says 25."""


class Rule(NamedTuple):
    """A pattern, and what to write instead."""

    pattern: re.Pattern[str]
    write: str


class Text(NamedTuple):
    """A piece of prose, and where it begins."""

    path: Path
    line: int
    words: str


def rules() -> list[Rule]:
    """The list of docs/prose.toml. (tomllib came with Python 3.11.)"""
    text = (ROOT / "docs/prose.toml").read_text("utf-8")
    pairs = re.findall(r'^avoid = "(.*)"\nwrite = "(.*)"$', text, re.MULTILINE)
    assert len(pairs) == len(re.findall(r"^avoid", text, re.MULTILINE))
    return [
        Rule(re.compile(avoid.replace("\\\\", "\\"), re.IGNORECASE), write)
        for avoid, write in pairs
    ]


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(page for page in found if page.name != "LICENSE.md")


def prose_of_page(path: Path) -> Iterator[Text]:
    """The paragraphs, list items and table rows of a page, without code."""
    text = path.read_text("utf-8")
    blank = re.sub(
        r"^[ ]*```.*?^[ ]*```[ ]*$|<!--.*?-->",
        lambda match: "\n" * match[0].count("\n"),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    for match in re.finditer(r"(?:^(?!\s*$).*\n?)+", blank, re.MULTILINE):
        yield Text(path, blank.count("\n", 0, match.start()) + 1, match[0])


def prose_of_module(path: Path) -> Iterator[Text]:
    """Docstrings, comments, and every other text with a space in it: messages mostly."""
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Text(path, node.lineno, node.value)
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != block[-1][0] + 1:
                yield Text(path, block[0][0], " ".join(text for _, text in block))
                block = []
            block.append((token.start[0], token.string.lstrip("# ")))
    if block:
        yield Text(path, block[0][0], " ".join(text for _, text in block))


def findings(text: Text, avoided: list[Rule]) -> list[str]:
    words = re.sub(r"\s+", " ", text.words)
    place = f"{text.path.relative_to(ROOT) if text.path.is_absolute() else text.path}:{text.line}"
    return [
        f"{place}: '{match[0]}'; write: {rule.write}"
        for rule in avoided
        for match in rule.pattern.finditer(words)
    ]


def test_pages_use_plain_words() -> None:
    avoided = rules()
    found = [
        line for page in pages() for text in prose_of_page(page) for line in findings(text, avoided)
    ]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_comments_and_messages_use_plain_words(folder: str) -> None:
    avoided = rules()
    found = [
        line
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)  # it has examples of what to avoid
        for text in prose_of_module(path)
        for line in findings(text, avoided)
    ]
    assert found == []


def test_sentences_of_pages_are_short() -> None:
    found = []
    for page in pages():
        for text in prose_of_page(page):
            if text.words.lstrip().startswith(("|", "#", ">")):
                continue
            items = re.split(r"^\s*(?:[-*]|\d+\.) ", text.words, flags=re.MULTILINE)
            sentences = (part for item in items for part in re.split(r"(?<=[.!?:;])\s", item))
            found += [
                f"{page.relative_to(ROOT)}:{text.line}: {sentence[:80]}..."
                for sentence in sentences
                if len(sentence.split()) > LONGEST_SENTENCE
            ]
    assert found == []


def test_an_avoided_phrase_is_found_across_lines() -> None:
    text = Text(Path("page.md"), 3, "The driver has shown no signs\n  of life.")
    assert findings(text, rules()) == ["page.md:3: 'signs of life'; write: heartbeat"]


def test_messages_and_comments_of_a_module_are_checked(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('raise ValueError(f"{x} is no record")  # made\n# anew\n', encoding="utf-8")
    words = [text.words for text in prose_of_module(module)]
    assert words == [" is no record", "made anew"]
