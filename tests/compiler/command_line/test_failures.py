from pathlib import Path
from types import TracebackType

import click
import pytest

from opchain.compiler.command_line.failures import (
    FAILED,
    CommandError,
    FileOwner,
    clear_errors,
    failure_of,
    file_owner,
    hint_for,
    place_of,
)
from opchain.runtime.errors import GraphError

HERE = Path(__file__)


def trace_of(error: Exception) -> TracebackType | None:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.tb


def trace_in_click() -> TracebackType | None:
    with pytest.raises(click.BadParameter) as caught:
        click.Choice(["a"]).convert("b", None, None)
    return caught.tb


def test_an_error_of_the_compiler_becomes_a_command_error_with_its_cause() -> None:
    refusal = GraphError("'map' (clicks.py:1): no")
    with pytest.raises(CommandError) as shown, clear_errors():
        raise refusal
    assert shown.value.message == str(refusal)
    assert shown.value.__cause__ is refusal
    assert shown.value.exit_code == FAILED == 2


def test_an_internal_error_is_not_turned_into_a_command_error() -> None:
    with pytest.raises(ZeroDivisionError), clear_errors():
        _ = 1 / 0


def test_place_of_finds_the_innermost_line_of_the_users_code() -> None:
    assert str(place_of(trace_in_click(), Path("other.py"))).startswith("test_failures.py:")
    assert place_of(None, HERE) is None


def test_place_of_counts_the_program_file_as_users_code_in_any_folder() -> None:
    path = Path(click.__file__).with_name("types.py")
    assert str(place_of(trace_in_click(), path)).startswith("types.py:")


def test_a_command_error_is_passed_on() -> None:
    error = CommandError("there is no file")
    assert failure_of(error, HERE) is error


def test_an_error_without_a_message_is_shown_by_its_type() -> None:
    error = KeyError()
    error.__traceback__ = trace_of(error)
    assert failure_of(error, HERE).message.endswith(": KeyError")


def test_an_error_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    CommandError("it does not work").show()
    out, err = capsys.readouterr()
    assert (out, err) == ("", "opchain: it does not work\n")


def test_the_traceback_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(**_: object) -> None:
        failure_of(ZeroDivisionError("by zero"), HERE).show()

    option = click.Option(["--traceback"], is_flag=True)
    command = click.Command("opchain", params=[option], callback=fail)
    command.main(["--traceback"], standalone_mode=False)
    assert "ZeroDivisionError: by zero\n" in capsys.readouterr().err
    command.main([], standalone_mode=False)
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("module", ["pyflink", "pyflink.datastream"])
def test_imports_of_pyflink_have_a_hint(module: str) -> None:
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert (
        "change its imports from pyflink to opchain" in failure_of(error, Path("clicks.py")).message
    )
    assert hint_for(ModuleNotFoundError("No module named 'pyflinks'", name="pyflinks")) is None
    assert hint_for(ValueError("pyflink")) is None


def test_a_file_whose_existence_cannot_be_checked_is_a_library_file() -> None:
    """As for a file in a folder that the user may not enter, `Path.exists` raises."""
    name = f"/{'x' * 5_000}"
    with pytest.raises(OSError, match="too long"):
        Path(name).exists()
    assert file_owner(name, HERE) is FileOwner.LIBRARY
