"""Baselines with Spark's stateful API for Python, transformWithState, from a file to files.

Each query has one micro-batch with all data, which is the fastest form, and one that fires the timers. The last record
has a far later time, because nothing else ends the last windows.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import PARALLELISM
from benchmarks.json_lines import Written, empty_folder
from benchmarks.measure import Baseline
from benchmarks.nexmark_events import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Query = Callable[[Any], Any]

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BID = "auction bigint, bidder bigint, price bigint, dateTime bigint, extra string"
PERSON, AUCTION = "id bigint, name string, dateTime bigint", "seller bigint, dateTime bigint"
EVENT = f"person struct<{PERSON}>, auction struct<{AUCTION}>, bid struct<{BID}>"


def stateful_baseline(
    session: Any, paths: Sequence[Path], name: str, query: Query
) -> tuple[Baseline, ...]:
    """The query as a baseline that runs once, or no baseline if pandas or another requirement is not installed.

    Args:
        session: The Spark session.
        paths: Files of bids, or of events.
        name: The name of the query's folder.
        query: A function from the stream of all records to the stream of rows.
    """
    if any(find_spec(package) is None for package in ("google", "pandas", "pyarrow")):
        return ()

    def run() -> Written:
        folder = empty_folder(f"{name}-transform-with-state")
        _write_all(session, paths, folder, query)
        return Written(folder)

    return (Baseline("(d) transformWithState", run, 5.0, is_run_once=True),)


def _write_all(session: Any, paths: Sequence[Path], folder: Path, query: Query) -> None:
    files = paths[0].with_name(paths[0].stem.removesuffix("-0"))
    is_bids = "bids" in files.name
    _write_end(files, is_bids=is_bids)
    session.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
    session.conf.set("spark.sql.shuffle.partitions", PARALLELISM)
    schema = BID if is_bids else EVENT
    lines = session.readStream.schema(schema).json(f"{files}-*.jsonl")
    checkpoint = tempfile.mkdtemp(prefix="opchain-benchmarks-")
    try:
        rows = query(lines).writeStream.format("json").option("path", str(folder))
        started = rows.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        started.awaitTermination()
    finally:
        shutil.rmtree(checkpoint)


def _write_end(files: Path, *, is_bids: bool) -> None:
    bid = {"auction": -1, "bidder": -1, "price": 0, "dateTime": LATEST, "extra": ""}
    # Spark pushes filters below watermarks, so the record must pass the filters of all queries.
    record = bid if is_bids else {"auction": {"seller": -1, "dateTime": LATEST}, "bid": bid}
    Path(f"{files}-end.jsonl").write_text(json.dumps(record) + "\n")
