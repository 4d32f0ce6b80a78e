"""q11 - user sessions: how many bids each bidder makes before pausing for more than 10 seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.bid_counts import Count, PerWindow
from examples.nexmark.streams import LATE, Result
from opchain.common.time import Time
from opchain.datastream.window import EventTimeSessionWindows

if TYPE_CHECKING:
    from examples.nexmark.streams import Events

GAP = Time.seconds(10)


def build(events: Events) -> Result:
    """Session windows by bidder."""
    timed = events.timed
    rows = (
        timed.tuples(timed.bids("bidder"))
        .key_by(lambda bid: bid[0])
        .window(EventTimeSessionWindows.with_gap(GAP))
        .side_output_late_data(LATE)
        .aggregate(Count(), PerWindow())
        .name("sessions")
    )
    late: Any = rows.get_side_output(LATE)
    return Result(rows, late={"bid": late})
