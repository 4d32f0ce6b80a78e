"""Runs a job repeatedly on a cluster with faults that are chosen by a seed, and checks its output.

`python tests/spark/faults/fault_rounds.py --rounds 20 --seed 1`; `--only NAME` runs one kind of fault. After each
round the output and the state in the last checkpoint must be those of an undisturbed run. The seed of each round is
printed, and runs the same round again. The exit code says whether all rounds were right.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).parents[2]))

from checkpoint_state import state_in
from expected_output import last_rows, mistakes, rows_of, write_rows, written
from standalone_cluster import StandaloneCluster, standalone_cluster
from supervised_driver import SupervisedDriver
from victims import EXECUTOR, FROZEN_EXECUTOR, PYTHON_DAEMON, PYTHON_WORKER, Processes, send

from opchain.runtime.checkpoint.savepoint import find_checkpoint
from opchain.runtime.errors import CheckpointError
from opchain.testing import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES = 6
ROWS = 100
EPOCHS = FILES + 1
"""One per file, and one for the last rows."""

ENDS_IN_S = 600
DRIVER_POINTS = ("epoch-begun", "acknowledged", "completed", "between-commits", "committed")
TASK_POINTS = ("before-state", "after-state")
OPTIONS = (
    "--executor-memory 512m --conf spark.network.timeout=20s --conf spark.network.timeoutInterval=5s "
    "--conf spark.executor.heartbeatInterval=2s"
)
UNTIL_READ = ("--until-read", "--files", "1")


class RoundSkippedError(Exception):
    """This machine cannot run the round; the message gives the reason."""


@dataclass
class Round:
    """One run of the job, with the choices of its seed."""

    folder: Path
    cluster: StandaloneCluster
    seed: int
    draw: random.Random

    def rows(self) -> list[Any]:
        return [row for number in range(FILES) for row in rows_of(number, ROWS, self.seed)]

    def write_input(self, *, with_end: bool = True) -> None:
        (self.folder / "in").mkdir()
        for number in range(FILES):
            rows = rows_of(number, ROWS, self.seed)
            write_rows(self.folder / "in", number, rows, 1_700_000_000 + number)
        if with_end:
            self.write_end()

    def write_end(self) -> None:
        write_rows(self.folder / "in", FILES, last_rows(), 1_700_000_000 + FILES)

    @contextmanager
    def driver(self, **settings: Any) -> Iterator[SupervisedDriver]:
        driver = SupervisedDriver(
            self.folder,
            self.cluster.url,
            f"{OPTIONS} {settings.pop('options', '')}",
            **{"arguments": lambda: UNTIL_READ, **settings},
        )
        try:
            yield driver
        finally:
            driver.stop()

    def await_epoch(self, driver: SupervisedDriver, epoch: int) -> None:
        """Waits for a checkpoint of this epoch or a later one."""
        end = time.monotonic() + ENDS_IN_S
        while driver.is_running and self.epoch() < epoch:
            if time.monotonic() > end:
                raise TimeoutError(f"epoch {epoch} does not come: {driver.log.read_text()[-1000:]}")
            time.sleep(0.05)

    def epoch(self) -> int:
        try:
            return find_checkpoint(str(self.folder / "checkpoints")).metadata.checkpoint_id
        except (CheckpointError, OSError):
            return 0

    def problems(self) -> list[str]:
        """What is wrong with the output, and with the state of the count and the windows."""
        found = mistakes([*self.rows(), *last_rows()], written(self.folder / "out"))
        state = state_in(*find_checkpoint(str(self.folder / "checkpoints")))
        counts = {key: value for (_, _, key), value in state["count"]["keyed"].items()}
        expected: dict[str, int] = {}
        for key, _, _ in [*self.rows(), *last_rows()]:
            expected[repr(key)] = expected.get(repr(key), 0) + 1
        if counts != expected:
            found.append(f"state of the count: {counts} in place of {expected}")
        windows = {key: value for (_, _, key), value in state["sum"]["keyed"].items()}
        if windows != {repr(key): (key, value, 1) for key, _, value in last_rows()}:
            found.append(f"state of the windows: {windows}")
        if any(
            value for (name, _, _), value in state["gather"]["keyed"].items() if name == "waiting"
        ):
            found.append(f"state of what was gathered: {state['gather']['keyed']}")
        return found


def die_at_points(round_: Round) -> str:
    """Driver and tasks kill themselves at fault points; each start has another parallelism."""
    draw = round_.draw
    points = [*DRIVER_POINTS, *TASK_POINTS]
    kills = sorted({f"{draw.choice(points)}@{draw.randint(1, EPOCHS)}" for _ in range(4)})
    with tempfile.TemporaryDirectory() as marks:
        variables = {"OPCHAIN_FAULTS": ",".join(kills), "OPCHAIN_FAULTS_FOLDER": marks}
        options = " ".join(
            f"--conf spark.executorEnv.{key}={value}" for key, value in variables.items()
        )
        with round_.driver(
            options=options,
            variables=variables,
            arguments=lambda: (*UNTIL_READ, "--parallelism", str(draw.randint(1, 4))),
        ) as driver:
            driver.wait(ENDS_IN_S)
        died = sorted(path.name for path in Path(marks).iterdir())
    return f"died at {', '.join(died)}; {described(driver)}"


def kill_processes(round_: Round) -> str:
    """Kills or freezes any process at any time."""
    draw, done = round_.draw, []
    with round_.driver() as driver:
        round_.await_epoch(driver, 1)
        for _ in range(3):
            time.sleep(draw.uniform(0, 5))
            kind = draw.choice([PYTHON_WORKER, PYTHON_DAEMON, EXECUTOR, FROZEN_EXECUTOR])
            pid = driver.pid
            victim = pid and Processes.of(pid, round_.cluster).victim(kind, draw)
            if not victim:
                continue
            done.append(f"{kind} in epoch {round_.epoch() + 1}")
            if kind == FROZEN_EXECUTOR:
                send(victim, signal.SIGSTOP)
                time.sleep(25)
                send(victim, signal.SIGCONT)
            else:
                send(victim, signal.SIGKILL)
        driver.wait(ENDS_IN_S)
    return f"killed {', '.join(done)}; {described(driver)}"


def kill_driver(round_: Round) -> str:
    """Kills the driver at any time."""
    draw, epochs = round_.draw, []
    with round_.driver() as driver:
        for _ in range(2):
            round_.await_epoch(driver, round_.epoch() + 1)
            time.sleep(draw.uniform(0, 3))
            pid = driver.pid
            if pid is not None and send(pid, signal.SIGKILL):
                epochs.append(str(round_.epoch() + 1))
        driver.wait(ENDS_IN_S)
    return f"killed in epochs {', '.join(epochs)}; {described(driver)}"


def fail_task(round_: Round) -> str:
    """A task fails 1 to 5 times at one record; Spark gives up at the fourth failure."""
    draw = round_.draw
    times, value = draw.randint(1, 5), draw.randrange(FILES * ROWS)
    with tempfile.TemporaryDirectory() as marks:
        more = ("--fail-at", str(value), "--fail-times", str(times), "--fail-folder", marks)
        with round_.driver(arguments=lambda: (*UNTIL_READ, *more)) as driver:
            driver.wait(ENDS_IN_S)
    assert len(driver.failures) == times // 4
    return f"failed {times} times at record {value}; {described(driver)}"


def fill_disk(round_: Round) -> str:
    """The disk of the checkpoints is full for a while."""
    place = round_.folder / "checkpoints"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        raise RoundSkippedError(f"no file system can be mounted: {mounted.stderr.decode().strip()}")
    try:
        filler = place / ".filler"
        with round_.driver() as driver:
            round_.await_epoch(driver, round_.draw.randint(1, 4))
            _fill(filler, leaving=round_.draw.choice([0, 4096, 16_384]))
            epoch = round_.epoch()
            while driver.is_running and not driver.failures:
                time.sleep(0.1)
            filler.unlink()
            driver.wait(ENDS_IN_S)
        kept = round_.folder / "kept"
        shutil.copytree(place, kept)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
    place.rmdir()
    kept.rename(place)
    told = [failure for failure in driver.failures if "No space left on device" in failure]
    assert told, driver.failures
    return f"full behind epoch {epoch}; {described(driver)}"


def start_twice(round_: Round) -> str:
    """A second driver is refused, and takes over at once when the first is killed."""
    with round_.driver(name="first", arguments=lambda: ("--files", "1")) as first:
        round_.await_epoch(first, round_.draw.randint(1, 3))
        with round_.driver(name="second") as second:
            while not second.failures:
                time.sleep(0.1)
            assert "CheckpointInUseError" in second.failures[0], second.failures
            first.stop()
            second.wait(ENDS_IN_S)
    return f"refused {len(second.failures)} times; {described(second)}"


def freeze_driver(round_: Round) -> str:
    """A frozen driver is replaced when its lease expires, and writes nothing when it wakes."""
    (round_.folder / "in" / f"{FILES:06}.json").unlink()
    frozen = []
    # A frozen driver keeps its executors: the second driver gets the other half of the cluster.
    half = "--conf spark.cores.max=1"
    with round_.driver(name="first", options=half, arguments=lambda: ("--files", "1")) as first:
        round_.await_epoch(first, round_.draw.randint(1, 4))
        time.sleep(round_.draw.uniform(0, 2))
        pid = first.pid
        assert pid is not None
        frozen = [pid, *Processes.of(pid, round_.cluster).driver_jvm]
        for process in frozen:
            send(process, signal.SIGSTOP)
        epoch = round_.epoch() + 1
        try:
            with round_.driver(name="second", options=half) as second:
                second.wait(ENDS_IN_S)
        finally:
            for process in frozen:
                send(process, signal.SIGCONT)
        round_.write_end()
        end = time.monotonic() + 120
        while not first.failures:
            assert time.monotonic() < end, "the frozen driver goes on"
            time.sleep(0.1)
    with round_.driver(name="third") as third:
        third.wait(ENDS_IN_S)
    said = "CheckpointInUseError" in first.failures[0]
    why = "its lease" if said else "an error of Spark's"
    return f"frozen in epoch {epoch}, stopped by {why}; second: {described(second)}"


SCENARIOS: dict[str, Callable[[Round], str]] = {
    "points": die_at_points,
    "processes": kill_processes,
    "driver": kill_driver,
    "task": fail_task,
    "disk": fill_disk,
    "two-drivers": start_twice,
    "frozen-driver": freeze_driver,
}


def described(driver: SupervisedDriver) -> str:
    failed = f", {len(driver.failures)} failed by themselves" if driver.failures else ""
    return f"{driver.starts} starts{failed}"


def _fill(path: Path, leaving: int) -> None:
    free = os.statvfs(path.parent)
    with path.open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - leaving)))


def run_round(cluster: StandaloneCluster, seed: int, names: list[str]) -> bool:
    """Runs a round; returns whether its output is right."""
    draw = random.Random(seed)
    name = draw.choice(names)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="opchain-round-", ignore_cleanup_errors=True) as place:
        round_ = Round(Path(place), cluster, seed, draw)
        round_.write_input()
        try:
            what = SCENARIOS[name](round_)
            problems = round_.problems()
        except RoundSkippedError as reason:
            say(f"seed {seed}: {name}: skipped: {reason}")
            return True
        except Exception as error:  # noqa: BLE001 - the other rounds continue
            what, problems = "", [f"{type(error).__name__}: {error}"]
    verdict = "WRONG" if problems else "ok"
    took = f"{time.monotonic() - began:.0f} s"
    say(f"seed {seed}: {name}: {verdict}, {took}: {what}{'; '.join(problems)}")
    return not problems


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, help="of the first round (default: drawn)")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="may come again")
    parser.add_argument("--master", help="of a cluster that runs already, in --folder")
    parser.add_argument("--folder", type=Path, help="where that cluster has its files")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # with the cluster
    first = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    say(f"seeds {first} to {first + given.rounds - 1}; points are {', '.join(faults.POINTS)}")
    names = given.only or list(SCENARIOS)
    with ExitStack() as stack:
        if given.master:
            cluster = StandaloneCluster(given.master, given.folder)
        else:
            place = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            cluster = stack.enter_context(standalone_cluster(Path(place)))
        results = [run_round(cluster, seed, names) for seed in range(first, first + given.rounds)]
    say(f"{sum(results)} of {len(results)} rounds right")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
