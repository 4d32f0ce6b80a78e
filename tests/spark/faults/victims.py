"""The processes of a job on a standalone cluster, and how to disturb them."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from standalone_cluster import StandaloneCluster

PYTHON_WORKER = "Python worker"
PYTHON_DAEMON = "Python daemon"
EXECUTOR = "executor"
FROZEN_EXECUTOR = "executor, frozen"
DRIVER = "driver"
KINDS = (PYTHON_WORKER, PYTHON_DAEMON, EXECUTOR, FROZEN_EXECUTOR, DRIVER)


@dataclass(frozen=True)
class Processes:
    """The current processes of one job."""

    driver: int
    driver_jvm: list[int]
    executors: list[int]
    daemons: list[int]
    workers: list[int]

    @staticmethod
    def of(driver: int, cluster: StandaloneCluster | None) -> Processes:
        """The processes of a driver on a cluster or with a local master."""
        virtual_machines = [pid for pid in children(driver) if "java" in _name(pid)]
        if cluster is None:
            found = [pid for parent in virtual_machines for pid in children(parent)]
            daemons = [pid for pid in found if "python" in _name(pid)]
        else:
            daemons = cluster.python_daemons()
        return Processes(
            driver,
            virtual_machines,
            [] if cluster is None else cluster.executors(),
            daemons,
            [pid for daemon in daemons for pid in children(daemon)],
        )

    def victim(self, kind: str, draw: random.Random) -> int | None:
        """A process of a kind, or None."""
        found = {
            PYTHON_WORKER: self.workers,
            PYTHON_DAEMON: self.daemons,
            EXECUTOR: self.executors,
            FROZEN_EXECUTOR: self.executors,
            DRIVER: [self.driver],
        }[kind]
        return draw.choice(found) if found else None

    def memory_mb(self) -> dict[str, float]:
        """The average memory of a process of each kind; kinds without processes are omitted."""
        groups = {
            "driver": [self.driver],
            "driver's JVM": self.driver_jvm,
            "executor's JVM": self.executors,
            "Python worker": self.workers,
        }
        return {name: resident_mb(pids) / len(pids) for name, pids in groups.items() if pids}


def send(pid: int, what: int) -> bool:
    """Sends a signal; returns False if the process is gone."""
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True


def children(parent: int) -> list[int]:
    """The child processes of a process."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                stat = (folder / "stat").read_text("utf-8", "replace")
                if int(stat.rpartition(")")[2].split()[1]) == parent:
                    found.append(int(folder.name))
    return sorted(found)


def resident_mb(pids: list[int]) -> float:
    """The memory of processes; shared memory is divided among the processes that share it."""
    total_kb = 0
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
            total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kb / 1024


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace")
    return ""
