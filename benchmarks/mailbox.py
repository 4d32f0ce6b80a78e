"""Measures the mailbox: nanoseconds per turn.

    python benchmarks/mailbox.py

The first line of the output matters most: a turn without mail, compared with a bare call of the default action. A
default action processes one buffer of records, so a task pays this cost once per buffer.
"""

from __future__ import annotations

import platform
from functools import partial
from itertools import repeat
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.mailbox.mailbox_processor import Controller

ROUNDS = 9
CALLS = 200_000


def default_action(_: Controller) -> None:
    """Stands for processing one buffer."""


def nothing() -> None:
    """Stands for the action of a mail."""


def ns_per_call(call: Callable[[], object], calls: int = CALLS) -> float:
    """Times many calls. The result includes the loop around them."""
    started_ns = perf_counter_ns()
    for _ in repeat(None, calls):
        call()
    return (perf_counter_ns() - started_ns) / calls


def main() -> None:
    """Prints the medians of rounds in which all measurements alternate."""
    processor = MailboxProcessor(default_action)
    executor = processor.mailbox_executor(0)

    def mail_and_turn() -> None:
        executor.execute(nothing, "mail")
        processor.turn()

    def mail_and_yield() -> None:
        executor.execute(nothing, "mail")
        executor.yield_()

    def submit_and_yield() -> None:
        executor.submit(nothing, "mail")
        executor.yield_()

    measured: dict[str, tuple[Callable[[], object], int]] = {
        "bare": (partial(default_action, processor), CALLS),
        "turn": (processor.turn, CALLS),
        "mail and turn": (mail_and_turn, CALLS // 20),
        "mail and yield": (mail_and_yield, CALLS // 20),
        "submit and yield": (submit_and_yield, CALLS // 20),
        "try_yield": (executor.try_yield, CALLS // 5),
    }
    rounds: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(ROUNDS):
        for name, (call, calls) in measured.items():
            rounds[name].append(ns_per_call(call, calls))
    ns = {name: median(times) for name, times in rounds.items()}

    print(f"Python {platform.python_version()}, {platform.machine()}, medians of {ROUNDS} rounds")
    print(
        f"{ns['turn'] - ns['bare']:8.0f} ns  a turn without mail, over calling the default action"
    )
    print(f"{ns['turn']:8.0f} ns  a turn without mail, default action included")
    print(
        f"{ns['mail and turn'] - ns['turn']:8.0f} ns  one mail sent and run by a turn, over a turn without"
    )
    print(f"{ns['mail and yield']:8.0f} ns  one mail sent and run by yield_")
    print(f"{ns['submit and yield']:8.0f} ns  one mail submitted and run by yield_")
    print(f"{ns['try_yield']:8.0f} ns  try_yield without mail")


if __name__ == "__main__":
    main()
