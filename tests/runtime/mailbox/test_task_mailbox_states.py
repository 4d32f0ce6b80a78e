"""What a mailbox allows while open, quiesced and closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.mailbox import (
    MIN_PRIORITY,
    Mail,
    MailboxClosedError,
    MailboxState,
    TaskMailbox,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def mail(name: str, priority: int = 0, **options: Any) -> Mail:
    return Mail(list, priority, name, **options)


def filled(*names: str) -> TaskMailbox:
    mailbox = TaskMailbox()
    for name in names:
        mailbox.put(mail(name))
    return mailbox


def take_all(mailbox: TaskMailbox, priority: int = MIN_PRIORITY) -> list[str]:
    return [mail.description for mail in iter(lambda: mailbox.try_take(priority), None)]


STATES: dict[str, Callable[[TaskMailbox], object]] = {
    "open": lambda _: None,
    "quiesced": TaskMailbox.quiesce,
    "closed": TaskMailbox.close,
}
PUTS: dict[str, Callable[[TaskMailbox], object]] = {
    "put": lambda m: m.put(mail("b")),
    "put_first": lambda m: m.put_first(mail("b")),
}
TAKES: dict[str, Callable[[TaskMailbox], object]] = {
    "take": lambda m: m.take(0),
    "try_take": lambda m: m.try_take(0),
    "try_take_from_batch": lambda m: (m.create_batch(), m.try_take_from_batch())[1],
}


@pytest.mark.parametrize("operation", PUTS.values(), ids=PUTS.keys())
@pytest.mark.parametrize(
    ("state", "allowed"), [("open", True), ("quiesced", False), ("closed", False)]
)
def test_which_states_accept_mail(
    state: str, allowed: bool, operation: Callable[[TaskMailbox], object]
) -> None:
    mailbox = filled("a")
    STATES[state](mailbox)
    assert mailbox.state is MailboxState(state)
    if allowed:
        operation(mailbox)
        assert mailbox.size() == 2
    else:
        with pytest.raises(
            MailboxClosedError, match=rf"cannot put mail 'b' \(priority 0\): the mailbox is {state}"
        ):
            operation(mailbox)
        assert mailbox.size() == (1 if state == "quiesced" else 0)


@pytest.mark.parametrize("operation", TAKES.values(), ids=TAKES.keys())
@pytest.mark.parametrize(
    ("state", "allowed"), [("open", True), ("quiesced", True), ("closed", False)]
)
def test_which_states_give_mail_out(
    state: str, allowed: bool, operation: Callable[[TaskMailbox], Mail]
) -> None:
    mailbox = filled("a")
    STATES[state](mailbox)
    if allowed:
        assert operation(mailbox).description == "a"
    else:
        with pytest.raises(MailboxClosedError, match="cannot take mail: the mailbox is closed"):
            operation(mailbox)


@pytest.mark.parametrize("wait", [lambda m: m.take(0), lambda m: m.wait_for_mail()])
def test_waiting_for_mail_that_cannot_come_is_an_error(
    wait: Callable[[TaskMailbox], object],
) -> None:
    mailbox = TaskMailbox()
    mailbox.quiesce()
    with pytest.raises(MailboxClosedError, match="none is left and the mailbox is quiesced"):
        wait(mailbox)


@pytest.mark.parametrize("last", ["quiesced", "closed"])
def test_a_closed_mailbox_stays_closed(last: str) -> None:
    mailbox = filled("a")
    mailbox.close()
    assert not STATES[last](mailbox)  # nothing is dropped twice
    assert mailbox.state is MailboxState.CLOSED


def test_closing_gives_back_what_was_waiting_in_its_order() -> None:
    mailbox = filled("a", "b")
    mailbox.create_batch()
    mailbox.put(mail("c"))
    mailbox.put_first(mail("poison"))
    assert [mail.description for mail in mailbox.close()] == ["poison", "a", "b", "c"]


def test_draining_empties_an_open_mailbox() -> None:
    mailbox = filled("a", "b")
    mailbox.create_batch()
    mailbox.put(mail("c"))
    assert [mail.description for mail in mailbox.drain()] == ["a", "b", "c"]
    mailbox.put(mail("d"))
    assert take_all(mailbox) == ["d"]
