"""Kills executors while a job reduces, and checks that no record is lost, repeated, or reordered.

Run `python tests/spark/release_gate.py --runs 10`. The seed of each run is printed. The seed chooses the size of
the job, the moment of the kill, and the victim: the JVM of an executor or its Python daemon. The job is a
rebalance followed by a keyed count that emits every update. An executor dies when some reducers are done and
another one waits. So the outputs of finished tasks are lost, computed again, and fetched in another
order. No record may be lost or repeated, and the bytes must be those of an undisturbed run in one process.

`--identical 6` runs an undisturbed job six times and compares the bytes, since executors fetch in another order each
time. With `--speculation`, Spark also starts second copies of a slow task.
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).parents[1]))

from standalone_cluster import StandaloneCluster, kill, standalone_cluster

from opchain.common import Configuration
from opchain.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAPPERS = 3
REDUCERS = 4
KEYS = 97
WAIT_S = 120
# Both workers are on one host if it isn't Linux: then Spark starts no second copy.
STRAGGLES_S = WAIT_S if sys.platform == "linux" else 8

Update = tuple[int, int]


@dataclass(frozen=True)
class Disturbance:
    """The choices of a seed: `waiting` is the reducer that waits for the kill, behind the first two."""

    seed: int
    records: int
    waiting: int
    victim: int
    kills_python: bool

    @staticmethod
    def of(seed: int) -> Disturbance:
        draw = random.Random(seed)
        records, waiting = draw.randrange(20_000, 80_000), draw.randrange(2, REDUCERS)
        return Disturbance(seed, records, waiting, draw.randrange(2), draw.random() < 0.25)


def waited_for(condition: Callable[[], bool], limit_s: float) -> bool:
    """Waits until a condition is true; returns False if it is not within the limit."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class WaitForKill(MapFunction[Any, Any]):
    """Passes records on; one subtask creates the file `ready`, and waits for the file `go`."""

    def __init__(self, waiting: int, folder: Path) -> None:
        self.waiting = waiting
        self.folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        if runtime_context.get_index_of_this_subtask() == self.waiting:
            (self.folder / "ready").touch()
            if not waited_for((self.folder / "go").exists, WAIT_S):
                raise TimeoutError("nobody killed anything")

    def map(self, value: Any) -> Any:
        return value


class StraggleOnce(MapFunction[Any, Any]):
    """Passes records on; the first attempt of one subtask waits for its second copy. Each start leaves a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        subtask = runtime_context.get_index_of_this_subtask()
        attempt = runtime_context.get_attempt_number()
        (self.folder / f"{subtask}-{attempt}-{os.getpid()}").touch()
        if subtask == 1 and attempt == 0:
            waited_for(lambda: len(list(self.folder.glob("1-*"))) > 1, STRAGGLES_S)

    def map(self, value: Any) -> Any:
        return value


def counted(
    records: int, slow: MapFunction[Any, Any] | None = None, *, target: str = "spark"
) -> list[Update]:
    """The job: each record's key with its count so far. `slow` runs downstream of the count."""
    configuration = Configuration()
    configuration.set_string("execution.target", target)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    counts = (
        env.from_sequence(1, records)
        .rebalance()
        .map(lambda number: (number * number % KEYS, 1))
        .set_parallelism(MAPPERS)
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .set_parallelism(REDUCERS)
        .map(slow or (lambda pair: pair))
        .set_parallelism(REDUCERS)
    )
    with counts.execute_and_collect() as collected:
        return list(collected)


def mistakes(records: int, found: list[Update]) -> list[str]:
    """Which records are lost or repeated: each key must occur with the counts 1, 2, 3, and so on."""
    expected = Counter(number * number % KEYS for number in range(1, records + 1))
    by_key: dict[int, list[int]] = {key: [] for key in expected}
    for key, count in found:
        by_key.setdefault(key, []).append(count)
    return [
        f"key {key}: expected 1 to {expected[key]}, found {len(counts)} up to {max(counts, default=0)}"
        for key, counts in sorted(by_key.items())
        if counts != list(range(1, expected[key] + 1))
    ]


def digest(found: list[Update]) -> str:
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
    """Runs the job with one kill; returns what was wrong."""
    undisturbed = digest(counted(what.records, target="local"))
    with tempfile.TemporaryDirectory() as name, killing(cluster, what, Path(name)) as killed:
        found = counted(what.records, WaitForKill(what.waiting, Path(name)))
    wrong = mistakes(what.records, found)
    is_ok = bool(killed) and not wrong and digest(found) == undisturbed
    say(
        f"seed {what.seed}: {'ok' if is_ok else 'WRONG'}: {what.records} records, killed "
        f"{', '.join(killed) or 'nothing'} while reducer {what.waiting + 1} of {REDUCERS} waited; bytes "
        f"{digest(found)}, undisturbed {undisturbed}; lost or doubled: {'; '.join(wrong) or 'nothing'}"
    )
    return is_ok


def identical_runs(runs: int, *, with_straggler: bool) -> bool:
    """Runs the job several times; the bytes must be those of a run in one process."""
    records = 50_000
    expected = digest(counted(records, target="local"))
    found = []
    copies = 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name:
            slow = StraggleOnce(Path(name)) if with_straggler else None
            found.append(digest(counted(records, slow)))
            copies += max(0, len(list(Path(name).iterdir())) - REDUCERS) if with_straggler else 0
    is_ok = set(found) == {expected}
    more = f", {copies} second copies ran" if with_straggler else ""
    say(
        f"{runs} runs{more}: {'ok' if is_ok else 'WRONG'}: bytes {expected} in one process, {found}"
    )
    return is_ok


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def submit_to(master: str, *, with_speculation: bool) -> None:
    """Makes this process create its session on the given master."""
    settings = {"spark.executor.memory": "512m", "spark.ui.enabled": "false"}
    if with_speculation:
        settings |= {
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.minTaskRuntime": "100ms",
        }
    options = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {master} {options} pyspark-shell"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10, help="with a kill (default 10)")
    parser.add_argument("--seed", type=int, help="of the first run (default: drawn)")
    parser.add_argument("--identical", type=int, default=6, help="without a kill (default 6)")
    parser.add_argument(
        "--speculation", action="store_true", help="start second copies of slow tasks"
    )
    parser.add_argument("--master", help="of a cluster that runs already, in --folder")
    parser.add_argument("--folder", type=Path, help="where that cluster has its files")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    first = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    with ExitStack() as stack:
        if given.master:
            cluster = StandaloneCluster(given.master, given.folder)
        else:
            name = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            cluster = stack.enter_context(standalone_cluster(Path(name)))
        submit_to(cluster.url, with_speculation=given.speculation)
        results = []
        if given.identical:
            results.append(identical_runs(given.identical, with_straggler=given.speculation))
        results += [
            disturbed_run(cluster, Disturbance.of(seed))
            for seed in range(first, first + given.runs)
        ]
    say(f"{sum(results)} of {len(results)} ok")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
