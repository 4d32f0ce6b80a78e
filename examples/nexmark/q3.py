"""q3 - local items: who sells in category 10 in Oregon, Idaho or California.

Every auction of category 10 joined with the person who is its seller, if that person lives in one of the
three states. Neither side is bound in time: whichever comes first waits in state, forever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.streams import Result
from opchain.common import Types
from opchain.datastream.functions import KeyedCoProcessFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events
    from opchain.datastream.functions import RuntimeContext

STATES = ("OR", "ID", "CA")


def build(events: Events) -> Result:
    """Two streams, keyed by the person, meet in one operator."""
    auctions = (
        events.auctions("id", "seller", "category")
        .filter(lambda auction: auction.category == 10)
        .map(lambda auction: (auction.seller, auction.id))
    )
    persons = (
        events.persons("id", "name", "city", "state")
        .filter(lambda person: person.state in STATES)
        .map(lambda person: (person.id, person.name, person.city, person.state))
    )
    sellers = persons.key_by(lambda person: person[0])
    rows = sellers.connect(auctions.key_by(lambda auction: auction[0])).process(LocalItems())
    return Result(rows)


class LocalItems(KeyedCoProcessFunction[int, Any, Any, "Row"]):
    """For one person: joins what is for sale, now or later."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state."""
        self.person = runtime_context.get_state(
            ValueStateDescriptor("person", Types.PICKLED_BYTE_ARRAY())
        )
        self.early = runtime_context.get_list_state(
            ListStateDescriptor("auctions before their seller", Types.LONG())
        )

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Row]:
        """A person, to whom the auctions belong that came before."""
        self.person.update(value)
        for auction in self.early.get():
            yield row(value, auction)
        self.early.clear()

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Row]:
        """An auction, whose seller is known or not."""
        person = self.person.value()
        if person is None:
            self.early.add(value[1])
        else:
            yield row(person, value[1])


def row(person: Any, auction: int) -> Row:
    """One row of the result."""
    _, name, city, state = person
    return {"name": name, "city": city, "state": state, "id": auction}
