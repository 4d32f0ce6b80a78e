"""Positions on a plan page, in pixels of the drawing, and overlaps between boxes and arrows."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple


class Box(NamedTuple):
    """A rectangle with what it belongs to: the number of a vertex or of an exchange."""

    number: int
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, x: float, y: float, within: float = 1) -> bool:
        return (
            self.left + within < x < self.right - within
            and self.top + within < y < self.bottom - within
        )


class Wire(NamedTuple):
    """An arrow as points along it."""

    number: int
    points: list[tuple[float, float]]


_BOXES = """(selector) => [...document.querySelectorAll(selector)].map((box) => [
  Number(box.dataset.number ?? box.dataset.exchange), box.offsetLeft, box.offsetTop,
  box.offsetLeft + box.offsetWidth, box.offsetTop + box.offsetHeight])"""

_WIRES = """() => [...document.querySelectorAll('#wires path[data-exchange]')].map((path) => {
  const length = path.getTotalLength();
  const steps = Math.ceil(length / 8);
  const points = Array.from({ length: steps + 1 }, (_, step) => path.getPointAtLength((length * step) / steps));
  return [Number(path.dataset.exchange), points.map(({ x, y }) => [x, y])];
})"""


def vertices(page: Any) -> list[Box]:
    return [Box(*box) for box in page.evaluate(_BOXES, ".vertex")]


def labels(page: Any) -> list[Box]:
    return [Box(*box) for box in page.evaluate(_BOXES, ".exchange")]


def wires(page: Any) -> list[Wire]:
    return [Wire(number, [(x, y) for x, y in points]) for number, points in page.evaluate(_WIRES)]


def drawing(page: Any) -> Box:
    width, height = (float(page.get_attribute("#wires", side)) for side in ("width", "height"))
    return Box(0, 0, 0, width, height)


def overlapping(boxes: list[Box]) -> list[tuple[Box, Box]]:
    return [(one, other) for one, other in combinations(boxes, 2) if one.overlaps(other)]
