"""A driver that is started again whenever it dies, as a cluster manager would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

JOB = Path(__file__).with_name("disturbed_job.py")
_PAUSE_S = 2.0
_TAIL = 1500


class SupervisedDriver:
    """The disturbed job on a master, restarted until it ends or `stop` is called.

    Args:
        folder: Contains the input folder `in`; gets `out`, `checkpoints` and logs.
        master: The master URL of Spark.
        options: Further options of `spark-submit`.
        name: The prefix of the log files.
        arguments: Returns the arguments of the job at each start.
        variables: Further environment variables.
        target: Where the job writes (default: the folder `out`).

    Attributes:
        starts: The number of starts.
        failures: The output of starts that ended in another way than by being killed.
    """

    def __init__(
        self,
        folder: Path,
        master: str,
        options: str = "",
        *,
        name: str = "driver",
        arguments: Callable[[], Sequence[str]] = tuple,
        variables: Mapping[str, str] | None = None,
        target: str | None = None,
    ) -> None:
        self.starts = 0
        self.failures: list[str] = []
        self._folder = folder
        self._name = name
        self._arguments = arguments
        self._target = target or str(folder / "out")
        self._environment = {
            **os.environ,
            **(variables or {}),
            "PYSPARK_SUBMIT_ARGS": f"--master {master} --conf spark.ui.enabled=false {options} pyspark-shell",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_running, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Kills the driver, and does not start it again."""
        self._over.set()
        # After an interrupted `join`, some Python versions think that the thread is dead, so the process is checked.
        while self._thread.is_alive() or self.pid is not None:
            if self._process is not None:
                self._process.kill()
            self._thread.join(0.5)

    @property
    def pid(self) -> int | None:
        """The process id of the driver; None if it is not running."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    @property
    def is_running(self) -> bool:
        """Whether the driver is still restarted when it dies."""
        return self._thread.is_alive()

    def wait(self, timeout_s: float) -> None:
        """Waits until the job has ended.

        Raises:
            TimeoutError: The job has not ended in time.
        """
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"the job has not ended in {timeout_s:g} s: {self._tail()}")

    def run_to_end(self, timeout_s: float) -> None:
        """Runs the job until all files are read; call it after `stop`.

        Raises:
            RuntimeError: The job has failed.
        """
        process = self._start(*self._arguments(), "--until-read")
        if process.wait(timeout_s) != 0:
            raise RuntimeError(f"the last start failed: {self._tail()}")

    def _keep_running(self) -> None:
        while not self._over.is_set():
            self._process = self._start(*self._arguments())
            code = self._process.wait()
            if code == 0:
                break
            if code != -signal.SIGKILL:
                self.failures.append(f"start {self.starts}, exit code {code}: {self._tail()}")
            self._over.wait(_PAUSE_S)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        self.starts += 1
        places = [str(self._folder / "in"), self._target, str(self._folder / "checkpoints")]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, str(JOB), *places, *arguments],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _tail(self) -> str:
        return self.log.read_text("utf-8", "replace")[-_TAIL:]

    @property
    def log(self) -> Path:
        """The log of the last start."""
        return self._folder / f"{self._name}-{self.starts}.log"


def wait_until(moment: float) -> None:
    """Sleeps until a time of time.monotonic()."""
    time.sleep(max(0.0, moment - time.monotonic()))
