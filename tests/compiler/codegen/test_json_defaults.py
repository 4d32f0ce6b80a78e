"""Fields of JSON that are read with several defaults, and by records that do not have all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from forms import FORMS, failure_of, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.datastream.connectors.file_system import FileSource, StreamFormat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Click(NamedTuple):
    user: str
    count: int = 0


class Visit(NamedTuple):
    user: str
    page: int = 0


def drawn(path: Path, texts: list[str], draw: Callable[[Any], Any]) -> Callable[[Any], Any]:
    file = path / "lines"
    file.write_text("\n".join(texts) + "\n")

    def draw_all(env: Any) -> Any:
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(file))
        lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines")
        return seen(draw(lines.map(json.loads)), "out")

    return draw_all


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda d: (d.get("n", 0), d.get("n", False)), "(0, False)"),
        (lambda d: (d.get("n", 1.0), d.get("n", 1)), "(1.0, 1)"),
        (lambda d: (Click(**d).count, d.get("count", 0.0)), "(0, 0.0)"),
    ],
)
def test_defaults_that_are_equal_but_differ_in_type_are_kept_apart(
    function: Any, expected: str, form: str, tmp_path: Path
) -> None:
    draw = drawn(tmp_path, ['{"user": "a"}'], lambda rows: rows.map(function))
    assert list(map(repr, run_form(draw, form).records("out"))) == [expected]


@pytest.mark.parametrize("form", FORMS)
def test_sender_and_receiver_have_equal_defaults(form: str, tmp_path: Path) -> None:
    def draw(rows: Any) -> Any:
        kept = rows.filter(lambda d: str(d.get("n", 0)) == "0")
        return kept.rebalance().map(lambda d: d.get("n", 0.0))

    drawing = drawn(tmp_path, ['{"user": "a"}'], draw)
    assert list(map(repr, run_form(drawing, form).records("out"))) == ["0.0"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "draw",
    [
        lambda rows: rows.map(lambda d: (Click(**d), d.get("page"))),
        lambda rows: rows.map(lambda d: (Visit(**d), Click(**d))),
        lambda rows: (
            rows.filter(lambda d: Click(**d).count == 0)
            .rebalance()
            .map(lambda d: (d["user"], d.get("page")))
        ),
    ],
)
def test_a_record_refuses_unexpected_fields_that_another_reader_uses(
    draw: Any, form: str, tmp_path: Path
) -> None:
    drawing = drawn(tmp_path, ['{"user": "a"}', '{"user": "b", "page": 1}'], draw)
    error = failure_of(drawing, form)
    assert isinstance(error, TypeError)
    assert "unexpected keyword argument 'page'" in str(error)
