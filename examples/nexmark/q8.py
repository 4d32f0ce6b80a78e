"""q8 - new users: the persons who signed up and began an auction within the same 10 seconds.

Windows remove duplicate sellers and duplicate persons. A window join then joins both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.streams import LATE, Result
from opchain.common import Duration
from opchain.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events
    from opchain.datastream import DataStream

SIZE_MS = 10_000
WINDOW = TumblingEventTimeWindows.of(Duration.of_millis(SIZE_MS))


def build(events: Events) -> Result:
    """A window join of distinct persons and distinct sellers."""
    timed = events.timed
    persons = distinct(timed.tuples(timed.persons("id", "name", "dateTime"))).name("persons")
    sellers = distinct(timed.tuples(timed.auctions("seller"))).name("sellers")
    rows = (
        persons.join(sellers)
        .where(lambda person: person[0])
        .equal_to(lambda seller: seller[0])
        .window(WINDOW)
        .apply(lambda person, _: row(person))
    )
    late = {
        "person": persons.get_side_output(LATE),
        "auction": sellers.get_side_output(LATE),
    }
    return Result(rows, late=late)


def distinct(records: DataStream[Any]) -> DataStream[Any]:
    """The first record of each window for each value of the first field."""
    keyed = records.key_by(lambda record: record[0]).window(WINDOW)
    return keyed.side_output_late_data(LATE).reduce(lambda first, _: first)


def row(person: Any) -> Row:
    """One row of the result."""
    id_, name, time = person[:3]
    return {"id": id_, "name": name, "stime": time - time % SIZE_MS}
