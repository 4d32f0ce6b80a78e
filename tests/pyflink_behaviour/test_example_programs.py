"""PyFlink's example programs print the same with opchain as with Flink.

The expected output follows from Flink's semantics: counts, sums of 32-bit floats, the bounds of
windows. The programs are not part of this repository; see pyflink_examples.
"""

from __future__ import annotations

import ast
import json
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyflink_examples import VARIABLE, command, examples_folder, output_of, rewritten

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    examples_folder() is None,
    reason=f"{VARIABLE} does not name PyFlink's example programs",
)

WHERE = [
    pytest.param(True, id="in process"),
    pytest.param(False, id="on Spark", marks=[pytest.mark.spark, pytest.mark.slow]),
]
"""Whether a program runs in process."""

# The sums of 32-bit floats: 110.1 is 110.0999984741211.
ALICE, BOB = "('Alice', 163.29999923706055)", "('Bob', 102.49999952316284)"

PRINTED: dict[str, list[str]] = {
    "basic_operations": [
        """(1, '{"name": "Flink", "tel": 124, "addr": {"country": "Germany", "city": "Berlin"}}')""",
        """(2, '{"name": "hello", "tel": 136, "addr": {"country": "China", "city": "Shanghai"}}')""",
        """(3, '{"name": "world", "tel": 125, "addr": {"country": "USA", "city": "NewYork"}}')""",
        """(4, '{"name": "PyFlink", "tel": 33, "addr": {"country": "China", "city": "Hangzhou"}}')""",
        """(1, '{"name": "Flink", "tel": 124, "addr": {"country": "Germany", "city": "Berlin"}}')""",
        *("('Germany', 123)", "('China', 135)", "('USA', 124)", "('China', 167)"),
    ],
    "process_json_data": [
        "(2, {'name': 'hello', 'tel': 136, 'addr': {'country': 'China', 'city': 'Shanghai'}})",
        "(4, {'name': 'PyFlink', 'tel': 33, 'addr': {'country': 'China', 'city': 'Hangzhou'}})",
    ],
    "state_access": [
        "('Alice', 110.0999984741211)",
        "('Bob', 30.200000762939453)",
        "('Alice', 130.0999984741211)",
        "('Bob', 83.29999923706055)",
        "('Alice', 143.19999885559082)",
        "('Bob', 86.39999914169312)",
        BOB,
        ALICE,
    ],
}
"""What programs print that write nothing else, line by line."""

WINDOWS: dict[str, list[str]] = {
    "windowing/tumbling_count_window": ["(hi,4)", "(hello,6)", "(hello,12)"],
    "windowing/tumbling_time_window": ["(hi,0,5,4)", "(hi,5,10,3)", "(hi,15,20,1)"],
    "windowing/sliding_time_window": [
        *("(hi,-2,3,2)", "(hi,0,5,4)", "(hi,2,7,4)", "(hi,4,9,3)"),
        *("(hi,6,11,2)", "(hi,8,13,2)", "(hi,12,17,1)", "(hi,14,19,1)"),
    ],
    "windowing/session_with_gap_window": ["(hi,1,14,6)", "(hi,15,20,1)"],
    "windowing/session_with_dynamic_gap_window": ["(hi,1,30,7)"],
}
"""What programs print or write to a file, as they are asked to."""

HINT = "Printing result to stdout. Use --output to specify output path."


@pytest.mark.parametrize("local", WHERE)
@pytest.mark.parametrize("name", PRINTED)
def test_examples_of_pyflink_print_their_results(name: str, local: bool, tmp_path: Path) -> None:
    assert output_of(rewritten(name, tmp_path), local=local) == PRINTED[name]


@pytest.mark.parametrize("local", WHERE)
def test_the_timer_example_of_pyflink_fires_timers_in_order(local: bool, tmp_path: Path) -> None:
    printed = output_of(rewritten("event_time_timer", tmp_path), local=local)
    # Alice's are at 3, 5, 7 and 12 seconds, Bob's at 4, 5, 6 and 9: two are at the same time.
    assert printed[:2] == [ALICE, BOB]
    assert sorted(printed[2:4]) == [ALICE, BOB]
    assert printed[4:] == [BOB, ALICE, BOB, ALICE]


@pytest.mark.parametrize("local", WHERE)
@pytest.mark.parametrize("name", WINDOWS)
def test_the_window_examples_of_pyflink_print_their_results(
    name: str, local: bool, tmp_path: Path
) -> None:
    assert output_of(rewritten(name, tmp_path), local=local) == [HINT, *WINDOWS[name]]


@pytest.mark.parametrize("local", WHERE)
@pytest.mark.parametrize("name", WINDOWS)
def test_the_window_examples_of_pyflink_write_one_file(
    name: str, local: bool, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert output_of(rewritten(name, tmp_path), "--output", str(out), local=local) == []
    assert written_lines(out) == WINDOWS[name]


@pytest.mark.parametrize("local", WHERE)
def test_the_word_count_example_of_pyflink_counts_words(local: bool, tmp_path: Path) -> None:
    program = rewritten("word_count", tmp_path)
    words = " ".join(assigned(program, "word_count_data")).split()
    printed = output_of(program, local=local)
    assert printed.count(HINT) == 1
    assert sorted(printed[printed.index(HINT) + 1 :]) == counts(words)


@pytest.mark.parametrize("local", WHERE)
def test_the_word_count_example_of_pyflink_reads_and_writes_files(
    local: bool, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("to be or not\nto be\n\nor both\n", "utf-8")
    out = tmp_path / "out"
    program = rewritten("word_count", tmp_path)
    output_of(program, "--input", str(text), "--output", str(out), local=local)
    assert sorted(written_lines(out)) == ["(be,2)", "(both,1)", "(not,1)", "(or,2)", "(to,2)"]


@pytest.mark.parametrize("local", WHERE)
def test_the_streaming_word_count_example_of_pyflink_counts_words(
    local: bool, tmp_path: Path
) -> None:
    program = rewritten("streaming_word_count", tmp_path)
    words = assigned(program, "words")
    seen: Counter[str] = Counter()
    for line in lines_of_endless(program, 12, local=local):
        word, count = line.strip("()").split(",")
        assert word in words
        seen[word] += 1
        assert int(count) == seen[word]


def test_the_model_example_of_pyflink_calls_a_remote_model(tmp_path: Path) -> None:
    """Its model answers at once here; that some calls fail and are made again is left to it."""
    program = rewritten(
        "asyncio/remote_model_inference",
        tmp_path,
        {"await asyncio.sleep(random.randint(1, 2))": "await asyncio.sleep(0)"},
    )
    answers = [json.loads(line) for line in lines_of_endless(program, 60)]
    assert {answer["analysis_result"] for answer in answers} == {"positive"}
    assert {len(answer["comments"]) for answer in answers} == {100}
    assert len({answer["user_id"] for answer in answers}) == 60


def lines_of_endless(program: Path, count: int, *, local: bool = True) -> Iterator[str]:
    """The first lines that a program prints behind its hint, which is then ended."""
    with subprocess.Popen(
        command(program, local=local), stdout=subprocess.PIPE, text=True, bufsize=1
    ) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline().rstrip("\n") == HINT
            for _ in range(count):
                yield running.stdout.readline().rstrip("\n")
        finally:
            running.terminate()


def assigned(program: Path, name: str) -> Any:
    """The constant that a program assigns to a name."""
    for statement in ast.parse(program.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name:
            return ast.literal_eval(statement.value)
    raise AssertionError(f"{program.name} assigns nothing to {name}")


def counts(words: list[str]) -> list[str]:
    return sorted(f"({word},{count})" for word, count in Counter(words).items())


def written_lines(folder: Path) -> list[str]:
    """The lines of the one file below a folder that is visible."""
    (file,) = (path for path in folder.rglob("*") if path.is_file())
    assert file.name.startswith("prefix")
    assert file.name.endswith(".ext")
    return file.read_text("utf-8").splitlines()
