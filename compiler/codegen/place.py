"""Where in a function the code for one record stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Which variables hold the record, how deep the code is, and what ends the record.

    `timestamp` is None where records carry none. `skip` is the statement that drops the record and
    continues with the next one, or None where more must happen to it afterwards. `counted` is an
    expression for how many records come by, valid after the loop; None where there is no loop and
    each is counted as it comes. `is_copied` asks for a copy before the record is used. `time_of` holds the variable of
    the record that the timestamp was taken from, and the item it is, as an expression over `value`. Where
    `fields` is set the record is a tuple that was not made: these are its fields, and nobody reads `value`.
    `items` are those that stand in variables of their own (private_items.py).
    """

    value: str
    timestamp: str | None
    depth: int
    skip: str | None
    counted: str | None
    is_copied: bool = False
    time_of: tuple[str, str] | None = None
    fields: tuple[str, ...] | None = None
    items: tuple[tuple[str, str], ...] = ()
