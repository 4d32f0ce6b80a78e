from __future__ import annotations

import io
import math
import re
from typing import Any

import pytest
from rich.console import Console

from opchain.runtime.measurements import table
from opchain.runtime.measurements.job_metrics import JobMetrics, merge_task_metrics
from opchain.runtime.metrics.metric_types import DistributionValue, GaugeFailure, GaugeValue


@pytest.fixture
def metrics(job: Any, make_task: Any, make_operator: Any) -> JobMetrics:
    read = make_operator(records_in=1_500_000, records_out=1_500_000)
    parse = make_operator(
        records_in=1_500_000,
        records_out=9,
        registered={
            "bad[red]": 12_345,
            "size": GaugeValue(GaugeFailure("KeyError()")),
            "length": DistributionValue(2, 7, 3, 4),
        },
    )
    return merge_task_metrics(
        job,
        {
            0: make_task(
                0, records_in=1_500_000, records_out=9, bytes_out=5_000_000, operators=(read, parse)
            ),
            1: make_task(1, idle_ns=500_000_000, operators=(make_operator(), make_operator())),
            2: make_task(0, records_in=9, bytes_in=900, knows_busy_time=False),
        },
    )


PLAIN = """\
 vertex, operator   tasks   records in   records out   bytes in   bytes out   busy   skew
 ----------------------------------------------------------------------------------------
 read -> parse          2    1,500,000             9        0 B     4.8 MiB   75 %   2.00
   read                      1,500,000     1,500,000                                 2.00
   parse                     1,500,000             9                                 2.00
 count                  1            9             0      900 B         0 B      ?   1.00
 parse: bad[red] = 12,345
 parse: size = [error KeyError()]
 parse: length = count 2, sum 7, min 3, max 4, mean 3.5"""


def _narrow(text: str) -> str:
    """Replaces column widths, which differ between versions of rich."""
    return re.sub(r"--+|  +", "  ", text)


def test_the_plain_table_is_ascii_and_as_wide_as_its_content(metrics: JobMetrics) -> None:
    assert _narrow(table.plain_table(metrics)) == _narrow(PLAIN)


def test_a_wide_terminal_shows_the_same_words(metrics: JobMetrics) -> None:
    shown = on_terminal(metrics, 100)
    assert "\x1b[" in shown
    assert without_colour(shown).split() == [
        word for word in PLAIN.split() if not word.startswith("---")
    ]


@pytest.mark.parametrize(
    ("width", "given_up"),
    [(60, 3), (80, 1), (200, 0)],
)
def test_a_narrow_terminal_drops_columns_before_names_are_cut(
    metrics: JobMetrics, width: int, given_up: int
) -> None:
    lines = without_colour(on_terminal(metrics, width)).splitlines()
    header = next(line for line in lines if "vertex, operator" in line)
    gone = {title for title in table.COLUMNS if f" {title}" not in f" {header}"}
    assert gone == set(table.GIVEN_UP[:given_up])
    assert max(map(len, lines)) <= width


def test_without_counts_the_table_is_only_a_header() -> None:
    header, rule = JobMetrics().table().splitlines()
    assert header.split() == PLAIN.splitlines()[0].split()
    assert set(rule.strip()) == {"-"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("parse\n  lines", "parse lines"),
        ("x" * 61, "x" * 57 + "..."),
        ("x" * 60, "x" * 60),
        ("\x1b[31m red", " [31m red"),
    ],
)
def test_names_are_shown_on_one_line_of_bounded_length(name: str, shown: str) -> None:
    assert table._cut(name) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (3 * 1024**3, "3.0 GiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_sizes_are_shown_with_binary_units(size: int, shown: str) -> None:
    assert table.size_text(size) == shown


@pytest.mark.parametrize(
    ("busy", "shown"), [(0.0, "0 %"), (994.9, "99 %"), (1000.0, "100 %"), (math.nan, "?")]
)
def test_busy_time_is_shown_in_percent(busy: float, shown: str) -> None:
    assert table._busy(busy) == shown


def on_terminal(metrics: JobMetrics, width: int) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=True, color_system="standard", no_color=False
    )
    console.print(metrics)
    return file.getvalue()


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m|─", "", text)
