"""Hand-written Nexmark queries in PySpark: they parse, fold and shuffle batches, with one dictionary per partition.

Each partition folds as much as possible before it sends results. The input is bounded, so an expert would do so.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.by_hand import parts, shuffled
from benchmarks.environment import PARALLELISM
from benchmarks.json_lines import blocks, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Sent = Iterator[tuple[int, bytes]]

RATE = Decimal("0.908")
SIZE_MS, STEP_MS = 10_000, 2_000


class Bid(msgspec.Struct, rename="camel", gc=False):
    """A bid as most queries return it; q1 makes its price a Decimal."""

    auction: int
    bidder: int
    price: Any
    date_time: int
    extra: str


class Selected(msgspec.Struct, gc=False):
    """A bid as q2 returns it."""

    auction: int
    price: int


class Timed(msgspec.Struct, rename="camel", gc=False):
    """The field of a bid that q5 reads."""

    auction: int
    date_time: int


class Person(msgspec.Struct, rename="camel", gc=False):
    """The fields of a person that q8 reads."""

    id: int
    name: str
    date_time: int


class Auction(msgspec.Struct, rename="camel", gc=False):
    """The fields of an auction that q8 reads."""

    seller: int
    date_time: int


class Signing(msgspec.Struct, gc=False):
    """The kinds of events that q8 reads."""

    person: Person | None = None
    auction: Auction | None = None


def q0(context: Any, path: Path, folder: Path) -> None:
    """Every bid."""
    _mapped(context, path, folder, Bid, lambda bids: bids)


def q1(context: Any, path: Path, folder: Path) -> None:
    """Every bid in another currency."""

    def converted(bids: list[Bid]) -> list[Bid]:
        for bid in bids:
            bid.price *= RATE
        return bids

    _mapped(context, path, folder, Bid, converted)


def q2(context: Any, path: Path, folder: Path) -> None:
    """Bids for some auctions."""
    _mapped(
        context,
        path,
        folder,
        Selected,
        lambda bids: [bid for bid in bids if bid.auction % 123 == 0],
    )


def q5(context: Any, path: Path, folder: Path) -> None:
    """The auctions with the most bids of each sliding window."""
    counts = shuffled(parts(context, lambda part: _counts(path, part)))
    hottest = shuffled(counts.mapPartitions(_hottest_here))
    _write(hottest, folder, _hottest)


def q7(context: Any, path: Path, folder: Path) -> None:
    """The highest bids of each window."""
    _write(shuffled(parts(context, lambda part: _highest_here(path, part))), folder, _highest)


def q8(context: Any, path: Path, folder: Path) -> None:
    """The persons who sign up and begin an auction in the same window."""
    _write(shuffled(parts(context, lambda part: _signed_up(path, part))), folder, _new_sellers)


def _mapped(
    context: Any,
    path: Path,
    folder: Path,
    kind: type[Any],
    rows: Callable[[list[Any]], Iterable[Any]],
) -> None:
    def loop(part: int) -> Iterator[Any]:
        lines = (_lines(rows(bids)) for bids in _bids(path, part, kind))
        return write(folder, part, lines)

    parts(context, loop).collect()


def _write(batches: Any, folder: Path, rows: Callable[[Iterable[bytes]], Iterable[Any]]) -> None:
    batches.mapPartitionsWithIndex(
        lambda part, received: write(folder, part, [_lines(rows(received))])
    ).collect()


def _lines(rows: Iterable[Any]) -> bytes:
    return msgspec.json.Encoder(decimal_format="number").encode_lines(rows)


def _bids(path: Path, part: int, kind: type[Any]) -> Iterator[list[Any]]:
    """The bids of a part of a file as instances of `kind`, one list per block."""
    event = msgspec.defstruct("Event", [("bid", kind | None, None)], gc=False)
    decode: Any = msgspec.json.Decoder(event).decode_lines
    for block in blocks(path, part):
        yield [found.bid for found in decode(block) if found.bid is not None]


def _sent(buckets: Iterable[Any]) -> Sent:
    for target, bucket in enumerate(buckets):
        yield target, pickle.dumps(bucket, 5)


def _counts(path: Path, part: int) -> Sent:
    """The number of bids by auction and step of the window."""
    counts: Counter[tuple[int, int]] = Counter()
    for bids in _bids(path, part, Timed):
        counts.update([(bid.auction, bid.date_time // STEP_MS) for bid in bids])
    buckets: list[list[Any]] = [[] for _ in range(PARALLELISM)]
    for (auction, step), count in counts.items():
        buckets[auction % PARALLELISM].append((auction, step, count))
    return _sent(buckets)


def _hottest_here(batches: Iterable[bytes]) -> Sent:
    """The greatest count of this partition by window, with its auctions."""
    windows: dict[int, dict[int, int]] = defaultdict(dict)
    for batch in batches:
        for auction, step, count in pickle.loads(batch):
            for last in range(step, step + SIZE_MS // STEP_MS):
                counts = windows[last]
                counts[auction] = counts.get(auction, 0) + count
    buckets: list[list[Any]] = [[] for _ in range(PARALLELISM)]
    for last, counts in windows.items():
        greatest = max(counts.values())
        auctions = [auction for auction, count in counts.items() if count == greatest]
        buckets[last % PARALLELISM].append((last, greatest, auctions))
    return _sent(buckets)


def _hottest(batches: Iterable[bytes]) -> Iterator[dict[str, int]]:
    windows: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for batch in batches:
        for last, greatest, auctions in pickle.loads(batch):
            windows[last][greatest] += auctions
    for last, by_count in windows.items():
        greatest, end = max(by_count), (last + 1) * STEP_MS
        for auction in by_count[greatest]:
            yield {
                "auction": auction,
                "num": greatest,
                "starttime": end - SIZE_MS,
                "endtime": end,
            }


def _best(bids: Iterable[Any], windows: dict[int, list[Any]]) -> None:
    """Updates `windows`: the bids (auction, bidder, price, time, extra) with the highest price of each window."""
    for bid in bids:
        price, window = bid[2], bid[3] // SIZE_MS
        best = windows.get(window)
        if best is None or price > best[0][2]:
            windows[window] = [bid]
        elif price == best[0][2]:
            best.append(bid)


def _highest_here(path: Path, part: int) -> Sent:
    windows: dict[int, list[Any]] = {}
    for bids in _bids(path, part, Bid):
        _best(map(msgspec.structs.astuple, bids), windows)
    buckets: list[list[Any]] = [[] for _ in range(PARALLELISM)]
    for window, bids in windows.items():
        buckets[window % PARALLELISM] += bids
    return _sent(buckets)


def _highest(batches: Iterable[bytes]) -> Iterator[Bid]:
    windows: dict[int, list[Any]] = {}
    for batch in batches:
        _best(pickle.loads(batch), windows)
    for bids in windows.values():
        for bid in bids:
            yield Bid(*bid)


def _signed_up(path: Path, part: int) -> Sent:
    """The persons and sellers in a part of the file, with their windows."""
    buckets: list[tuple[list[Any], set[Any]]] = [([], set()) for _ in range(PARALLELISM)]
    decode = msgspec.json.Decoder(Signing).decode_lines
    for block in blocks(path, part):
        for event in decode(block):
            if event.auction is not None:
                seller = event.auction.seller
                window = event.auction.date_time // SIZE_MS
                buckets[seller % PARALLELISM][1].add((seller, window))
            elif event.person is not None:
                person = event.person
                window = person.date_time // SIZE_MS
                buckets[person.id % PARALLELISM][0].append((person.id, window, person.name))
    return _sent(buckets)


def _new_sellers(batches: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    persons: dict[tuple[int, int], str] = {}
    sellers: set[tuple[int, int]] = set()
    for batch in batches:
        signed_up, selling = pickle.loads(batch)
        persons.update({(id_, window): name for id_, window, name in signed_up})
        sellers |= selling
    for (id_, window), name in persons.items():
        if (id_, window) in sellers:
            yield {"id": id_, "name": name, "stime": window * SIZE_MS}
