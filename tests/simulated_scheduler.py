"""A scheduler that decides by a seed which of several drivers makes its next call, and what becomes of the call.

A driver runs on a thread of its own, and stops before each call to storage, network and clock. The scheduler lets one
driver go on at a time. It may also let a driver die, have a call fail, do the call and lose its answer, or do the call
much later. A driver that is not scheduled for a while is frozen.
"""

from __future__ import annotations

import errno
import os
import random
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING, Any

from crash_runs import DriverDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEASE_MS = 60_000
MOST_DRIVERS = 6
MOST_STEPS = 5_000
_REFUSALS = (errno.ENOSPC, errno.EIO, errno.ETIMEDOUT)

_driver: ContextVar[Driver | None] = ContextVar("driver", default=None)
"""The driver that this thread works for. Threads of tasks have the variables of the thread that they work for."""


class Driver:
    """A run of the job on a thread of its own, one step at a time."""

    def __init__(self, scheduler: Scheduler, number: int) -> None:
        self.scheduler, self.number = scheduler, number
        self.is_over = self.is_dead = False
        self.failure: BaseException | None = None
        self.action = "go"
        self.may_fail = False
        self.turn = threading.Lock()
        self.turn.acquire()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def pause(self, *, may_fail: bool) -> str:
        """Waits for its next turn; on the driver's own thread."""
        self.may_fail = may_fail
        self.scheduler.pass_turn(self)
        if self.action == "die" and not self.is_dead:
            self.scheduler.trace.append(f"{self.number} die")
            self.is_dead = True
        if self.is_dead:
            raise DriverDiedError
        return self.action

    def _run(self) -> None:
        self.turn.acquire()
        _driver.set(self)
        try:
            self.scheduler.run_job(f"run-{self.number}")
        except BaseException as error:  # noqa: BLE001 - the judge looks at it
            self.failure = error
        finally:
            self.is_over = True
            self.scheduler.pass_turn(self)


class Scheduler(ABC):
    """The drivers and the clock of one seed.

    Attributes:
        seed: Decides everything.
        draw: Random numbers from the seed.
        trace: What happened, in order.
        late: Calls that take effect later.
        now_ms: The clock.
        is_disk_full: Whether all changes fail.
        drivers: All that were started.
    """

    lost_calls: tuple[type[Exception], ...] = (OSError,)
    """The errors of late calls, which nobody receives."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = random.Random(seed)
        self.trace: list[str] = []
        self.late: list[Callable[[], Any]] = []
        self.now_ms = 1_000_000
        self.is_disk_full = self._was_damaged = False
        self.drivers: list[Driver] = []
        self._steps: Iterator[tuple[Driver, str]] = iter(())
        self._is_over = threading.Lock()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Runs drivers with faults, and then one without.

        Raises:
            AssertionError: The driver without faults failed.
        """
        self._steps = chain(self._chaos(), self._settle())
        self._is_over.acquire()
        first = self._next()
        assert first is not None, "a driver starts in any case"
        first.turn.release()
        self._is_over.acquire()
        if self._failure is not None:
            raise self._failure
        for driver in self.drivers:
            driver.thread.join()

    def pass_turn(self, driver: Driver) -> None:
        """Lets the next driver go on. Returns at the next turn of this one, or at once if it is over."""
        following = self._next()
        if following is driver:
            return  # without a change of threads, which takes longer than the step
        (self._is_over if following is None else following.turn).release()
        if not driver.is_over:
            driver.turn.acquire()

    def _next(self) -> Driver | None:
        """The driver that makes the next step; None if the run is over."""
        token = _driver.set(None)
        try:
            following, following.action = next(self._steps)
        except StopIteration:
            return None
        except BaseException as error:  # noqa: BLE001 - raised on the thread of `run`
            self._failure = error
            return None
        finally:
            _driver.reset(token)
        return following

    @abstractmethod
    def run_job(self, run_id: str) -> None:
        """What a driver does."""

    @abstractmethod
    def happen(self) -> None:
        """Something that happens outside of all drivers."""

    @abstractmethod
    def damage(self) -> None:
        """Damages what was stored, between two drivers."""

    def call(self, what: str, effect: Callable[[], Any], *, changes: bool) -> Any:
        """A call of a driver. Only calls that change something may fail.

        Raises:
            OSError: The call failed, or its answer is lost.
        """
        driver = _driver.get()
        if driver is None:
            return effect()
        action = driver.pause(may_fail=changes)
        self.trace.append(f"{driver.number} {action} {what}")
        if action == "fail" or (changes and self.is_disk_full):
            code = errno.ENOSPC if self.is_disk_full else self.draw.choice(_REFUSALS)
            raise OSError(code, os.strerror(code))
        if action == "late":
            self.late.append(effect)
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        found = effect()
        if action == "lost":
            raise ConnectionError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        return found

    def start(self) -> Driver:
        """Starts another driver."""
        driver = Driver(self, len(self.drivers) + 1)
        self.drivers.append(driver)
        return driver

    def _chaos(self) -> Iterator[tuple[Driver, str]]:
        """Steps and faults, as the seed says."""
        draw = self.draw
        faults, switches = draw.choice((0.0, 0.03, 0.1, 0.2)), draw.choice((0.01, 0.05, 0.3))
        starts = draw.choice((0.01, 0.05))
        self.start()
        current: Driver | None = None
        for _ in range(draw.randrange(20, 600)):
            event = draw.random()
            if event < starts and len(self.drivers) < MOST_DRIVERS:
                self.now_ms += draw.choice((-LEASE_MS, 10, 2 * LEASE_MS, 2 * LEASE_MS))
                current = self.start()
            elif event < 0.03 and self.late:
                self.deliver(draw.randrange(len(self.late)))
            elif event < 0.04:
                self.happen()
            elif event < 0.043:
                self.is_disk_full = not self.is_disk_full
            alive = [driver for driver in self.drivers if not driver.is_over]
            if not alive:
                if len(self.drivers) >= MOST_DRIVERS:
                    return
                if not self._was_damaged and draw.random() < 0.3:
                    self._was_damaged = True
                    self.damage()
                self.now_ms += 2 * LEASE_MS
                current = self.start()
                continue
            if current is None or current.is_over or draw.random() < switches:
                current = draw.choice(alive)
            yield current, self._action(current, faults)

    def _settle(self) -> Iterator[tuple[Driver, str]]:
        """One driver runs without faults; then frozen ones wake, and late calls arrive."""
        self.is_disk_full = False
        yield from self._finish()
        for driver in self.drivers:
            yield from self._ended(driver)
        while self.late:
            self.deliver(0)
        yield from self._finish()

    def deliver(self, number: int) -> None:
        """A late call takes effect."""
        self.trace.append(f"late call {number} arrives")
        with suppress(*self.lost_calls):
            self.late.pop(number)()

    def _action(self, driver: Driver, faults: float) -> str:
        if self.draw.random() >= (faults if driver.may_fail else faults / 10):
            return "go"
        kinds = ("die", "fail", "lost", "late")
        return self.draw.choice(kinds) if driver.may_fail else "die"

    def _ended(self, driver: Driver) -> Iterator[tuple[Driver, str]]:
        """Lets a driver run to its end.

        Raises:
            AssertionError: It does not end.
        """
        for _ in range(MOST_STEPS):
            if driver.is_over:
                return
            yield driver, "go"
        raise AssertionError(f"seed {self.seed}: driver {driver.number} does not end")

    def _finish(self) -> Iterator[tuple[Driver, str]]:
        self.now_ms += 10 * LEASE_MS
        driver = self.start()
        yield from self._ended(driver)
        if driver.failure is not None:
            raise AssertionError(
                f"seed {self.seed}: the last driver failed: {driver.failure!r}"
            ) from driver.failure


def scheduler_of_thread() -> Any:
    """The scheduler of the driver that this thread works for."""
    driver = _driver.get()
    assert driver is not None, "this thread works for no driver"
    return driver.scheduler
