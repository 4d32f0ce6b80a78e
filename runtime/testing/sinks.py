"""Tests whether a sink has every record exactly once, even if processes are killed at any line.

    from opchain.testing import SinkConformance

    class TestOrders(SinkConformance):
        def make_sink(self, target):
            return Orders(target)

        def visible(self, target):
            return [json.loads(line) for file in target.glob("*.json") for line in file.open()]

`pytest` runs the `test_` methods of the class. They play the driver and two tasks of a job with three epochs:

- `test_fails_at_every_line` raises an exception at each line of the sink's code, one run for each line.
- `test_killed_at_every_line` kills the process at each line, with SIGKILL, as `kill -9` does.

After each failure the job starts again, as a real job does. In the end, each record must exist exactly once. A step is
a line of Python in the files that define the sink, its writer and its committer.

`opchain.testing.faults` kills whole jobs on Spark.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from unittest import SkipTest

from opchain.runtime.functions.sink import Committer, Sink, SinkOrigin, SinkWriter
from opchain.runtime.records.function_pickle import dump_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from opchain.runtime.functions.function import RuntimeContext

_SUBTASKS = 2
_KILLED = -signal.SIGKILL
_STANDARD_LIBRARY = (sysconfig.get_path("stdlib"), "<")


class StepFailedError(Exception):
    """The exception that the test raises at a line of a sink."""


class SinkConformance(ABC):
    """The tests of a sink that commits; subclass it in a test file.

    Attributes:
        epochs: The records of each epoch. Records must be hashable, or be made so by `visible`.
        most_failures: How many lines fail at most, in separate runs; evenly spread where the sink has more.
    """

    epochs: Sequence[Sequence[Any]] = (("a", "b", "c"), ("d",), ("e", "f"))
    most_failures: int = 150

    @abstractmethod
    def make_sink(self, target: Path) -> Sink[Any]:
        """The sink for a target. For the same target, it must return the same sink.

        Args:
            target: A path that does not exist yet, with a new name for each run. A database sink may use `target.name`,
                which consists of letters and digits, as the name of its table.
        """

    @abstractmethod
    def visible(self, target: Path) -> Sequence[Any]:
        """The records that a reader of the target sees, in any order. It is also called before there are any."""

    def staged(self, target: Path) -> Sequence[Any]:  # noqa: ARG002 - optional
        """Uncommitted output at the target. Empty by default."""
        return ()

    def test_shows_an_epoch_when_it_is_committed(self, tmp_path: Path) -> None:
        """Nothing is visible before the commit, everything is visible after it."""
        run, seen = self._run(tmp_path / "plain"), 0

        def look(moment: str, number: int) -> None:
            nonlocal seen
            seen += moment == "committed"
            self._expect(run.target, seen, f"{moment} in epoch {number}")

        run.to_the_end(look)

    def test_shows_a_bounded_job_when_it_is_committed(self, tmp_path: Path) -> None:
        """A job without checkpoints commits all of its records at its end."""
        run = self._run(tmp_path / "bounded")
        committables = run.staged(None, [value for epoch in self.epochs for value in epoch])
        self._expect(run.target, 0, "before the commit of a bounded job")
        run.commit(committables)
        self._expect(run.target, len(self.epochs), "after the commit of a bounded job")

    def test_repeats_a_commit(self, tmp_path: Path) -> None:
        """The driver may commit an epoch again: immediately, or after staged output was aborted."""
        run = self._run(tmp_path / "again")

        def again(moment: str, number: int) -> None:
            if moment == "committed":
                run.commit_again()
                run.discard_orphans()
                run.commit_again()
                self._expect(run.target, number, f"after repeated commits of epoch {number}")

        run.to_the_end(again)

    def test_drops_what_a_lost_attempt_staged(self, tmp_path: Path) -> None:
        """A task that is lost after it has staged its records runs again; only one attempt is committed."""
        run = self._run(tmp_path / "attempts")
        for number, records in enumerate(self.epochs, 1):
            run.staged(number, records)  # its worker is lost: nobody commits or closes anything
            run.publish(number, run.staged(number, records))
            run.commit_again()
            self._expect(run.target, number, f"after two attempts at epoch {number}")
        run.discard_orphans()
        self._expect(run.target, len(self.epochs), "after abort")
        self._expect_nothing_staged(run.target, "after abort")

    def test_a_replaced_driver_removes_nothing_of_its_successor(self, tmp_path: Path) -> None:
        """A driver is frozen after `confirm`. Another one replaces it and stages an epoch; then the first one wakes."""
        run = self._run(tmp_path / "replaced")
        run.staged(1, self.epochs[0])  # of a driver that died
        successor: list[Any] = []

        def confirm() -> None:
            if not successor:
                successor.extend(run.staged(1, self.epochs[0]))

        run.discard_orphans(confirm)
        if not successor:
            raise SkipTest(f"{type(run.sink).__name__}.abort does not call self.confirm()")
        run.publish(1, successor)
        run.commit_again()
        self._expect(run.target, 1, "after the successor's commit")

    def test_leaves_what_another_job_has_staged(self, tmp_path: Path) -> None:
        """Two jobs may write to one target. A job that starts removes its own staged output only."""
        run = self._run(tmp_path / "shared")
        run.publish(1, run.staged(1, self.epochs[0]))
        SinkRun(self.make_sink(run.target), tmp_path / "other", (), "2" * 32).to_the_end()
        run.commit_again()
        self._expect(run.target, 1, "after another job has started")

    def test_fails_at_every_line(self, tmp_path: Path) -> None:
        """Raises an exception at each line, in this process."""
        counted = _Steps(self._run(tmp_path / "files").files())
        with counted:
            self._run(tmp_path / "count").to_the_end()
        gc.freeze()  # what was there before takes a second of each collection in a large process
        try:
            for step in self._chosen(counted.count):
                self._fail_at(tmp_path / f"step{step}", _Steps(counted.files, step, _fail))
        finally:
            gc.unfreeze()

    def _fail_at(self, target: Path, steps: _Steps) -> None:
        run = self._run(target)
        with warnings.catch_warnings():
            # A file is left open where the failure falls between its opening and its `with`.
            warnings.simplefilter("ignore", ResourceWarning)
            with suppress(StepFailedError), steps:
                run.to_the_end()
            gc.collect()
        run.to_the_end()
        self._expect(target, len(self.epochs), f"after a failure at {steps.where}")
        self._expect_nothing_staged(target, f"after a failure at {steps.where}")

    def test_killed_at_every_line(self, tmp_path: Path) -> None:
        """Kills a process at each line. The processes are forks of a new interpreter, which has no threads yet."""
        import cloudpickle  # noqa: PLC0415 - executors import this package without it

        module = sys.modules[type(self).__module__]
        cloudpickle.register_pickle_by_value(module)
        try:
            program = dump_functions((self, tmp_path))
        finally:
            cloudpickle.unregister_pickle_by_value(module)
        path = json.dumps([*sys.path])
        ended = subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, "-c", _START, path],
            input=program,
            capture_output=True,
            check=False,
        )
        if ended.returncode:
            raise AssertionError(ended.stderr.decode(errors="replace").strip())

    def kill_at_every_line(self, folder: Path) -> None:
        """What the new interpreter of `test_killed_at_every_line` does."""
        total = int(_in_child(lambda: self._steps_of(folder / "killcount")))
        for step in self._chosen(total):
            target = folder / f"kill{step}"
            _in_child(partial(self._die_at, target, step))
            failure = _in_child(partial(self._survive, target))
            if failure:
                raise AssertionError(failure)

    def _steps_of(self, target: Path) -> str:
        steps = _Steps(self._run(target.with_name("killfiles")).files())
        with steps:
            self._run(target).to_the_end()
        return str(steps.count)

    def _die_at(self, target: Path, step: int) -> str:
        note = target.parent / f"{target.name}.where"

        def die(where: str) -> None:
            note.write_text(where)
            os.kill(os.getpid(), signal.SIGKILL)

        files = self._run(target.with_name(f"{target.name}files")).files()
        with _Steps(files, step, die):
            self._run(target).to_the_end()
        return ""

    def _survive(self, target: Path) -> str:
        note = target.parent / f"{target.name}.where"
        where = note.read_text() if note.exists() else "no line"
        try:
            self._run(target).to_the_end()
            self._expect(target, len(self.epochs), f"after a kill at {where}")
            self._expect_nothing_staged(target, f"after a kill at {where}")
        except Exception as error:  # noqa: BLE001 - reported by the parent
            return f"{type(error).__name__}: {error} (killed at {where})"
        return ""

    def _run(self, target: Path) -> SinkRun:
        return SinkRun(self.make_sink(target), target, self.epochs)

    def _chosen(self, total: int) -> Iterator[int]:
        """The steps that fail: all of them, or as many as are allowed, evenly spread."""
        if not total:
            raise AssertionError(f"{type(self).__name__}: no line of the sink was run")
        count = min(total, self.most_failures)
        return (number * total // count for number in range(count))

    def _expect(self, target: Path, epochs: int, moment: str) -> None:
        expected = Counter(value for epoch in self.epochs[:epochs] for value in epoch)
        found = Counter(self.visible(target))
        if found != expected:
            lost, extra = list((expected - found).elements()), list((found - expected).elements())
            raise AssertionError(
                f"{type(self).__name__}, {moment}: lost {lost}, too many {extra}; expected {sorted(map(str, expected))}"
            )

    def _expect_nothing_staged(self, target: Path, moment: str) -> None:
        left = list(self.staged(target))
        if left:
            raise AssertionError(f"{type(self).__name__}, {moment}: still staged: {left}")


@dataclass
class SinkRun:
    """A job whose tasks write the same epochs into a sink, and whose driver commits them.

    The checkpoint is a file beside the target, so another process can resume from it.
    """

    sink: Sink[Any]
    target: Path
    epochs: Sequence[Sequence[Any]]
    lineage: str = "0" * 32
    _writers: list[SinkWriter[Any]] = field(default_factory=list)

    def to_the_end(self, look: Callable[[str, int], None] = lambda *_: None) -> None:
        """Starts from the last checkpoint, as a driver does, and runs the remaining epochs."""
        try:
            self.commit_again()
            self.discard_orphans()
            for number in range(self._latest()[0] + 1, len(self.epochs) + 1):
                committables = self.staged(number, self.epochs[number - 1])
                look("staged", number)
                self.publish(number, committables)
                look("published", number)
                self.commit(committables)
                look("committed", number)
            self.discard_orphans()
        finally:
            self._close_writers()

    def staged(self, number: int | None, records: Sequence[Any]) -> list[Any]:
        """Writes records as two tasks; gives the committables as the driver gets them."""
        self._writers = [self.sink.create_writer(self._context(n)) for n in range(_SUBTASKS)]
        committables: list[Any] = []
        for subtask, writer in enumerate(self._writers):
            writer.write_batch(list(records[subtask::_SUBTASKS]), None)
            writer.flush(end_of_input=number is None)
            committables += writer.prepare_commit_of(number)
        self._close_writers()
        return cast("list[Any]", pickle.loads(pickle.dumps(committables)))

    def publish(self, number: int, committables: Sequence[Any]) -> None:
        """Completes the checkpoint of an epoch."""
        path = self._checkpoint()
        path.with_suffix(".new").write_bytes(pickle.dumps((number, list(committables))))
        path.with_suffix(".new").replace(path)

    def commit(self, committables: Sequence[Any]) -> None:
        """Commits with a new committer, as the driver does. Does nothing if there is no output."""
        if committables:
            committer = self._committer()
            try:
                committer.commit(committables)
            finally:
                committer.close()

    def commit_again(self) -> None:
        """Commits the last checkpoint."""
        self.commit(self._latest()[1])

    def discard_orphans(self, confirm: Callable[[], None] = lambda: None) -> None:
        """Removes staged output that belongs to no checkpoint."""
        committer = self._committer()
        try:
            committer.discard_orphans(self._origin(), confirm)
        finally:
            committer.close()

    def files(self) -> frozenset[str]:
        """The files that define the sink, its writer and its committer. Their lines are the steps."""
        writer, committer = self.sink.create_writer(self._context(0)), self._committer()
        writer.close()
        committer.close()
        found = {
            method.__code__.co_filename  # a class from another interpreter has no module here
            for of in (type(self.sink), type(writer), type(committer))
            for base in of.__mro__
            for method in vars(base).values()
            if inspect.isfunction(method)
        }
        return frozenset(
            file
            for file in found - {inspect.getfile(Sink)}
            if not file.startswith(_STANDARD_LIBRARY) or "site-packages" in file
        )

    def _close_writers(self) -> None:
        while self._writers:
            self._writers.pop().close()

    def _committer(self) -> Committer:
        committer = self.sink.create_committer()
        if committer is None:
            raise AssertionError(f"{self.sink!r} has no committer: its writes are final")
        return committer

    def _latest(self) -> tuple[int, list[Any]]:
        path = self._checkpoint()
        return pickle.loads(path.read_bytes()) if path.exists() else (0, [])

    def _checkpoint(self) -> Path:
        return self.target.parent / f"{self.target.name}.checkpoint"

    def _origin(self) -> SinkOrigin:
        staging = self.target.parent / f"{self.target.name}.staging"
        staging.mkdir(exist_ok=True)
        return SinkOrigin(self.lineage, "1" * 32, "a sink under test", str(staging))

    def _context(self, subtask: int) -> RuntimeContext:
        return cast("RuntimeContext", _Context(self._origin(), subtask))


@dataclass(frozen=True)
class _Context:
    """The context that a task gives to a writer."""

    origin: SinkOrigin
    subtask: int

    def get_index_of_this_subtask(self) -> int:
        return self.subtask

    def get_number_of_parallel_subtasks(self) -> int:
        return _SUBTASKS


class _Steps:
    """Within the block, lines of some files are counted, and something happens at one of them."""

    def __init__(
        self, files: frozenset[str], at: int = -1, then: Callable[[str], None] | None = None
    ) -> None:
        self.files = files
        self.count = 0
        self.where = ""
        self._at = at
        self._then = then

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._on_call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 - Python's
        return self._on_line if frame.f_code.co_filename in self.files else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 - Python's
        if event == "line":
            self.count += 1
            if self.count - 1 == self._at:
                self.where = (
                    f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
                )
                assert self._then is not None
                self._then(self.where)
        return self._on_line


def _fail(where: str) -> None:
    raise StepFailedError(f"the test fails at {where}")


def _in_child(action: Callable[[], str]) -> str:
    """What an action returns in a fork of this process; empty where the fork was killed."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if not child:
            code = 1
            try:
                answer.write(action().encode())
                answer.flush()
                code = 0
            except BaseException as error:  # noqa: BLE001 - the parent reports it
                answer.write(f"{type(error).__name__}: {error}".encode())
                answer.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        answer.seek(0)
        text = answer.read().decode()
    code = os.waitstatus_to_exitcode(status)
    if code == _KILLED:
        return ""
    if code:
        raise AssertionError(f"the sink failed without a kill: {text}")
    return text


_START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import pickle
suite, folder = pickle.load(sys.stdin.buffer)
suite.kill_at_every_line(folder)
"""
