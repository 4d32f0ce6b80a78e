"""Plans of 3, 30 and 300 vertices as a browser lays them out."""

from __future__ import annotations

from typing import Any

import pytest
from plan_geometry import drawing, labels, overlapping, vertices, wires
from programs import PROGRAMS, drawn
from random_plans import random_plan

from opchain import StreamExecutionEnvironment
from opchain.compiler.plan.page.render import program_page

pytestmark = pytest.mark.browser

RANDOM = [(3, 1), (30, 1), (30, 2), (40, 1), (300, 1)]
LAPTOP = {"width": 1440, "height": 900}
LEAST_FONT_PX = 8.5
"""Of the smallest text that a drawing begins with, as it is seen."""


def opened(open_page: Any, plan: str | tuple[int, int]) -> Any:
    """The page of one of the named programs, or of a random plan of so many vertices."""
    env = drawn(plan) if isinstance(plan, str) else random_plan(*plan)
    page = open_page(program_page(env.program()))
    if not isinstance(plan, str):
        assert len(vertices(page)) == plan[0]
    return page


@pytest.mark.parametrize("plan", [*RANDOM, *PROGRAMS], ids=str)
def test_boxes_and_arrows_do_not_overlap_and_are_inside_the_drawing(
    open_page: Any, plan: str | tuple[int, int]
) -> None:
    page = opened(open_page, plan)
    boxes, names, lines = vertices(page), labels(page), wires(page)
    ends = page.evaluate(
        "() => JSON.parse(document.getElementById('contents').textContent).exchanges"
    )
    assert len(names) == len(lines) == len(ends)

    assert overlapping(boxes) == []
    assert overlapping(names) == []
    assert [(box, name) for box in boxes for name in names if box.overlaps(name)] == []

    whole = drawing(page)
    outside = [
        box
        for box in (*boxes, *names)
        if box.left < 0 or box.top < 0 or box.right > whole.right or box.bottom > whole.bottom
    ]
    assert outside == []

    by_number = {box.number: box for box in boxes}
    by_exchange = {name.number: name for name in names}
    for line, exchange in zip(lines, ends, strict=True):
        crossed = [box.number for box in boxes if any(box.holds(x, y) for x, y in line.points)]
        assert crossed == []
        (first_x, first_y), (last_x, last_y) = line.points[0], line.points[-1]
        source, target = by_number[exchange["source"]], by_number[exchange["target"]]
        if page.get_attribute("#drawing", "data-direction") == "RIGHT":
            assert abs(first_x - source.right) < 2
            assert source.top < first_y < source.bottom
            assert 0 < target.left - last_x < 10
            assert target.top < last_y < target.bottom
        else:
            assert abs(first_y - source.bottom) < 2
            assert source.left < first_x < source.right
            assert 0 < target.top - last_y < 10
            assert target.left < last_x < target.right
        label = by_exchange[line.number]
        assert any(label.holds(x, y) for x, y in line.points), "an arrow goes through its label"


@pytest.mark.parametrize("plan", [(30, 1), (30, 2), "sessions", "two_sinks"], ids=str)
def test_the_text_of_a_box_is_not_cut_if_the_box_could_grow(
    open_page: Any, plan: str | tuple[int, int]
) -> None:
    page = opened(open_page, plan)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.vertex .name')]
          .filter((name) => name.scrollWidth > name.clientWidth && name.closest('.vertex').offsetWidth < 398)
          .map((name) => name.textContent)"""
    )
    assert cut == []


def test_the_default_name_of_a_source_is_not_cut(open_page: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1, 2]).print()
    page = open_page(program_page(env.program()))
    name = page.locator(".vertex .name", has_text="Source: Collection Source").first
    assert name.evaluate("(name) => name.scrollWidth <= name.clientWidth")


def test_drawing_a_page_twice_gives_the_same_drawing(open_page: Any) -> None:
    html = program_page(random_plan(30, 3).program())
    one, other = open_page(html), open_page(html)
    assert vertices(one) == vertices(other)
    assert labels(one) == labels(other)
    assert wires(one) == wires(other)


def test_an_arrow_leaves_at_the_height_of_the_operator_that_sends(open_page: Any) -> None:
    page = open_page(program_page(drawn("side_outputs").program()))
    rows = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.vertex li')].map((row) =>
          [row.dataset.node, row.closest('.vertex').offsetTop + row.offsetTop + row.offsetHeight / 2]))"""
    )
    exchanges = page.evaluate(
        "() => JSON.parse(document.getElementById('contents').textContent).exchanges"
    )
    for line, exchange in zip(wires(page), exchanges, strict=True):
        assert line.points[0][1] == pytest.approx(rows[str(exchange["from"])], abs=2)


@pytest.mark.parametrize("size", [12, 40])
def test_the_first_boxes_of_a_plan_are_visible_and_readable(open_page: Any, size: int) -> None:
    page = open_page(program_page(random_plan(size, 1).program()), viewport=LAPTOP)
    assert page.is_hidden("#overview")
    fonts = page.evaluate(
        """() => {
          const scale = Number(document.getElementById('drawing').style.getPropertyValue('--scale'));
          return [...document.querySelectorAll('.vertex *')]
            .filter((part) => part.checkVisibility({ visibilityProperty: true }) && part.childElementCount === 0 && part.textContent)
            .map((part) => parseFloat(getComputedStyle(part).fontSize) * scale);
        }"""
    )
    assert len(fonts) >= 2 * size
    assert min(fonts) >= LEAST_FONT_PX


def test_in_a_narrow_window_the_plan_is_drawn_from_top_to_bottom(open_page: Any) -> None:
    page = open_page(
        program_page(drawn("word_count").program()), viewport={"width": 390, "height": 844}
    )
    boxes = vertices(page)
    assert [box.number for box in sorted(boxes, key=lambda box: box.top)] == [1, 2, 3, 4]
    assert page.get_attribute("#drawing", "data-direction") == "DOWN"
    assert page.is_hidden("#overview"), "all of it is seen"


def test_a_small_plan_is_drawn_larger(open_page: Any) -> None:
    page = open_page(program_page(drawn("sessions").program()), viewport=LAPTOP)
    box = page.locator(".vertex").first
    assert box.bounding_box()["width"] > 1.2 * box.evaluate("(box) => box.offsetWidth")


@pytest.mark.parametrize("chains", [1, 8])
def test_long_chains_are_folded_into_rows(open_page: Any, chains: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    for number in range(chains):
        stream: Any = env.from_sequence(1, 9).name(f"topic {number}")
        for step in range(21):
            stream = stream.key_by(abs).reduce(max).name(f"most {step}")
        stream.print()
    page = open_page(program_page(env.program()), viewport=LAPTOP)
    boxes = vertices(page)
    assert overlapping(boxes) == []
    for line in wires(page):
        assert not any(box.holds(x, y) for box in boxes for x, y in line.points)
    view = page.locator("#view").bounding_box()
    places = [box.bounding_box() for box in page.locator(".vertex").all()]
    seen = [place for place in places if place["x"] + place["width"] <= view["width"]]
    assert max(place["y"] for place in seen) > 0.6 * view["height"], "the lower half is empty"
    if chains == 1:
        assert len(seen) == len(boxes), "all of it is seen"


@pytest.mark.parametrize("window", [LAPTOP, {"width": 390, "height": 844}], ids=["laptop", "phone"])
def test_a_plan_that_is_too_large_starts_at_its_first_box(open_page: Any, window: Any) -> None:
    """A staircase: its middle, which was shown, is far below its beginning."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    streams = [env.from_sequence(1, 9).name(f"topic {number}") for number in range(3)]
    number = 0
    while number < 250:
        stream, other = streams[number % 3].map(abs), streams[(number + 1) % 3]
        if number % 4 == 0:
            stream = stream.key_by(abs).reduce(max).name(f"most {number}")
        if number % 7 == 0:
            stream = stream.union(other.map(abs)).rebalance().filter(bool).name(f"any {number}")
        streams[number % 3] = stream
        number += 2 if number % 4 == 0 else 1
    for stream in streams:
        stream.print()
    page = open_page(program_page(env.program()), viewport=window)
    box, view = page.locator(".vertex").first.bounding_box(), page.locator("#view").bounding_box()
    assert view["y"] < box["y"]
    assert box["y"] + box["height"] < view["y"] + view["height"]
