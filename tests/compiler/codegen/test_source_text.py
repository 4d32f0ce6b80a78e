"""The text of generated code is the same on every version of Python, and means what the syntax tree means."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of, run_form, seen

from opchain.compiler.codegen import source_text
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NEWLINE, BACKSLASH = "\n", "\\"


@pytest.mark.parametrize(
    "text",
    [
        "a, b = pair",
        "(a, b), c = d",
        "a, = b = c",
        "for a, (b, c) in pairs:\n    pass",
        "x = [a for a, b in pairs]",
        "x = ((a, b), *c)",
        "x = f''",
        "x = f'{a}'",
        "x = f\"{a['b']}\"",
        'x = f"it\'s {a}"',
        'x = f\'"it\\\'s" "{a}"\'',
        "x = f'{{{a!r:>{b}}}}\\\\\\n{c:.2f}é'",
        "x = f'{(a if b else c)}'",
        "x = f'{ {a: b}}'",
        "x = f\"{f'{a}'}\"",
        "x = [f\"{a['b']}\" for a, b in c]",
    ],
)
def test_source_text_is_the_same_on_every_python_version(text: str) -> None:
    assert text_of(ast.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "f'{NEWLINE.join(words)}'",
        "f'{{{BACKSLASH.join(words)!r:>{width}}}}: {width:{width}} {words}'",
        "f'{BACKSLASH:{width}}{NEWLINE!r}'",
        "f'{words[0].join([QUOTE, APOSTROPHE])}'",
    ],
)
def test_an_f_string_with_unsupported_constants_becomes_a_format_call(text: str) -> None:
    constants = {"NEWLINE": NEWLINE, "BACKSLASH": BACKSLASH, "QUOTE": '"', "APOSTROPHE": "'"}
    names: dict[str, Any] = {"words": ["a", 'b"'], "width": 12}

    class Constants(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Constant(constants[node.id]) if node.id in constants else node

    printed = text_of(Constants().visit(ast.parse(text, mode="eval")))
    assert ".format(" in printed
    assert eval(printed, names) == eval(text, {**names, **constants})  # noqa: S307 - this test's own text


def test_only_one_module_prints_syntax_trees() -> None:
    folder = Path(source_text.__file__).parent
    printers = [path.name for path in folder.rglob("*.py") if "unparse(" in path.read_text()]
    assert printers == ["source_text.py"]


def nested(number: int) -> Iterator[int]:
    for first, (second, third) in enumerate([(number, number + 1), (0, 1)]):
        yield first + second * third


def test_functions_with_nested_targets_and_any_constant_are_inlined() -> None:
    def draw(env: Any) -> None:
        texts = env.from_collection([1, 2, 3]).flat_map(nested)
        seen(texts.map(lambda n: f"it's {BACKSLASH.join([str(n), NEWLINE])} {n:>{n}}"), "texts")

    assert run_form(draw).records("texts") == run_form(draw, "interpreted").records("texts")
    source = str(job_of(draw).vertices[0].source)
    assert ", (second_1, third_1) in enumerate(" in source
    assert '"it\'s {} {:>{}}".format(' in source
