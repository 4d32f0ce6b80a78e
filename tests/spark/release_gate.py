"""Kills executors while a job reduces, and looks whether anything is lost, doubled, or moved.

Run `python tests/spark/release_gate.py --runs 10`. Each run has a seed, which is printed: it chooses the size of
the job, the moment of the kill, and what is killed, the JVM of an executor or its Python daemon. The job is a
rebalance followed by a keyed count that emits every update; an executor dies when some reducers are done and
others wait, so that the outputs of finished tasks are lost, and are computed and fetched again in another
order. Nothing may be missing, nothing double, and the bytes must be those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from opchain.runtime.testing.standalone_cluster import StandaloneCluster, kill, standalone_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

REDUCERS = 4
KEYS = 97
WAIT_S = 120


@dataclass(frozen=True)
class Disturbance:
    """What a seed means. `waiting` is the reducer that waits for the kill, among those behind the first two."""

    seed: int
    records: int
    waiting: int
    victim: int
    kills_python: bool

    @staticmethod
    def of(seed: int) -> Disturbance:
        draw = random.Random(seed)
        return Disturbance(
            seed,
            draw.randrange(2_000, 20_000),
            draw.randrange(2, REDUCERS),
            draw.randrange(2),
            draw.random() < 0.25,
        )


class WaitForKill(MapFunction[Any, Any]):
    """Passes records on; in one subtask only after the file `go` is there, having said `ready`."""

    def __init__(self, waiting: int | None, folder: str) -> None:
        self.waiting = waiting
        self.folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        if runtime_context.get_index_of_this_subtask() == self.waiting:
            Path(self.folder, "ready").touch()
            end = time.monotonic() + WAIT_S
            while not Path(self.folder, "go").exists():
                if time.monotonic() > end:
                    raise TimeoutError("nobody killed anything")
                time.sleep(0.02)

    def map(self, value: Any) -> Any:
        return value


def counted(records: int, waiting: int | None, folder: str) -> list[tuple[int, int]]:
    """The job: each record's key and how often it has come so far."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    counts = (
        env.from_sequence(1, records)
        .rebalance()
        .map(lambda number: (number * number % KEYS, 1))
        .set_parallelism(3)
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .set_parallelism(REDUCERS)
        .map(WaitForKill(waiting, folder))
        .set_parallelism(REDUCERS)
    )
    with counts.execute_and_collect() as collected:
        return list(collected)


def mistakes(records: int, found: list[tuple[int, int]]) -> list[str]:
    """What is lost or doubled: each key must come with 1, 2, 3, ..., as often as it occurs."""
    wrong = []
    expected = Counter(number * number % KEYS for number in range(1, records + 1))
    by_key: dict[int, list[int]] = {}
    for key, count in found:
        by_key.setdefault(key, []).append(count)
    for key, times in sorted(expected.items()):
        if by_key.get(key, []) != list(range(1, times + 1)):
            wrong.append(f"key {key}: expected 1 to {times}, found {by_key.get(key, [])[-5:]}")
    wrong += [f"key {key} should not exist" for key in sorted(by_key.keys() - expected.keys())]
    return wrong


def digest(found: Any) -> str:
    return hashlib.sha256(pickle.dumps(found, 5)).hexdigest()[:16]


@contextmanager
def killing(cluster: StandaloneCluster, what: Disturbance, folder: Path) -> Iterator[list[str]]:
    """Kills the victim as soon as the waiting reducer is ready; yields what was killed."""
    killed: list[str] = []
    ended = threading.Event()

    def watch() -> None:
        while not (folder / "ready").exists():
            if ended.wait(0.02):
                return
        processes = cluster.python_daemons() if what.kills_python else cluster.executors()
        victim = processes[what.victim % len(processes)]
        kill(victim)
        killed.append(f"{'Python daemon' if what.kills_python else 'executor'} {victim}")
        (folder / "go").touch()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def disturbed_run(cluster: StandaloneCluster, what: Disturbance) -> bool:
    """One run with a kill, and one without; prints what came of it."""
    undisturbed = counted(what.records, None, "")
    with tempfile.TemporaryDirectory() as name, killing(cluster, what, Path(name)) as killed:
        found = counted(what.records, what.waiting, name)
    wrong = mistakes(what.records, found)
    is_same = digest(found) == digest(undisturbed)
    verdict = "ok" if killed and is_same and not wrong else "WRONG"
    print(
        f"seed {what.seed}: {verdict}: {what.records} records, killed {killed or 'nothing'} while reducer "
        f"{what.waiting + 1} of {REDUCERS} waited; bytes {digest(found)}, undisturbed "
        f"{digest(undisturbed)}; lost or doubled: {wrong or 'nothing'}",
        flush=True,
    )
    return verdict == "ok"


def submit_to(cluster: StandaloneCluster, **settings: str) -> None:
    """Has this process's session be made on the cluster."""
    settings = {"spark.executor.memory": "512m", "spark.ui.enabled": "false"} | settings
    options = " ".join(f"--conf {key.replace('_', '.')}={value}" for key, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {cluster.url} {options} pyspark-shell"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None, help="of the first run; default: drawn")
    arguments = parser.parse_args()
    first = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with standalone_cluster(Path(folder)) as cluster:
            submit_to(cluster)
            results = [
                disturbed_run(cluster, Disturbance.of(seed))
                for seed in range(first, first + arguments.runs)
            ]
    print(f"{sum(results)} of {len(results)} runs ok")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
