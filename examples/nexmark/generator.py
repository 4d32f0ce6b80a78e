"""Generates events: one person, three auctions and 46 bids in turn, the same bytes for the same seed.

As in the Nexmark benchmark, half of the bids go to a hot auction, and three quarters of bidders and sellers are hot.
Each hundredth auction or person is the next hot one. A bid may refer to an auction that begins a little later, and an
auction to a person who signs up a little later. The generator uses only `Random.random`, and no powers of floats, so
its events are the same in every version of Python and on every machine.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
from contextlib import ExitStack
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BASE_TIME = 1_700_000_000_000
PERSONS, AUCTIONS, BIDS = 1, 3, 46
IN_TURN = PERSONS + AUCTIONS + BIDS
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
IN_FLIGHT_AUCTIONS, ACTIVE_PERSONS = 100, 1_000
LEAD = 10
"""How far an id in an event may be ahead of the last existing id."""

HOT_EVERY = 100
HOT_AUCTIONS, HOT_BIDDERS, HOT_SELLERS = 1 / 2, 3 / 4, 3 / 4
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
OTHER_CHANNELS = 10_000

FIRST_NAMES = [
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eve",
    "Finn",
    "Gail",
    "Hugo",
    "Iris",
    "Jon",
    "Kate",
    "Luke",
]
LAST_NAMES = [
    "Abel",
    "Brown",
    "Cole",
    "Diaz",
    "Evans",
    "Frost",
    "Gray",
    "Hill",
    "Irwin",
    "Jones",
    "Klein",
    "Lang",
]
PLACES = [
    ("Phoenix", "AZ"),
    ("Los Angeles", "CA"),
    ("San Francisco", "CA"),
    ("Boise", "ID"),
    ("Portland", "OR"),
    ("Bend", "OR"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Cheyenne", "WY"),
]
_PRICE_STEPS = 600
_PRICES = [round(100 * Decimal(10) ** (Decimal(step) / 100)) for step in range(_PRICE_STEPS + 1)]
"""Prices in cents, from 1 to a million, with a constant ratio between two neighbours."""

_TEXT_LENGTH = 1 << 16


class Generator:
    """Generates events by their number.

    Args:
        seed: Generators with the same seed and rate generate the same events.
        rate: Events per second of event time.
    """

    def __init__(self, seed: int, rate: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - not for secrets
        self._rate = rate
        self._letters = "".join(chr(97 + self._below(26)) for _ in range(_TEXT_LENGTH))
        self._other_channels = [self._other_channel(number) for number in range(OTHER_CHANNELS)]
        self._hot_channels = [(name, self._url()) for name in HOT_CHANNELS]

    def events(self, count: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Pairs of timestamp and event, in the order of timestamps."""
        for number in range(count):
            time = self._time(number)
            turn, place = divmod(number, IN_TURN)
            person = bid = auction = None
            if place < PERSONS:
                kind, person = 0, self._person(turn, time)
            elif place < PERSONS + AUCTIONS:
                kind, auction = 1, self._auction(turn, place - PERSONS, number, time)
            else:
                kind, bid = 2, self._bid(turn, time)
            yield time, {"event_type": kind, "person": person, "auction": auction, "bid": bid}

    def _time(self, number: int) -> int:
        return BASE_TIME + number * 1000 // self._rate

    def _person(self, number: int, time: int) -> dict[str, Any]:
        first, last = self._one_of(FIRST_NAMES), self._one_of(LAST_NAMES)
        city, state = self._one_of(PLACES)
        card = " ".join(f"{self._below(10_000):04}" for _ in range(4))
        return {
            "id": FIRST_ID + number,
            "name": f"{first} {last}",
            "emailAddress": f"{self._text(7)}@{self._text(5)}.com",
            "creditCard": card,
            "city": city,
            "state": state,
            "dateTime": time,
            "extra": self._about(100),
        }

    def _auction(self, turn: int, place: int, number: int, time: int) -> dict[str, Any]:
        horizon = self._time(number + IN_FLIGHT_AUCTIONS * IN_TURN // AUCTIONS) - time
        initial_bid = self._price()
        return {
            "id": FIRST_ID + turn * AUCTIONS + place,
            "itemName": self._about(20),
            "description": self._about(100),
            "initialBid": initial_bid,
            "reserve": initial_bid + self._price(),
            "dateTime": time,
            "expires": time + 1 + self._below(max(2 * horizon, 1)),
            "seller": self._somebody(turn, HOT_SELLERS, 0),
            "category": FIRST_CATEGORY + self._below(CATEGORIES),
            "extra": self._about(300),
        }

    def _bid(self, turn: int, time: int) -> dict[str, Any]:
        last = turn * AUCTIONS + AUCTIONS - 1
        if self._random() < HOT_AUCTIONS:
            auction = last // HOT_EVERY * HOT_EVERY
        else:
            first = max(last - IN_FLIGHT_AUCTIONS, 0)
            auction = first + self._below(last - first + 1 + LEAD)
        channels = self._hot_channels if self._random() < 1 / 2 else self._other_channels
        channel, url = self._one_of(channels)
        return {
            "auction": FIRST_ID + auction,
            "bidder": self._somebody(turn, HOT_BIDDERS, 1),
            "price": self._price(),
            "channel": channel,
            "url": url,
            "dateTime": time,
            "extra": self._about(68),
        }

    def _somebody(self, turn: int, hot: float, beside: int) -> int:
        """The id of a person. Hot sellers and hot bidders are different persons."""
        if self._random() < hot:
            return FIRST_ID + turn // HOT_EVERY * HOT_EVERY + beside
        active = min(turn + 1, ACTIVE_PERSONS)
        return FIRST_ID + turn + 1 - active + self._below(active + LEAD)

    def _price(self) -> int:
        step = self._below(_PRICE_STEPS)
        low, high = _PRICES[step], _PRICES[step + 1]
        return low + self._below(high - low + 1)

    def _other_channel(self, number: int) -> tuple[str, str]:
        url = self._url()
        if self._random() < 9 / 10:
            url += f"&channel_id={self._below(1 << 31)}"
        return f"channel-{number}", url

    def _url(self) -> str:
        directories = "/".join(self._text(5) for _ in range(3))
        return f"https://www.nexmark.com/{directories}/item.htm?query=1"

    def _about(self, length: int) -> str:
        """A text whose length is within a fifth of `length`."""
        spread = length // 5
        return self._text(length - spread + self._below(2 * spread + 1))

    def _text(self, length: int) -> str:
        start = self._below(_TEXT_LENGTH - length)
        return self._letters[start : start + length]

    def _below(self, limit: int) -> int:
        return int(self._random() * limit)

    def _one_of(self, choices: list[Any]) -> Any:
        return choices[self._below(len(choices))]


def shuffled(
    events: Iterable[tuple[int, Any]], out_of_order_ms: int, seed: int
) -> Iterator[tuple[int, Any]]:
    """The events, out of order by less than `out_of_order_ms`."""
    delay = random.Random(f"order {seed}").random  # noqa: S311 - not for secrets
    waiting: list[tuple[float, int, int, Any]] = []
    for number, (time, event) in enumerate(events):
        while waiting and waiting[0][0] < time:
            _, _, earlier, waited = heapq.heappop(waiting)
            yield earlier, waited
        heapq.heappush(waiting, (time + delay() * out_of_order_ms, number, time, event))
    while waiting:
        _, _, earlier, waited = heapq.heappop(waiting)
        yield earlier, waited


def write(events: Iterable[tuple[int, Any]], paths: list[Path]) -> None:
    """Writes events as JSON lines, one event to each file in turn."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    with ExitStack() as stack:
        files = [
            stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths
        ]
        for (_, event), file in zip(events, cycle(files)):
            file.write(encode(event) + "\n")


def main(arguments: list[str]) -> int:
    """Runs the command."""
    options = _parser().parse_args(arguments)
    out: Path = options.out
    if options.files > 1 or out.is_dir():
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"events-{number}.jsonl" for number in range(options.files)]
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        paths = [out]
    events: Iterable[tuple[int, Any]] = Generator(options.seed, options.rate).events(options.count)
    if options.out_of_order_ms:
        events = shuffled(events, options.out_of_order_ms, options.seed)
    write(events, paths)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.nexmark generate",
        description="Generates events of the Nexmark benchmark.",
    )
    parser.add_argument(
        "--count", type=positive, default=1_000_000, help="events (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument(
        "--rate", type=positive, default=10_000, help="events per second (default: %(default)s)"
    )
    parser.add_argument(
        "--out-of-order-ms",
        type=int,
        default=0,
        help="events are out of order by less than this (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, required=True, help="file, or folder for several files")
    parser.add_argument(
        "--files",
        type=positive,
        default=1,
        help="number of files to write (default: 1)",
    )
    return parser


def positive(text: str) -> int:
    """Parses a number of the command line that must be at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number
