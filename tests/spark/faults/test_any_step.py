"""Whatever happens at whichever step of a job: output and state are those of an undisturbed run.

`OPCHAIN_FAULT_STRIDE=1` goes through all steps and not through each fifth one, `OPCHAIN_FAULT_ROUNDS` says how
many random rounds there are, `OPCHAIN_SEED` which.
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
    """The steps to go through, and what comes of all."""
    steps, run = Steps(), CrashRun(tmp_path_factory.mktemp("undisturbed"))
    run.run(steps)
    assert run.left_over() == []
    assert all(run.output().values())
    assert sorted(run.state()) == ["count", "sum"]
    return range(SEED % STRIDE, steps.count, STRIDE), result(run)


def result(run: CrashRun) -> Any:
    return run.output(), run.state()


def until_it_ends(run: CrashRun, steps: Steps | None, dies_of: type[BaseException]) -> int:
    """Runs again and again; how often it was cut short."""
    for died in range(20):
        with suppress(dies_of):
            run.run(steps)
            return died
        steps = None
    raise AssertionError("it does not come to an end")


def test_a_driver_dies_at_any_step(tmp_path: Path, undisturbed: tuple[range, Any]) -> None:
    steps, expected = undisturbed
    for at in steps:
        run = CrashRun(tmp_path / str(at))
        assert until_it_ends(run, Steps(at), DriverDiedError) == 1
        assert result(run) == expected, f"it died at step {at}"


@pytest.mark.parametrize("tolerable", [0, 1])
def test_a_write_fails_at_any_step(
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
        assert failed > len(steps) / 2  # what only tidies up is done some other time


def test_a_driver_that_was_frozen_at_any_step_and_replaced_does_nothing_any_more(
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
def test_a_frozen_driver_wakes_while_the_one_that_replaced_it_is_anywhere(
    tmp_path: Path, undisturbed: tuple[range, Any], seed: int
) -> None:
    steps, expected = undisturbed
    draw = random.Random(seed)
    run = CrashRun(tmp_path)
    wake_first = frozen(run.run, draw.randrange(steps.stop))
    wake_second = frozen(run.run, draw.randrange(steps.stop))
    failure = wake_first()
    assert failure is None or isinstance(failure, CheckpointInUseError)
    # Where both have come to the same publish, the second may have to stop, too: the next run continues.
    failure = wake_second()
    assert failure is None or isinstance(failure, CheckpointInUseError)
    run.run()
    assert result(run) == expected


@pytest.mark.parametrize("epoch", [1, 2])
def test_an_attempt_that_was_replaced_and_ends_late_changes_nothing(
    tmp_path: Path, undisturbed: tuple[range, Any], epoch: int
) -> None:
    _, expected = undisturbed
    late = 0
    for at in range(SEED % 2, 16, 2):  # its files are written in so many steps
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
    """Begins a run that is frozen at a step; what wakes it up gives what it fails with then."""
    is_frozen, may_go_on = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def freeze() -> None:
        is_frozen.set()
        assert may_go_on.wait(PATIENCE_S)

    def run_it() -> None:
        try:
            run(Steps(at, freeze))
        except BaseException as error:  # noqa: BLE001 - the test looks at it
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
def test_it_dies_often_and_starts_at_other_parallelisms(
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
