from hypothesis import given
from hypothesis import strategies as st

from opchain.compiler.plan.layout import (
    Line,
    Paragraph,
    Row,
    as_ascii,
    counted,
    display_width,
    one_line,
    set_lines,
)


def test_rows_are_aligned_in_columns_without_trailing_blanks() -> None:
    lines: list[Line] = [Row(("a", "bbb", "")), "between", Row(("aaaa", "b", "c")), Row(("a",))]
    assert set_lines(lines) == "a     bbb\nbetween\naaaa  b    c\na\n"


def test_wide_characters_count_as_two_columns() -> None:
    assert set_lines([Row(("単語", "x")), Row(("word", "x"))]) == "単語  x\nword  x\n"
    assert display_width("e\u0301") == 1


def test_a_paragraph_is_indented_below_its_label() -> None:
    text = set_lines([Paragraph("  ", "cut: ", "word " * 20)], width=60)
    first, second, *_ = text.splitlines()
    assert first.startswith("  cut: word")
    assert second.startswith("       word")
    assert len(first) <= 60


def test_a_deep_indent_leaves_a_minimum_width_for_words() -> None:
    text = set_lines([Paragraph(" " * 200, "", "a few words that fit")], width=80)
    assert text == " " * 200 + "a few words that fit\n"


@given(st.text(), st.integers(min_value=5, max_value=60))
def test_one_line_returns_printable_text_within_the_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert line.isprintable()
    assert display_width(line) <= limit


@given(st.lists(st.lists(st.text(alphabet="abc単é "), min_size=1, max_size=4), max_size=6))
def test_columns_of_all_rows_start_at_the_same_position(cells: list[list[str]]) -> None:
    rows = [Row(tuple(f"|{cell}" for cell in row)) for row in cells]
    lines = set_lines(rows).splitlines()
    starts = {
        (position, display_width(line[: place + 1]))
        for line in lines
        for position, place in enumerate(index for index, char in enumerate(line) if char == "|")
    }
    assert len(starts) == len({position for position, _ in starts})


def test_box_drawing_characters_become_ascii() -> None:
    assert as_ascii("├─ a\n└─ 単語\n│ ┌─") == "|- a\n`- 単語\n| ,-"


def test_counted_uses_the_plural() -> None:
    assert counted(0, "task") == "0 tasks"
    assert counted(2, "vertex", "vertices") == "2 vertices"
