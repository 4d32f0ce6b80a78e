"""Runs a job for half an hour on a cluster, and kills or freezes a process every minute.

`python tests/spark/faults/soak.py --minutes 30 --seed 1`. A file of records is added each second. In the first half
the driver is among the victims. In the second half it is not, so that a memory leak would show. At the end the
output is compared with that of a plain program for the same files: no record may be lost or repeated. The memory
in the last quarter is compared with that in the quarter before. The exit code says whether all is well.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from expected_output import last_rows, mistakes, rows_of, write_rows, written
from standalone_cluster import StandaloneCluster, standalone_cluster
from supervised_driver import SupervisedDriver, wait_until
from victims import DRIVER, FROZEN_EXECUTOR, KINDS, Processes, send

FROZEN_S = 30
SAMPLE_S = 5
FEWEST_SAMPLES = 10
FILE_EACH_S = 1.0
GROWS_BY = 1.2
GROWS_BY_MB = 30
"""Memory counts as flat that grows by less than a fifth, or by less than this."""

OPTIONS = (
    "--driver-memory 600m --executor-memory 512m --conf spark.network.timeout=20s "
    "--conf spark.network.timeoutInterval=5s --conf spark.executor.heartbeatInterval=2s"
)
LAST_RUN_S = 900


class Soak:
    """One soak test; `run` returns whether all is well."""

    def __init__(self, folder: Path, minutes: float, kill_every_s: float, seed: int) -> None:
        self.folder = folder
        self.duration_s = 60 * minutes
        self.kill_every_s = kill_every_s
        self.rows_per_file = 200
        self.seed = seed
        self.memory: list[tuple[float, dict[str, float]]] = []
        self.began = time.monotonic()
        self.files = 0
        self.kills: list[str] = []

    def run(self) -> bool:
        (self.folder / "in").mkdir()
        with standalone_cluster(self.folder / "cluster") as cluster:
            driver = SupervisedDriver(self.folder, cluster.url, OPTIONS)
            try:
                self._go_on_for_a_while(driver, cluster)
            finally:
                driver.stop()
            write_rows(self.folder / "in", self.files, last_rows(), time.time())
            driver.run_to_end(LAST_RUN_S)
        say(f"driver: {driver.starts} starts, {len(driver.failures)} after failures of its own")
        for failure in driver.failures:
            say(f"  {failure}")
        return self._is_output_right() & self._is_memory_flat()

    def _go_on_for_a_while(self, driver: SupervisedDriver, cluster: StandaloneCluster) -> None:
        self.began = time.monotonic()
        threads = [
            threading.Thread(target=self._write_files),
            threading.Thread(target=self._sample, args=(driver, cluster)),
            threading.Thread(target=self._disturb, args=(driver, cluster)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _write_files(self) -> None:
        while self._elapsed() < self.duration_s:
            rows = rows_of(self.files, self.rows_per_file, self.seed)
            write_rows(self.folder / "in", self.files, rows, time.time())
            self.files += 1
            wait_until(self.began + FILE_EACH_S * self.files)

    def _sample(self, driver: SupervisedDriver, cluster: StandaloneCluster) -> None:
        while self._elapsed() < self.duration_s:
            pid = driver.pid
            if pid is not None:
                self.memory.append((self._elapsed(), Processes.of(pid, cluster).memory_mb()))
            time.sleep(SAMPLE_S)

    def _disturb(self, driver: SupervisedDriver, cluster: StandaloneCluster) -> None:
        draw = random.Random(self.seed)
        number = 1
        while self.kill_every_s * number < self.duration_s:
            wait_until(self.began + self.kill_every_s * number + draw.uniform(-10, 10))
            is_first_half = self._elapsed() < self.duration_s / 2
            kind = draw.choice([item for item in KINDS if is_first_half or item != DRIVER])
            pid = driver.pid
            victim = None if pid is None else Processes.of(pid, cluster).victim(kind, draw)
            if victim is None:
                self._tell(f"{kind}: there is none just now")
            elif kind == FROZEN_EXECUTOR:
                send(victim, signal.SIGSTOP)
                time.sleep(FROZEN_S)
                is_there = send(victim, signal.SIGCONT)
                self._tell(f"{kind} for {FROZEN_S} s: {victim}{'' if is_there else ', gone since'}")
            else:
                send(victim, signal.SIGKILL)
                self._tell(f"{kind} killed: {victim}")
            number += 1

    def _is_output_right(self) -> bool:
        rows = [
            row
            for number in range(self.files)
            for row in rows_of(number, self.rows_per_file, self.seed)
        ]
        output = written(self.folder / "out")
        wrong = mistakes([*rows, *last_rows()], output)
        lines = ", ".join(f"{len(found)} {name}" for name, found in output.items())
        say(f"{len(rows)} records in {self.files} files; written: {lines}")
        say(f"lost or doubled: {'; '.join(wrong) or 'nothing'}")
        return not wrong

    def _is_memory_flat(self) -> bool:
        is_flat = True
        for name in dict.fromkeys(name for _, found in self.memory for name in found):
            samples = [
                [
                    found[name]
                    for elapsed, found in self.memory
                    if quarter <= 4 * elapsed / self.duration_s < quarter + 1 and name in found
                ]
                for quarter in (2, 3)
            ]
            if min(map(len, samples)) < FEWEST_SAMPLES:
                say(f"memory, {name}: too few samples to tell; take more minutes")
                continue
            third, fourth = map(statistics.median, samples)
            flat = fourth < max(GROWS_BY * third, third + GROWS_BY_MB)
            is_flat &= flat
            say(
                f"memory, {name}: median {third:.0f} MB in the third quarter, {fourth:.0f} MB in the "
                f"fourth: {'flat' if flat else 'GROWS'}"
            )
        return is_flat

    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    def _tell(self, what: str) -> None:
        self.kills.append(what)
        say(f"{self._elapsed():6.0f} s  {what}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--kill-every", type=float, default=60, help="seconds (default 60)")
    parser.add_argument("--seed", type=int, help="(default: drawn)")
    parser.add_argument(
        "--folder", type=Path, help="for all files; kept (default: a temporary one)"
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # with the cluster
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    say(f"seed {seed}, {given.minutes:g} minutes")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = given.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        is_well = Soak(folder, given.minutes, given.kill_every, seed).run()
    say("all is well" if is_well else "NOT WELL")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
