"""A fault at any step of a job: output and state are those of an undisturbed run.

`OPCHAIN_FAULT_STRIDE=1` tests every step instead of every fifth one. `OPCHAIN_FAULT_ROUNDS` sets the number of
random rounds, and `OPCHAIN_SEED` their seed.
"""

from __future__ import annotations

import errno
import os
import random
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from crash_runs import CrashRun, DriverDiedError, Steps

from opchain.runtime.errors import CheckpointInUseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROUNDS = int(os.environ.get("OPCHAIN_FAULT_ROUNDS", "10"))
STRIDE = int(os.environ.get("OPCHAIN_FAULT_STRIDE", "5"))
SEED = int(os.environ.get("OPCHAIN_SEED", "1"))
PATIENCE_S = 300
"""How long a run may stand still, or take to the step at which it does."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[range, Any]:
    """The steps of an undisturbed run, and its result."""
    steps, run = Steps(), CrashRun(tmp_path_factory.mktemp("undisturbed"))
    run.run(steps)
    assert run.left_over() == []
    assert all(run.output().values())
    assert sorted(run.state()) == ["count", "sum"]
    return range(SEED % STRIDE, steps.count, STRIDE), result(run)


def result(run: CrashRun) -> Any:
    return run.output(), run.state()


def until_it_ends(run: CrashRun, steps: Steps | None, dies_of: type[BaseException]) -> int:
    """Runs until the job ends; returns how often it was interrupted."""
    for died in range(20):
        with suppress(dies_of):
            run.run(steps)
            return died
        steps = None
    raise AssertionError("it does not come to an end")


def test_a_driver_that_dies_at_any_step_changes_no_result(
    tmp_path: Path, undisturbed: tuple[range, Any]
) -> None:
    steps, expected = undisturbed
    for at in steps:
        run = CrashRun(tmp_path / str(at))
        assert until_it_ends(run, Steps(at), DriverDiedError) == 1
        assert result(run) == expected, f"it died at step {at}"


@pytest.mark.parametrize("tolerable", [0, 1])
def test_a_write_that_fails_at_any_step_changes_no_result(
    tmp_path: Path, undisturbed: tuple[range, Any], tolerable: int
) -> None:
    def fail() -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    steps, expected = undisturbed
    failed = 0
    for at in steps:
        run = CrashRun(tmp_path / str(at), tolerable_failures=tolerable)
        failed += until_it_ends(run, Steps(at, fail), Exception)
        assert result(run) == expected, f"the disk was full at step {at}"
    if not tolerable:
        assert failed > len(steps) / 2  # a failed clean-up is repeated later


def test_a_replaced_driver_that_wakes_writes_nothing_whatever_its_step(
    tmp_path: Path, undisturbed: tuple[range, Any]
) -> None:
    steps, expected = undisturbed
    fenced = 0
    for at in steps:
        run = CrashRun(tmp_path / str(at))
        wake_up = frozen(run.run, at)
        run.run()
        failure = wake_up()
        assert failure is None or isinstance(failure, CheckpointInUseError), f"at step {at}"
        fenced += failure is not None
        assert result(run) == expected, f"it was frozen at step {at}"
    assert fenced > len(steps) / 2


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_a_frozen_driver_may_wake_at_any_step_of_its_successor(
    tmp_path: Path, undisturbed: tuple[range, Any], seed: int
) -> None:
    steps, expected = undisturbed
    draw = random.Random(seed)
    run = CrashRun(tmp_path)
    wake_first = frozen(run.run, draw.randrange(steps.stop))
    wake_second = frozen(run.run, draw.randrange(steps.stop))
    failure = wake_first()
    assert failure is None or isinstance(failure, CheckpointInUseError)
    # If both drivers publish the same checkpoint, the second may have to stop, too: the next run continues.
    failure = wake_second()
    assert failure is None or isinstance(failure, CheckpointInUseError)
    run.run()
    assert result(run) == expected


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_replaced_task_attempt_that_ends_late_changes_no_result(
    tmp_path: Path, undisturbed: tuple[range, Any], epoch: int
) -> None:
    _, expected = undisturbed
    late = 0
    for at in range(SEED % 2, 16, 2):  # the number of steps in which it writes its files
        run = CrashRun(tmp_path / str(at))
        run.run(until=epoch - 1)
        wake_up = frozen(lambda steps, run=run: run.run_attempt(steps, epoch), at)
        run.run(until=epoch)
        wake_up()
        late += bool(run.left_over())
        run.run()
        assert result(run) == expected, f"it was frozen at step {at}"
        run.run()
        assert run.left_over() == []
    assert late


def frozen(run: Callable[[Steps], None], at: int) -> Callable[[], BaseException | None]:
    """Starts a run that is frozen at a step; the returned function wakes it and returns its error."""
    is_frozen, may_go_on = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def freeze() -> None:
        is_frozen.set()
        assert may_go_on.wait(PATIENCE_S)

    def run_it() -> None:
        try:
            run(Steps(at, freeze))
        except BaseException as error:  # noqa: BLE001 - the test checks it
            failures.append(error)
        finally:
            is_frozen.set()

    def wake() -> BaseException | None:
        may_go_on.set()
        thread.join()
        return failures[0] if failures else None

    thread = threading.Thread(target=run_it)
    thread.start()
    assert is_frozen.wait(PATIENCE_S)
    return wake


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_frequent_deaths_and_changes_of_parallelism_change_no_result(
    tmp_path: Path, undisturbed: tuple[range, Any], seed: int
) -> None:
    steps, expected = undisturbed
    draw = random.Random(seed)
    run = CrashRun(tmp_path)
    for _ in range(10):
        run.parallelism = draw.randint(1, 8)
        with suppress(DriverDiedError):
            run.run(Steps(draw.randrange(steps.stop)))
    run.parallelism = draw.randint(1, 8)
    run.run()
    assert result(run) == expected
