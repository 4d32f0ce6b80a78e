"""A driver is frozen between checking its lease and publishing, and wakes when another driver has taken over."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from crash_runs import BATCHES, CrashRun, DriverDiedError, Steps

from opchain.runtime.errors import CheckpointInUseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S = 300


class Driver:
    """A run on its own thread, frozen before the first step that matches a pattern.

    Attributes:
        failure: The error of the run, once it has ended.
    """

    def __init__(self, run: CrashRun, frozen_at: str, dies_at: str | None = None) -> None:
        self.failure: BaseException | None = None
        self._frozen, self._awake = threading.Event(), threading.Event()
        self.was_frozen = False
        steps = Steps(frozen_at, self._freeze, dies_at)
        self._thread = threading.Thread(target=self._run, args=(run.run, steps))
        self._thread.start()
        assert self._frozen.wait(PATIENCE_S)
        assert self.was_frozen, f"no step matched {frozen_at!r}: {self.failure!r}"

    def wakes(self) -> None:
        """Resumes the driver and waits for its end."""
        self._awake.set()
        self._thread.join()

    def _freeze(self) -> None:
        self.was_frozen = True
        self._frozen.set()
        assert self._awake.wait(PATIENCE_S)

    def _run(self, run: Callable[[Steps], None], steps: Steps) -> None:
        try:
            run(steps)
        except BaseException as error:  # noqa: BLE001 - the test checks it
            self.failure = error
        finally:
            self._frozen.set()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    run = CrashRun(tmp_path_factory.mktemp("undisturbed"))
    run.run()
    return run.output(), run.state()


@pytest.mark.parametrize("epoch", range(1, len(BATCHES) + 1))
@pytest.mark.parametrize("dies_at", [None, "unlink .*chk-"], ids=["lives", "dies"])
def test_a_driver_that_publishes_late_completes_no_epoch_of_its_successor(
    tmp_path: Path, undisturbed: Any, epoch: int, dies_at: str | None
) -> None:
    run = CrashRun(tmp_path)
    publish = rf"link .*/chk-{epoch}/"
    # The first driver is frozen between its lease and its publish; its output is hidden.
    first = Driver(run, publish, dies_at)
    # The second driver takes over, removes the staged output, and runs the same epoch.
    second = Driver(run, rf"/shared/{epoch}/")
    first.wakes()
    assert isinstance(first.failure, (CheckpointInUseError, DriverDiedError))
    second.wakes()
    assert second.failure is None
    run.run()
    assert (run.output(), run.state()) == undisturbed
