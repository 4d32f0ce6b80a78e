"""Compares the time to choose the channel of a key with `hash(key) % n`, which is not correct, but the fastest possible.

Run `python benchmarks/key_routing.py`. Each line is one kind of keys in batches of one size: nanoseconds per key
(fastest of five runs over all batches) of the comprehension and of a new router, and their ratio. String keys are new
objects, as after unpickling, whose hash Python has not computed yet. Keys named "same objects" are hashed already.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from typing import TYPE_CHECKING, Any

from opchain.runtime.state.keys.key_router import KeyRouter

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PARALLELISM, PARALLELISM = 128, 7
RUNS = 5


def zipf(count: int, words: int, exponent: float, rng: random.Random) -> list[int]:
    """Draws numbers from 0 to `words` - 1. The frequency of the r-th number is r**-exponent times that of the first."""
    weights = itertools.accumulate(rank**-exponent for rank in range(1, words + 1))
    return rng.choices(range(words), cum_weights=list(weights), k=count)


def fresh(word: str) -> str:
    """An equal string that is a new object, whose hash is not computed yet."""
    return (word + "!")[:-1]


def kinds_of_keys(count: int) -> dict[str, Callable[[], list[Any]]]:
    """By name, a function that makes the keys. It is called once per run."""
    rng = random.Random(7)
    ints = [rng.getrandbits(64) - 2**63 for _ in range(count)]
    few_ints = [rng.randrange(10_000) for _ in range(count)]
    words = [f"user-{rank:06d}" for rank in zipf(count, 100_000, 1.1, rng)]
    names = [f"user-{number:x}" for number in ints]
    doubles = [rng.uniform(-1e9, 1e9) for _ in range(count)]
    return {
        "ints, distinct": lambda: ints,
        "ints, 10,000 values": lambda: few_ints,
        "strs, Zipf 1.1 of 100,000, same objects": lambda: words,
        "strs, Zipf 1.1 of 100,000": lambda: list(map(fresh, words)),
        "strs, distinct": lambda: list(map(fresh, names)),
        "floats, distinct": lambda: doubles,
        "tuples (Zipf str, int)": lambda: list(zip(map(fresh, words), few_ints, strict=True)),
    }


def nanoseconds_per_key(
    make_keys: Callable[[], list[Any]],
    make_route: Callable[[], Callable[[list[Any]], object]],
    batch: int,
) -> float:
    """The fastest run. Each run has its own keys and its own router."""
    best = float("inf")
    for _ in range(RUNS):
        keys, route = make_keys(), make_route()
        batches = [keys[begin : begin + batch] for begin in range(0, len(keys), batch)]
        start = time.perf_counter_ns()
        for some in batches:
            route(some)
        best = min(best, (time.perf_counter_ns() - start) / len(keys))
    return best


def plain(keys: list[Any]) -> list[int]:
    """The fastest possible choice of a channel in Python."""
    return [hash(key) % PARALLELISM for key in keys]


def main() -> None:
    """Prints the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{count:,} keys, {MAX_PARALLELISM} key groups, {PARALLELISM} channels; ns per key")
    print(f"{'keys':42} {'batch':>7} {'hash %':>8} {'router':>8} {'ratio':>7}")
    for name, make_keys in kinds_of_keys(count).items():
        for batch in (100, 1_000, 10_000):
            least = nanoseconds_per_key(make_keys, lambda: plain, batch)
            ours = nanoseconds_per_key(
                make_keys, lambda: KeyRouter(MAX_PARALLELISM, PARALLELISM).route, batch
            )
            print(f"{name:42} {batch:>7,} {least:>8.0f} {ours:>8.0f} {ours / least:>7.2f}")


if __name__ == "__main__":
    main()
