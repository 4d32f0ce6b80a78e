"""FILE on the command line: a program that runs as under `python FILE`, while its jobs are captured.

`opchain plan clicks.py` runs the file as `__main__`. `clicks.py:build` imports the file and calls `build(env)` with a
new environment. In both cases no job runs and no Spark starts. The output of the program goes to standard error,
because standard output is for the plan.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import runpy
import sys
import warnings
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import click

from opchain.compiler.command_line.failures import CommandError, failure_of
from opchain.compiler.dsl.environment import StreamExecutionEnvironment
from opchain.compiler.interception import Capture, CapturedJob, capturing
from opchain.compiler.plan.layout import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SAVED_PLAN = ".json"
"""The suffix of plans that `opchain plan FILE --format json` wrote."""


def check_is_python(path: Path) -> None:
    """Refuses a file that Python cannot compile, and a saved plan. Most JSON is also valid Python.

    Raises:
        CommandError: The file is not a program. The message names the line.
    """
    if path.suffix.lower() == SAVED_PLAN:
        raise CommandError(
            f"{path} is a saved plan, not a Python program; 'opchain plan', 'explain', 'diff' and "
            "'checkpoint diff' take one"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are shown when the program runs
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f" ({path.name}:{error.lineno})" if error.lineno else ""
        raise CommandError(f"{path} is not a Python program: {error.msg}{line}") from None
    except ValueError as error:  # null bytes, in some versions of Python
        raise CommandError(f"{path} is not a Python program: {error}") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None


@contextmanager
def as_main_program(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Within the block `sys.argv` and `sys.path` are those of `python FILE arguments`.

    At its end, modules from the program's folder are removed from `sys.modules`: each of the two programs of a diff
    may have its own `common.py`.
    """
    folder = str(path.resolve().parent)
    root, module = package_of(path)
    argv, search_path, known = sys.argv, sys.path[:], set(sys.modules)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, folder)
    if module is not None:  # its imports name the package from here
        sys.path.insert(1, str(root))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search_path
        for name in sorted(set(sys.modules) - known):
            if any(_lies_in(place, name.partition(".")[0]) for place in (folder, str(root))):
                del sys.modules[name]


def package_of(path: Path) -> tuple[Path, str | None]:
    """The folder of the package that a file is in, and the file's name as a module; None if it is in no package."""
    folder = path.resolve().parent
    parts = [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) if len(parts) > 1 and path.suffix == ".py" else None


def run_as_main(path: Path) -> None:
    """Runs a program as Python does; a module of a package also finds its package, as with `python -m`."""
    _, module = package_of(path)
    if module is None:
        runpy.run_path(str(path), run_name="__main__")
        return
    # runpy.run_module warns if the module was imported before. It also asks the importer for code, and pytest's
    # importer has none.
    package = module.rpartition(".")[0]
    importlib.import_module(package)
    main = ModuleType("__main__")
    main.__file__, main.__package__ = str(path), package
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(main))  # noqa: S102 - the user's program
    finally:
        sys.modules["__main__"] = before


def _lies_in(folder: str, top_level: str) -> bool:
    return any(Path(folder, top_level + tail).exists() for tail in (".py", "/__init__.py"))


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Within the block standard output goes to standard error, also that of child processes."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            is_real = sys.__stdout__ is not None and sys.__stdout__.fileno() == 1
            saved = os.dup(1) if is_real else None
        except (OSError, ValueError):  # closed, or replaced by something without a descriptor
            saved = None
        if saved is None:
            yield
            return
        try:
            os.dup2(2, 1)
            yield
        finally:
            os.dup2(saved, 1)
            os.close(saved)


class ProgramFile(NamedTuple):
    """A file to run, or a function of it to call with an environment."""

    path: Path
    function: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.function is None else f"{self.path}:{self.function}"


class Captured(NamedTuple):
    """The jobs of a program that was run, and notes for the user.

    `failure` is set if the program failed after it had executed at least one job.
    """

    file: ProgramFile
    jobs: Sequence[CapturedJob]
    notes: Sequence[str]
    failure: CommandError | None = None

    def job(self, number: int | None) -> CapturedJob:
        """Job `number`, counted from 1; the first one by default.

        Raises:
            CommandError: The program has fewer jobs.
        """
        if number is not None and number > len(self.jobs):
            raise CommandError(
                f"{self.file} has {counted(len(self.jobs), 'job')}; there is no job {number}"
            )
        return self.jobs[(number or 1) - 1]

    def choice(self, number: int | None) -> str | None:
        """A note for a user who selected none of several jobs."""
        if number is not None or len(self.jobs) == 1:
            return None
        jobs = listed(
            f"{position} is '{job.job_name or 'unnamed'}' ({job.call_site})"
            for position, job in enumerate(self.jobs, start=1)
        )
        return f"{self.file} has {len(self.jobs)} jobs: {jobs}; this is job 1, --job N chooses"


def program_file(argument: str) -> ProgramFile:
    """Reads `FILE` or `FILE:function`.

    Raises:
        CommandError: There is no such file, or an option is in its place.
    """
    path, colon, function = argument.rpartition(":")
    if colon and function.isidentifier() and not Path(argument).exists():
        return ProgramFile(existing_file(Path(path)), function)
    return ProgramFile(existing_file(Path(argument)))


def whole_program(argument: str) -> Path:
    """Reads `FILE` for a command that runs it as Python would, from the first line to the last.

    Raises:
        CommandError: There is no such file, it is not Python, or a function of it is named.
    """
    file = program_file(argument)
    if file.function is not None:
        raise CommandError(
            f"{file} names a function, but this command runs whole programs; pass {file.path}, "
            f"and call {file.function} in it"
        )
    check_is_python(file.path)
    return file.path


def capture_program(file: ProgramFile, arguments: Sequence[str] = ()) -> Captured:
    """Runs a program and captures its jobs.

    Raises:
        CommandError: The file is not Python, fails or exits before it executes a job, or has no job.
    """
    check_is_python(file.path)
    with as_main_program(file.path, arguments), prints_to_stderr(), capturing() as capture:
        failure = _run(file)
    if isinstance(failure, CommandError):  # the function is not in the file
        raise failure
    return _outcome(file, capture, failure)


def option_like(name: str, context: click.Context) -> str | None:
    """The option of a command, or of `opchain`, whose name is closest to this one."""
    names = [*option_names(context), *option_names(context.find_root())]
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    return close[0] if close else None


def option_names(context: click.Context, *, is_short: bool = False) -> list[str]:
    """The long options of a command, such as `--job`, or the short ones."""
    parameters = context.command.get_params(context)
    return [
        name
        for parameter in parameters
        if isinstance(parameter, click.Option)
        for name in parameter.opts
        if name.startswith("--") is not is_short
    ]


def existing_file(path: Path) -> Path:
    """The path of a program.

    Raises:
        CommandError: It is not a file.
    """
    if str(path).startswith("-") and not path.exists():
        context = click.get_current_context(silent=True)
        close = None if context is None else option_like(str(path).partition("=")[0], context)
        hint = "" if close is None else f"did you mean {close}? Or "
        raise CommandError(
            f"{path} is not an option of this command, and is not a file; {hint}put options of the "
            f"program after FILE, and pass settings as -D KEY=VALUE, such as -D "
            f"parallelism.default=4"
        )
    if path.is_dir():
        raise CommandError(f"{path} is a folder; pass a Python file")
    if not path.exists():
        names = [each.name for each in path.parent.glob("*")]
        nearest = get_close_matches(path.name, sorted(names), n=1, cutoff=0.75)
        hint = f"; did you mean {path.parent / nearest[0]}?" if nearest else ""
        raise CommandError(f"there is no file {path}{hint}")
    return path


def _run(file: ProgramFile) -> BaseException | None:
    """Runs the program; returns the exception that ended it early."""
    try:
        if file.function is None:
            run_as_main(file.path)
        else:
            _call(file, file.function)
    except SystemExit as error:
        return error
    except Exception as error:  # noqa: BLE001 - a program may raise anything
        return error
    return None


def _call(file: ProgramFile, name: str) -> None:
    with _imported(file.path) as module:
        function = getattr(module, name, None)
        if not callable(function):
            raise CommandError(f"{file.path} has no function {name}(env)")
        function(StreamExecutionEnvironment.get_execution_environment())


@contextmanager
def _imported(path: Path) -> Iterator[ModuleType]:
    # Under its own name, which `__module__` of its functions shows, unless that would hide a loaded module.
    _, in_package = package_of(path)
    name = in_package or path.stem
    name = name if name not in sys.modules else f"{name}_program"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} cannot be imported: its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.modules.pop(name, None)


def _outcome(file: ProgramFile, capture: Capture, ended_by: BaseException | None) -> Captured:
    failure = None if ended_by is None else failure_of(ended_by, file.path)
    is_success = isinstance(ended_by, SystemExit) and ended_by.code in (None, 0)
    is_failure = failure is not None and not is_success
    unexecuted = _never_executed(capture)
    if failure is not None and not capture.jobs:
        if is_failure:
            raise failure
        if not unexecuted:
            raise CommandError(f"{failure.message} before it executes a job")
    if capture.jobs:
        notes = [
            f"{file} adds {counted(len(job.program.transformations), 'more operator')} after its "
            "last execute(), which run in no job"
            for job in unexecuted
        ]
        return Captured(file, capture.jobs, notes, failure if is_failure else None)
    if not unexecuted:
        raise CommandError(_no_job(file, capture))
    notes = []
    if file.function is None:
        where = unexecuted[0].call_site
        notes = [f"{file} never calls execute(); this is the program of its environment ({where})"]
    return Captured(file, unexecuted, notes)


def _never_executed(capture: Capture) -> list[CapturedJob]:
    try:
        return capture.never_executed()
    except ValueError as error:  # an invalid value in the configuration
        raise CommandError(str(error)) from error


def _no_job(file: ProgramFile, capture: Capture) -> str:
    if not capture.environments:
        return (
            f"{file} creates no StreamExecutionEnvironment and executes no job; "
            "if a function builds the job, name it: FILE:FUNCTION"
        )
    _, call_site = capture.environments[0]
    return (
        f"{file} executes no job and its environment ({call_site}) is empty; add an operator or a "
        "sink (a source alone does nothing), and call execute()"
    )
