"""Controls Python's garbage collector: it runs less often between records, and not at all in snapshots, restores and the compiler.

Snapshots and restores make many long-lived objects, and no cycles. The more of them there are, the more the collector
has to scan. With a million keys and the collector running, a restore took four times as long. A snapshot took twice as
long, and the changes of 1,000 keys five times as long.
"""

from __future__ import annotations

import functools
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


CONTAINERS = 100_000
"""How many new containers start a collection; CPython's default is 700 to 2,000, by version."""


@contextmanager
def gc_relaxed() -> Iterator[None]:
    """Raises the threshold of garbage collection, so that most batches are created and dropped between two runs.

    A batch of tuples consists of thousands of containers that are dropped together soon. With the default
    threshold, the collector visits each of them once or twice in vain, which takes 20 to 30 % of the time of
    loading the batch. Garbage in cycles is still collected, some 10 MB later. If the collector is disabled, or
    its threshold is higher already, nothing is changed. The setting belongs to the process: if several tasks
    overlap in one process, use one block around all of them.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < CONTAINERS:
        yield
        return
    gc.set_threshold(CONTAINERS, *before[1:])
    try:
        yield
    finally:
        # Unless the user's code has chosen another setting in between.
        if gc.get_threshold()[0] == CONTAINERS:
            gc.set_threshold(*before)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pauses garbage collection, and resumes it if it was enabled."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@functools.cache
def freeze_imports() -> None:
    """Excludes the objects that exist now from all collections, once in a process.

    pyspark collects garbage after each task. Scanning the modules took it 30 ms of CPU time, and the rest of a small task
    12 ms. Called before a process loads the functions of its first task, so their objects are still collected.
    """
    gc.freeze()
