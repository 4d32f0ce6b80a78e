from __future__ import annotations

import threading
import traceback

import pytest

from opchain.runtime.mailbox.task_mailbox import Mail


def test_mail_runs_its_command_under_its_lock() -> None:
    lock = threading.RLock()
    depths: list[bool] = []
    mail = Mail(lambda: depths.append(lock._is_owned()), 0, "look", lock)

    mail.run()

    assert depths == [True]
    assert not lock._is_owned()


def test_an_error_keeps_its_type_and_names_the_mail() -> None:
    error = KeyError("user")

    def fail() -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        Mail(fail, 2, "flush the buffer").run()

    assert caught.value is error
    assert caught.value.__notes__ == ["while running mail 'flush the buffer'"]
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"


def test_an_error_in_nested_mail_names_both_from_the_inside_out() -> None:
    inner = Mail(lambda: 1 / 0, 1, "inner")

    with pytest.raises(ZeroDivisionError) as caught:
        Mail(inner.run, 0, "outer").run()

    assert caught.value.__notes__ == [
        "while running mail 'inner'",
        "while running mail 'outer'",
    ]


def test_dropped_mail_calls_on_drop_and_does_not_run() -> None:
    trace: list[str] = []
    Mail(lambda: trace.append("run"), 0, "mail", on_drop=lambda: trace.append("dropped")).drop()
    Mail(lambda: trace.append("run"), 0, "mail nobody waits for").drop()
    assert trace == ["dropped"]


def test_mail_is_printed_with_description_and_priority() -> None:
    assert str(Mail(list, 4, "timer at 5")) == "'timer at 5' (priority 4)"
