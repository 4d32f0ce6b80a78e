"""q3 - local items: the sellers in category 10 who live in Oregon, Idaho or California.

Joins each auction of category 10 with its seller, if the seller lives in one of the three states. There is no time
limit: persons and auctions stay in state forever.
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
    """Two streams, keyed by the person, are inputs of one operator."""
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
    """Joins a person with the person's earlier and later auctions."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state."""
        self.person = runtime_context.get_state(
            ValueStateDescriptor("person", Types.PICKLED_BYTE_ARRAY())
        )
        self.early = runtime_context.get_list_state(
            ListStateDescriptor("auctions before their seller", Types.LONG())
        )

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Row]:
        """Joins a person with the auctions that arrived before."""
        self.person.update(value)
        for auction in self.early.get():
            yield row(value, auction)
        self.early.clear()

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Row]:
        """Joins an auction with its seller, or keeps it until the seller arrives."""
        person = self.person.value()
        if person is None:
            self.early.add(value[1])
        else:
            yield row(person, value[1])


def row(person: Any, auction: int) -> Row:
    """One row of the result."""
    _, name, city, state = person
    return {"name": name, "city": city, "state": state, "id": auction}
