"""RunLease: a second run is refused while the first is alive; a replaced run notices that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.checkpoint import run_lease
from opchain.runtime.checkpoint.run_lease import RunLease, machine, process_identity
from opchain.runtime.errors import CheckpointInUseError, CorruptCheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.checkpoint.storage import CheckpointStorage


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def take(storage: CheckpointStorage, clock: Clock, run_id: str = "run-1") -> RunLease:
    return RunLease.take(storage, "clicks", run_id, 60_000, clock)


def test_a_second_run_is_refused_and_the_error_names_the_first(
    any_storage: CheckpointStorage, clock: Clock
) -> None:
    lease = take(any_storage, clock)
    lease.require()
    with pytest.raises(
        CheckpointInUseError,
        match=rf"{any_storage.url} is in use by run run-1 of 'clicks' \(process {os.getpid()} on .*, "
        r"since 2023-11-14 22:13:20 UTC\)",
    ):
        take(any_storage, clock, "run-2")
    lease.require()


def test_the_error_about_a_directory_that_cannot_be_written_names_the_setting(
    any_storage: CheckpointStorage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, data: bytes) -> None:
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(any_storage, "publish", refuse)
    with pytest.raises(PermissionError) as raised:
        take(any_storage, clock)
    assert raised.value.__notes__[0].startswith(
        f"cannot write to execution.checkpointing.dir = {any_storage.url}: "
    )


def test_a_run_starts_at_once_after_a_closed_run(
    any_storage: CheckpointStorage, clock: Clock
) -> None:
    take(any_storage, clock).close()
    lease = take(any_storage, clock, "run-2")
    lease.require()
    assert lease.run.number == 2
    assert any_storage.names("runs") == ["runs/2.lease", "runs/2.run"]


def test_a_process_can_start_another_run_although_it_could_not_release_the_lease(
    storage: CheckpointStorage,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lease = take(storage, clock, "run-on-a-full-disk")

    def is_full(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as full, caplog.at_level("WARNING"):
        full.setattr(type(storage), "write", is_full)
        lease.close()
        with pytest.raises(OSError, match="no space left"):
            take(storage, clock, "another-run-on-a-full-disk")
    assert "the lease of run run-on-a-full-disk of 'clicks'" in caplog.text
    assert "can't be released: no space left" in caplog.text
    take(storage, clock, "run-3").require()


def test_a_run_without_heartbeats_is_replaced_and_notices_it(
    storage: CheckpointStorage, clock: Clock
) -> None:
    first = take(storage, clock)
    clock.now += 59_999
    with pytest.raises(CheckpointInUseError):
        take(storage, clock, "run-2")
    first.renew()
    clock.now += 59_999
    with pytest.raises(CheckpointInUseError):
        take(storage, clock, "run-2")
    clock.now += 1
    second = take(storage, clock, "run-2")
    with pytest.raises(
        CheckpointInUseError,
        match=r"was taken over by run run-2 .*; this is run run-1 .* must stop",
    ):
        first.require()
    first.close()  # a replaced run writes no heartbeats
    second.require()
    with pytest.raises(CheckpointInUseError):
        take(storage, clock, "run-3")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are asked in the way of POSIX")
def test_a_dead_process_on_this_machine_is_replaced_at_once(
    storage: CheckpointStorage, clock: Clock
) -> None:
    code = (
        "import os, sys, signal\n"
        "from opchain.runtime.checkpoint.run_lease import RunLease\n"
        "from opchain.runtime.checkpoint.storage import checkpoint_storage\n"
        "RunLease.take(checkpoint_storage(sys.argv[1]), 'clicks', 'run-1', 60_000, "
        f"lambda: {clock.now})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = subprocess.run([sys.executable, "-c", code, storage.url], check=False)
    assert process.returncode == -9
    assert storage.names("runs") == ["runs/1.lease", "runs/1.run"]
    assert take(storage, clock, "run-2").run.number == 2


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        (lambda run: {"machine": "elsewhere"}, True),
        (lambda run: {"process": f"{os.getpid()}@1"}, False),
        (lambda run: {}, True),
    ],
    ids=["another machine", "process id reused", "this process"],
)
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="starts are not known")  # noqa: PTH110
def test_a_process_is_known_to_be_dead_only_on_this_machine(
    storage: CheckpointStorage,
    clock: Clock,
    change: Callable[[Any], dict[str, Any]],
    is_refused: bool,
) -> None:
    take(storage, clock)
    run = json.loads(storage.read("runs/1.run"))
    storage.write("runs/1.run", json.dumps(run | change(run)).encode())
    if is_refused:
        with pytest.raises(CheckpointInUseError):
            take(storage, clock, "run-2")
    else:
        take(storage, clock, "run-2").require()


def test_one_of_two_runs_that_replace_a_dead_run_wins(
    storage: CheckpointStorage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(storage, clock).close()
    asked = run_lease._is_alive

    def meanwhile(*arguments: Any) -> bool:
        monkeypatch.setattr(run_lease, "_is_alive", asked)
        take(storage, clock, "run-2")
        return False

    monkeypatch.setattr(run_lease, "_is_alive", meanwhile)
    with pytest.raises(CheckpointInUseError, match="was just taken by run run-2"):
        take(storage, clock, "run-3")


def test_a_run_without_a_heartbeat_yet_is_alive(storage: CheckpointStorage, clock: Clock) -> None:
    take(storage, clock)
    storage.delete("runs/1.lease")
    with pytest.raises(CheckpointInUseError):
        take(storage, clock, "run-2")


def test_a_failed_heartbeat_is_reported(
    storage: CheckpointStorage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = take(storage, clock)

    def failing(*_: Any) -> None:
        raise OSError("no such host")

    monkeypatch.setattr(type(storage), "write", failing)
    lease._renew_or_record_failure()
    with pytest.raises(OSError, match="no such host"):
        lease.require()
    lease.require()


def test_a_failed_heartbeat_is_forgotten_after_the_next_success(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = RunLease.take(storage, "clicks", "run-1", 60_000, lambda: 0)

    def failing(*_: object) -> None:
        raise OSError("no such host")

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "write", failing)
        lease._renew_or_record_failure()
    lease._renew_or_record_failure()
    lease.require()


def test_heartbeats_are_written_by_a_thread(storage: CheckpointStorage) -> None:
    times = iter(range(1_000_000))
    lease = RunLease.take(storage, "clicks", "run-1", 3, lambda: next(times))
    lease.keep_alive()
    before = json.loads(storage.read("runs/1.lease"))["renewed_ms"]
    while json.loads(storage.read("runs/1.lease"))["renewed_ms"] < before + 3:
        pass
    lease.close()
    assert json.loads(storage.read("runs/1.lease"))["is_closed"]


def test_machines_and_processes_have_stable_identities() -> None:
    assert machine() == machine()
    assert process_identity(os.getpid()) == process_identity(os.getpid())
    assert process_identity(2**22 + 5) == str(2**22 + 5)


@pytest.mark.parametrize("kind", ["run", "lease"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"renewed_ms": "x", "is_closed": 1}',
        b"7" * 5000,
    ],
)
def test_the_error_about_a_damaged_file_says_what_to_do(
    any_storage: CheckpointStorage, clock: Clock, kind: str, content: bytes
) -> None:
    take(any_storage, clock)
    any_storage.write(f"runs/1.{kind}", content)
    with pytest.raises(
        CorruptCheckpointError,
        match=rf"runs/1\.{kind} is damaged: .* make sure that no job uses it, remove the file, and start",
    ):
        take(any_storage, clock, "run-2")
    any_storage.delete(f"runs/1.{kind}")
    if kind == "run":
        take(any_storage, clock, "run-2").require()


def test_other_files_in_the_folder_are_ignored(
    any_storage: CheckpointStorage, clock: Clock
) -> None:
    for name in ("x.run", "1.run.bak", "-1.run", f"{'9' * 200}.run"):
        any_storage.write(f"runs/{name}", b"x")
    assert take(any_storage, clock).run.number == 1


def test_a_heartbeat_from_the_future_blocks_no_run(
    any_storage: CheckpointStorage, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.now += 3_600_000
    take(any_storage, clock)
    clock.now -= 3_600_000
    take(any_storage, clock, "run-2").require()
    assert "is 3600 s in the future, so the run is considered dead" in caplog.text


def test_clocks_may_differ_by_less_than_the_lease_time(
    any_storage: CheckpointStorage, clock: Clock
) -> None:
    take(any_storage, clock)
    clock.now -= 59_000
    with pytest.raises(CheckpointInUseError):
        take(any_storage, clock, "run-2")
