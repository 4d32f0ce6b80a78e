"""Kills and freezes processes of a job at random times, many times, and compares the output with the expected one.

`python tests/spark/faults/kill_campaign.py --kills 1000 --seed 1`. A round is one job. Its seed chooses the master
(`local` or a standalone cluster), the state backend, and the sink (files, PostgreSQL, Kafka, collected results). Each start of
the driver has another parallelism, from 1 to 8. Every few seconds a driver, an executor, a Python daemon or a Python worker is
killed or frozen. While a process is frozen, others are killed. At the end the job reads the rest of its input. Its output
must contain each record once. No round begins after `--until`.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).parents[2]))

from disturbed_job import OUTPUTS, SINKS
from expected_output import last_rows, mistakes, rows_of, write_rows, written
from kafka_broker import Kafka, running_kafka
from postgres_server import USER, Server, postgres_server
from standalone_cluster import StandaloneCluster, standalone_cluster
from supervised_driver import SupervisedDriver
from victims import DRIVER, EXECUTOR, FROZEN_EXECUTOR, PYTHON_DAEMON, PYTHON_WORKER, Processes, send

if TYPE_CHECKING:
    from collections.abc import Iterable

ROWS = 100
FILE_EACH_S = 1.0
LAST_RUN_S = 600
PAUSE_S = (0.1, 3.0)
"""Between two kills: epochs take about a second, so some are completed."""

HIT_AT_START = 0.05
"""How many of the hits on a driver count before its first task: otherwise it would rarely come to one."""

MOST_S_PER_KILL = 15
"""A round does not wait longer for the processes that it wants to kill."""

FROZEN_S = (0.5, 12.0)
"""The network timeout of the cluster is 10 s: some executors are declared lost before they wake."""

LOCAL = "local[2,100]"
OPTIONS = (
    "--driver-memory 600m --executor-memory 512m --conf spark.task.maxFailures=100 "
    "--conf spark.network.timeout=10s --conf spark.network.timeoutInterval=3s "
    "--conf spark.executor.heartbeatInterval=2s"
)
FROZEN_DRIVER = "driver, frozen"
FROZEN_WORKER = "Python worker, frozen"
KINDS = {
    PYTHON_WORKER: 5,
    PYTHON_DAEMON: 4,
    FROZEN_WORKER: 1,
    EXECUTOR: 2,
    FROZEN_EXECUTOR: 1,
    DRIVER: 2,
    FROZEN_DRIVER: 1,
}
"""How often each kind is drawn, relative to the others."""


class Round:
    """One job with the choices of its seed; `run` returns what is wrong with its output."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        kills: int,
        cluster: StandaloneCluster,
        sinks: dict[str, Server | Kafka | None],
    ) -> None:
        self.draw = draw = random.Random(seed)
        self.folder, self.seed, self.kills = folder, seed, kills
        self.cluster = draw.choice([None, cluster])
        self.backend = draw.choice(["hashmap", "rocksdb"])
        self.sink = draw.choice(list(sinks))
        self.place = sinks[self.sink]
        self.done: Counter[str] = Counter()
        self.files = 0
        self._is_over = threading.Event()
        self._wakers: list[threading.Timer] = []

    def __str__(self) -> str:
        master = "local" if self.cluster is None else "standalone"
        return f"{master}, {self.backend}, {self.sink}"

    def run(self) -> list[str]:
        (self.folder / "in").mkdir()
        target = self._prepared_target()
        parallelisms = random.Random(self.seed)
        with ExitStack() as stack:
            driver = SupervisedDriver(
                self.folder,
                LOCAL if self.cluster is None else self.cluster.url,
                OPTIONS,
                target=target,
                arguments=lambda: (
                    *("--sink", self.sink, "--backend", self.backend),
                    *("--parallelism", str(parallelisms.randint(1, 8))),
                ),
            )
            stack.callback(driver.stop)
            writer = threading.Thread(target=self._write_files)
            writer.start()
            try:
                self._disturb(driver)
            finally:
                self._is_over.set()
                for thread in (writer, *self._wakers):
                    thread.join()
            if self.sink == "collected":
                self._await_output(driver)
        write_rows(self.folder / "in", self.files, last_rows(), time.time())
        driver.run_to_end(LAST_RUN_S)
        self.done["starts of the driver"] = driver.starts
        self.done["failures of its own"] = len(driver.failures)
        rows = [row for number in range(self.files) for row in rows_of(number, ROWS, self.seed)]
        return mistakes([*rows, *last_rows()], self._written())

    def _prepared_target(self) -> str:
        if isinstance(self.place, Server):
            self.place.clear()
            self.place.run(*(f"CREATE TABLE {output} (line text)" for output in OUTPUTS))
            return f"{self.place.url}?user={USER}"
        if isinstance(self.place, Kafka):
            for output in OUTPUTS:
                self.place.topic(2, f"{self.seed}-{output}")
            return f"{self.place.servers}/{self.seed}-"
        return str(self.folder / "out")

    def _written(self) -> dict[str, list[str]]:
        if isinstance(self.place, Server):
            return {
                output: [line for (line,) in self.place.rows(f"SELECT line FROM {output}")]
                for output in OUTPUTS
            }
        if isinstance(self.place, Kafka):
            return {output: self.place.values(f"{self.seed}-{output}") for output in OUTPUTS}
        return written(self.folder / "out")

    def _write_files(self) -> None:
        while not self._is_over.wait(FILE_EACH_S):
            rows = rows_of(self.files, ROWS, self.seed)
            write_rows(self.folder / "in", self.files, rows, time.time())
            self.files += 1

    def _disturb(self, driver: SupervisedDriver) -> None:
        kinds = dict(KINDS)
        if self.cluster is None:
            kinds.pop(EXECUTOR), kinds.pop(FROZEN_EXECUTOR)
        if self.sink == "collected":  # the driver loses the results that it has collected
            kinds.pop(DRIVER)
        ends_at = time.monotonic() + MOST_S_PER_KILL * self.kills
        number = 0
        while number < self.kills and time.monotonic() < ends_at:
            time.sleep(self.draw.uniform(*PAUSE_S))
            (kind,) = self.draw.choices(list(kinds), list(kinds.values()))
            number += self._hit(driver, kind)

    def _hit(self, driver: SupervisedDriver, kind: str) -> bool:
        """Kills or freezes a process of a kind; returns False if there is none."""
        pid = driver.pid
        if pid is None:
            return False
        processes = Processes.of(pid, self.cluster)
        if not processes.workers and (
            kind not in (DRIVER, FROZEN_DRIVER) or self.draw.random() > HIT_AT_START
        ):
            return False  # no task has run yet
        found = processes.victim(
            {FROZEN_DRIVER: DRIVER, FROZEN_WORKER: PYTHON_WORKER}.get(kind, kind), self.draw
        )
        if found is None:
            return False
        if kind in (FROZEN_EXECUTOR, FROZEN_DRIVER, FROZEN_WORKER):
            victims = [found, *processes.driver_jvm] if kind == FROZEN_DRIVER else [found]
            is_there = bool(sum(send(victim, signal.SIGSTOP) for victim in victims))
            waker = threading.Timer(self.draw.uniform(*FROZEN_S), wake, [victims])
            waker.start()
            self._wakers.append(waker)
        else:
            is_there = send(found, signal.SIGKILL)
        self.done[kind] += is_there
        return is_there

    def _await_output(self, driver: SupervisedDriver) -> None:
        """Waits until the driver has read and collected all files."""
        expected = ROWS * self.files
        ends_at = time.monotonic() + LAST_RUN_S
        while driver.is_running and len(self._written()[OUTPUTS[0]]) < expected:
            if time.monotonic() > ends_at:
                raise TimeoutError("the collecting driver does not read all files")
            time.sleep(0.5)


def run_round(
    folder: Path,
    seed: int,
    kills: int,
    cluster: StandaloneCluster,
    sinks: dict[str, Server | Kafka | None],
) -> tuple[bool, Counter[str]]:
    """Runs a round; returns whether its output is right, and what was done to it."""
    began = time.monotonic()
    folder.mkdir()
    round_ = Round(folder, seed, kills, cluster, sinks)
    try:
        problems = round_.run()
    except Exception as error:  # noqa: BLE001 - the other rounds continue
        problems = [f"{type(error).__name__}: {error}"]
    verdict = "WRONG" if problems else "ok"
    done = ", ".join(f"{number} {kind}" for kind, number in sorted(round_.done.items()))
    took = time.monotonic() - began
    say(f"seed {seed}: {round_}: {verdict}, {took:.0f} s, {ROWS * round_.files} records: {done}")
    for problem in problems:
        say(f"    {problem}")
    return not problems, round_.done


def wake(frozen: list[int]) -> None:
    """Resumes frozen processes."""
    for victim in frozen:
        send(victim, signal.SIGCONT)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def total_of(counts: Iterable[Counter[str]]) -> str:
    found: Counter[str] = Counter()
    for count in counts:
        found.update(count)
    return ", ".join(f"{number} {kind}" for kind, number in sorted(found.items()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000, help="of all rounds together")
    parser.add_argument("--per-round", type=int, default=25, help="kills of one job")
    parser.add_argument("--seed", type=int, help="of the first round (default: drawn)")
    parser.add_argument("--until", help="HH:MM, UTC: no round begins after it")
    parser.add_argument("--sink", action="append", choices=SINKS, help="may come again")
    parser.add_argument("--folder", type=Path, help="for all files; wrong rounds stay there")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # with the cluster
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    wanted = given.sink or list(SINKS)
    say(f"first seed {seed}; sinks: {', '.join(wanted)}")
    results: list[tuple[bool, Counter[str]]] = []
    with ExitStack() as stack:
        place = given.folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        )
        place.mkdir(parents=True, exist_ok=True)
        cluster = stack.enter_context(standalone_cluster(place / "cluster"))
        sinks: dict[str, Server | Kafka | None] = dict.fromkeys(wanted)
        if "postgresql" in sinks:
            sinks["postgresql"] = stack.enter_context(postgres_server())
        if "kafka" in sinks:
            sinks["kafka"] = stack.enter_context(running_kafka())
        for number in range(-(-given.kills // given.per_round)):
            if given.until and time.strftime("%H:%M", time.gmtime()) >= given.until:
                break
            folder = place / f"round-{seed + number}"
            results.append(run_round(folder, seed + number, given.per_round, cluster, sinks))
    right = sum(is_right for is_right, _ in results)
    say(f"{right} of {len(results)} rounds right; {total_of(done for _, done in results)}")
    return 0 if right == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
