from __future__ import annotations

from opchain.compiler.codegen.source_text import SourceText
from opchain.runtime.task.vertex_program import NO_OPERATOR


def test_each_line_knows_its_operator() -> None:
    text, body = SourceText(), SourceText()
    text.add(0, "def run(values):")
    body.add(1, "pass", 3)
    body.add(1, "")
    text.extend(body)
    assert str(text) == "def run(values):\n    pass\n\n"
    assert text.operators == [NO_OPERATOR, 3, NO_OPERATOR]
