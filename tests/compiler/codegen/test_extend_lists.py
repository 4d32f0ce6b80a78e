from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.datastream import KeyedProcessFunction, OutputTag
from opchain.datastream.connectors.file_system import FileSource, StreamFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def words(lines: Any) -> Any:
    return lines.flat_map(lambda line: line.split())


def counted(lines: Any) -> Any:
    ones = lines.flat_map(lambda line: line.lower().split()).map(lambda word: (word, 1))
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def upper_words(lines: Any) -> Any:
    return lines.flat_map(lambda line: line.strip().upper().split()).rebalance().map(len)


def without_articles(lines: Any) -> Any:
    kept = words(lines).filter(lambda word: word != "a").filter(lambda word: len(word) > 1)
    return kept.key_by(lambda word: word).map(lambda word: word * 2)


def that_may_fail(lines: Any) -> Any:
    return words(lines).filter(lambda word: word[0] != "a")


def yielded(line: Any) -> Iterator[Any]:
    yield from line.casefold().split()


def at_spaces(lines: Any) -> Any:
    return lines.flat_map(lambda line: line.split(" "))


def in_parts(lines: Any) -> Any:
    return lines.flat_map(lambda line: line.split(None, 1))


def titles(lines: Any) -> Any:
    return lines.flat_map(lambda line: line.title().split())


def twice(lines: Any) -> Any:
    seen(lines.map(len), "lengths")
    return words(lines)


def of_numbers(lines: Any) -> Any:
    return lines.map(len).flat_map(lambda length: range(1, length))


def filtered_counts(lines: Any) -> Any:
    ones = words(lines).filter(lambda word: word != "is").map(lambda word: (word, 1))
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


BY_EXTEND = [words, counted, upper_words, lambda lines: lines.flat_map(yielded), filtered_counts]
OTHERS = [at_spaces, in_parts, titles, twice, of_numbers, that_may_fail, without_articles]


def drawn(draw: Callable[[Any], Any], path: Path, *, by_builder: bool = False) -> Any:
    def program(env: Any) -> None:
        if by_builder:
            text = StreamFormat.text_line_format()
            source = FileSource.for_record_stream_format(text, str(path)).build()
            lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        else:
            lines = env.read_text_file(str(path))
        seen(draw(lines), "words")

    return program


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text(
        "A rose is a\n\n  Rose\x0bis\u2028\u0391\u03a3 \u0391\u03a3\n", "utf-8"
    )
    return tmp_path / "a.txt"


@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
@pytest.mark.parametrize("by_builder", [False, True])
@pytest.mark.parametrize("draw", BY_EXTEND)
def test_a_flat_map_of_words_extends_the_output_list(
    path: Path, draw: Callable[[Any], Any], by_builder: bool, mode: str
) -> None:
    sender, *_ = job_of(drawn(draw, path, by_builder=by_builder), mode=mode).vertices
    assert ".extend(" in sender.source


def test_extending_a_list_handles_an_empty_loop(path: Path) -> None:
    def program(env: Any) -> None:
        lines = env.read_text_file(str(path))
        seen(lines.get_side_output(OutputTag("none")), "none")

    for form in FORMS:
        assert run_form(program, form).records("none") == []


class KeysWithOne(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value[0], 1


@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
@pytest.mark.parametrize("form", FORMS)
def test_a_keyed_function_may_send_only_the_key(form: str, mode: str) -> None:
    def program(env: Any) -> None:
        pairs = env.from_sequence(1, 6).map(lambda x: (x % 2, x)).key_by(lambda pair: pair[0])
        ones = pairs.process(KeysWithOne()).key_by(lambda pair: pair[0])
        seen(ones.count_window(3).sum(1), "counts")

    assert sorted(run_form(program, form, mode=mode).records("counts")) == [(0, 3), (1, 3)]


@pytest.mark.parametrize("batch_size", [1, 4096])
@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
@pytest.mark.parametrize("draw", BY_EXTEND + OTHERS)
def test_interpreted_and_generated_code_emit_the_same_words(
    path: Path, draw: Callable[[Any], Any], mode: str, batch_size: int
) -> None:
    ran = [
        run_form(drawn(draw, path), form, mode=mode, parallelism=2, batch_size=batch_size)
        for form in FORMS
    ]
    assert ran[0].records("words")
    for other in ran[1:]:
        assert other.subtasks("words") == ran[0].subtasks("words")
        assert other.counters() == ran[0].counters()
