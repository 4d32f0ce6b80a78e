"""The lease of a checkpoint directory: one run owns it at a time.

Each run that opens a directory publishes the next number below `runs/`. If two runs try the same number, one of them
fails. The run with the highest number is the owner. Before each checkpoint, a run checks that it still is the owner.

The check alone is not enough: a run may pause for minutes between the check and its next write, and be replaced
meanwhile. So a run that takes over first fences the next epoch (see epoch_files.py). The fence depends on no clock.

The lease only prevents a second run from replacing a live run. A run is dead if it has closed its lease,
if its process is dead on this machine or has ended the run, or if its last heartbeat is older than the duration of the lease. If the clocks of two
machines differ, a live run may be replaced too early. The fence makes that harmless.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import sys
import threading
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import (
    CheckpointError,
    CheckpointInUseError,
    CorruptCheckpointError,
    add_note,
    short_repr,
)
from opchain.runtime.mailbox.timer_service import wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.runtime.checkpoint.storage import CheckpointStorage

_LOG = logging.getLogger(__name__)

FOLDER = "runs"

_UNRELEASED: set[tuple[str, Run]] = set()
"""The runs of this process that have ended, and could not release their leases; each with its storage."""

LEASE_MS = 60_000
"""How long a run on another machine counts as alive after its last heartbeat."""
_RUN_FILE = re.compile(r"([0-9]{1,18})\.run")
_PROCESS = re.compile(r"[0-9]{1,18}(@[0-9]+)?")
_LEASE = {"renewed_ms": int, "is_closed": bool, "is_settled": bool}


@dataclass(frozen=True, slots=True)
class Run:
    """The file that a run publishes about itself. `process` identifies its process on its machine."""

    number: int
    run_id: str
    job_name: str
    machine: str
    process: str
    started_ms: int

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started_ms / 1000, timezone.utc)
        host = self.machine.split("/", maxsplit=1)[0]
        return (
            f"run {self.run_id} of '{self.job_name}' (process {self.process.split('@')[0]} on {host}, "
            f"since {since:%Y-%m-%d %H:%M:%S} UTC)"
        )


_RUN = {field: int if field in ("number", "started_ms") else str for field in Run.__slots__}


class RunLease:
    """The lease of a checkpoint directory. `take` creates it.

    Attributes:
        run: This run.
        is_settled: Whether neither this run nor an earlier one has a write in flight that could complete an epoch. The
            next run need not fence a settled run.
    """

    def __init__(
        self, storage: CheckpointStorage, run: Run, lease_ms: int, now_ms: Callable[[], int]
    ) -> None:
        self.run = run
        self.is_settled = False
        self._storage = storage
        self._lease_ms = lease_ms
        self._now_ms = now_ms
        self._is_over = threading.Event()
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None

    @classmethod
    def take(
        cls,
        storage: CheckpointStorage,
        job_name: str,
        run_id: str,
        lease_ms: int,
        now_ms: Callable[[], int],
    ) -> RunLease:
        """Takes the lease of a directory.

        Raises:
            CheckpointInUseError: A live run holds it, or another run has just taken it.
            OSError: The directory can't be written. A note says so.
        """
        owner = _owner(storage)
        if owner is not None and _is_alive(storage, owner, now_ms(), lease_ms):
            raise CheckpointInUseError(
                f"{storage.url} is in use by {owner}; stop that run first, or use another "
                f"directory (a dead run on another machine is replaced {lease_ms / 1000:g} "
                f"seconds after its last heartbeat)"
            )
        number = 1 if owner is None else owner.number + 1
        run = Run(number, run_id, job_name, machine(), process_identity(os.getpid()), now_ms())
        lease = cls(storage, run, lease_ms, now_ms)
        lease.is_settled = owner is None or _lease_of(storage, owner).get("is_settled", False)
        try:
            storage.publish(_name(number, "run"), json.dumps(asdict(run)).encode())
        except FileExistsError:
            winner = _owner(storage)
            raise CheckpointInUseError(
                f"{storage.url} was just taken by {winner}; stop that run first"
            ) from None
        except OSError as error:
            add_note(
                error,
                f"cannot write to execution.checkpointing.dir = {storage.url}: check that the directory can be "
                "reached, and that this user may write there",
            )
            raise
        try:
            lease.renew()
        except BaseException:
            lease.close()
            raise
        if owner is not None:
            for kind in ("run", "lease"):
                storage.delete(_name(owner.number, kind))
        return lease

    def renew(self) -> None:
        """Writes a heartbeat."""
        self._write(is_closed=False)

    def keep_alive(self) -> None:
        """Writes heartbeats in a thread, until `close`."""
        self._thread = threading.Thread(
            target=self._renew_in_time, name="checkpoint-lease", daemon=True
        )
        self._thread.start()

    def require(self) -> None:
        """Checks that this run still holds the lease.

        Raises:
            CheckpointInUseError: Another run has taken it over.
        """
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        highest = max(_numbers(self._storage), default=0)
        if highest != self.run.number:
            raise CheckpointInUseError(
                f"{self._storage.url} was taken over by {_owner(self._storage)}; this is {self.run}, "
                "which must stop"
            )

    def close(self) -> None:
        """Releases the lease. A failure is logged, because it must not replace the error of the job."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()  # otherwise its last heartbeat could overwrite the closed lease
        try:
            if max(_numbers(self._storage), default=0) == self.run.number:
                self._write(is_closed=True)
        except (OSError, CheckpointError) as error:
            _UNRELEASED.add((self._storage.url, self.run))
            _LOG.warning(
                "%s: the lease of %s can't be released: %s; other processes can use the directory when this process has "
                "ended, or %g s after the last heartbeat",
                *(self._storage.url, self.run, error, self._lease_ms / 1000),
            )

    def _renew_in_time(self) -> None:
        while not self._is_over.wait(self._lease_ms / 3000):
            self._renew_or_record_failure()

    def _renew_or_record_failure(self) -> None:
        try:
            self.renew()
        except Exception as error:  # noqa: BLE001 - `require` raises it in the run's thread
            self._failure = error
        else:
            self._failure = None  # a later heartbeat replaces one that failed

    def _write(self, *, is_closed: bool) -> None:
        lease = {
            "renewed_ms": self._now_ms(),
            "is_closed": is_closed,
            "is_settled": is_closed and self.is_settled,
        }
        self._storage.write(_name(self.run.number, "lease"), json.dumps(lease).encode())


def running_run(
    storage: CheckpointStorage, now_ms: Callable[[], int] = wall_clock_ms
) -> Run | None:
    """The live run that holds a directory, or None."""
    owner = _owner(storage)
    return owner if owner is not None and _is_alive(storage, owner, now_ms(), LEASE_MS) else None


def machine() -> str:
    """An id of this machine and its process namespace, because each container has its own process ids."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def process_identity(pid: int) -> str:
    """A process of this machine, with its start time if that is known, since process ids are reused."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(pid)
    return f"{pid}@{stat.rpartition(')')[2].split()[19]}"


def _is_dead(run: Run) -> bool:
    """Whether a run's process is known to have ended; False if unknown."""
    if run.machine != machine() or sys.platform == "win32":
        return False
    pid = int(run.process.split("@")[0])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return process_identity(pid) != run.process


def _is_alive(storage: CheckpointStorage, run: Run, now_ms: int, lease_ms: int) -> bool:
    lease = _lease_of(storage, run)
    if lease.get("is_closed", False) or (storage.url, run) in _UNRELEASED:
        return False
    renewed_ms: int = lease.get("renewed_ms", run.started_ms)
    if renewed_ms - now_ms >= lease_ms:
        # One of the clocks is wrong. Waiting for that time could take years.
        _LOG.warning(
            "%s: the last heartbeat of %s is %.0f s in the future, so the run is considered "
            "dead; if it runs on another machine, it stops at its next checkpoint: compare the "
            "clocks",
            storage.url,
            run,
            (renewed_ms - now_ms) / 1000,
        )
        return False
    return now_ms - renewed_ms < lease_ms and not _is_dead(run)


def _lease_of(storage: CheckpointStorage, run: Run) -> dict[str, Any]:
    """The last heartbeat of a run, or an empty dictionary if it has just begun."""
    try:
        return _read(storage, _name(run.number, "lease"), _LEASE)
    except FileNotFoundError:
        return {}


def _owner(storage: CheckpointStorage) -> Run | None:
    while numbers := _numbers(storage):
        with contextlib.suppress(FileNotFoundError):  # replaced just now: there is a higher number
            return Run(**_read(storage, _name(max(numbers), "run"), _RUN))
    return None


def _numbers(storage: CheckpointStorage) -> list[int]:
    found = map(_RUN_FILE.fullmatch, storage.children(FOLDER))
    return [int(name[1]) for name in found if name]


def _read(storage: CheckpointStorage, name: str, fields: Mapping[str, type]) -> dict[str, Any]:
    """Reads a JSON file with these fields of these types.

    Raises:
        CorruptCheckpointError: The content does not match.
    """
    data = storage.read(name)
    try:
        found = json.loads(data)
        values = {field: found[field] for field in fields}
    except (ValueError, TypeError, KeyError):
        values = {}
    is_whole = all(type(values.get(field)) is kind for field, kind in fields.items())
    if is_whole and _PROCESS.fullmatch(values.get("process", "0")):
        return values
    raise CorruptCheckpointError(
        storage.full_name(name),
        f"is damaged: it holds {short_repr(data)}, but JSON with {', '.join(fields)} is "
        f"expected. It names the run that uses {storage.url}: make sure that no job uses it, "
        f"remove the file, and start again",
    )


def _name(number: int, kind: str) -> str:
    return f"{FOLDER}/{number}.{kind}"
