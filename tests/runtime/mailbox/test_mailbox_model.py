"""The mailbox and its loop, compared with a list as a model.

Hypothesis schedules three threads. They put mail of any priority, whose commands put more mail, wait for mail, and
suspend the loop. They also run turns of the loop, whose default action does the same. After every step the mailbox
contains the mail of the list, and the same mail has run in the same order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.task_mailbox import MAX_PRIORITY, MIN_PRIORITY, Mail, TaskMailbox

if TYPE_CHECKING:
    from collections.abc import Callable


class Send(NamedTuple):
    priority: int
    place: str
    script: Script


class Wait(NamedTuple):
    priority: int


class Suspend(NamedTuple):
    """Suspends the loop, by mail that is put first."""


Script = tuple["Send | Wait | Suspend", ...]
"""What a command or a default action does."""

PRIORITIES = st.sampled_from([MIN_PRIORITY, 0, 1, 2, MAX_PRIORITY])
PLACES = st.sampled_from(["last", "last", "last", "first"])


def sends(scripts: st.SearchStrategy[Script]) -> st.SearchStrategy[Send]:
    return st.builds(Send, PRIORITIES, PLACES, scripts)


def scripts_with(inner: st.SearchStrategy[Script]) -> st.SearchStrategy[Script]:
    step = sends(inner) | st.builds(Wait, PRIORITIES) | st.builds(Suspend)
    return st.lists(step, max_size=3).map(tuple)


SCRIPTS: st.SearchStrategy[Script] = st.recursive(st.just(()), scripts_with, max_leaves=6)


@dataclass(eq=False)
class ModelMail:
    name: str
    priority: int
    script: Script
    suspends: bool = False


class Model:
    """A mailbox and its loop without threads, batches and flags."""

    def __init__(self) -> None:
        self.first: list[ModelMail] = []
        self.queue: list[ModelMail] = []
        self.trace: list[str] = []
        self.sent = 0
        self.is_suspended = False

    def mails(self) -> list[str]:
        return [mail.name for mail in self.first + self.queue]

    def send(self, send: Send) -> None:
        self.sent += 1
        mail = ModelMail(f"mail {self.sent}", send.priority, send.script)
        if send.place == "first":
            self.first.insert(0, mail)
        else:
            self.queue.append(mail)

    def take(self, priority: int) -> ModelMail | None:
        for line in (self.first, self.queue):
            for mail in line:
                if mail.priority >= priority:
                    line.remove(mail)
                    return mail
        return None

    def run(self, mail: ModelMail) -> None:
        self.trace.append(mail.name)
        self.is_suspended |= mail.suspends
        self.do(mail.script)

    def do(self, script: Script) -> None:
        for step in script:
            if isinstance(step, Send):
                self.send(step)
            elif isinstance(step, Suspend):
                self.first.insert(0, ModelMail("suspend", MAX_PRIORITY, (), suspends=True))
            elif (mail := self.take(step.priority)) is not None:
                self.run(mail)

    def turn(self, default_action: Script) -> bool:
        left_in_batch = list(self.queue)
        for _ in range(len(self.mails())):
            # Only the mail that was queued when the turn began.
            left_in_batch = [mail for mail in left_in_batch if mail in self.queue]
            if self.first:
                mail = self.first.pop(0)
            elif left_in_batch:
                mail = left_in_batch[0]
                self.queue.remove(mail)
            else:
                break
            self.run(mail)
            if self.is_suspended:
                break
        if not self.is_suspended:
            self.trace.append("default action")
            self.do(default_action)
        goes_on, self.is_suspended = not self.is_suspended, False
        return goes_on


class MailboxAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.mailbox = TaskMailbox()
        self.processor = MailboxProcessor(self.run_default_action, mailbox=self.mailbox)
        self.others = [ThreadPoolExecutor(1), ThreadPoolExecutor(1)]
        self.trace: list[str] = []
        self.sent = 0
        self.default_action: Script = ()

    def teardown(self) -> None:
        for other in self.others:
            other.shutdown()
        self.processor.prepare_close()
        dropped = [mail.description for mail in self.processor.close()]
        assert [self.short(name) for name in dropped] == self.model.mails()

    # The real mailbox, with the operations of the model

    def send(self, send: Send) -> None:
        self.sent += 1
        name = f"mail {self.sent}"
        if send.place == "first":
            command = partial(self.run_command, name, send.script)
            self.mailbox.put_first(Mail(command, send.priority, name))
        else:
            self.processor.mailbox_executor(send.priority).execute(
                partial(self.run_command, name, send.script), name
            )

    def run_command(self, name: str, script: Script) -> None:
        self.trace.append(name)
        self.do(script)

    def run_default_action(self, _: object) -> None:
        self.trace.append("default action")
        self.do(self.default_action)

    def do(self, script: Script) -> None:
        for step in script:
            if isinstance(step, Send):
                self.send(step)
            elif isinstance(step, Suspend):
                self.processor.suspend()
            else:
                self.processor.mailbox_executor(step.priority).try_yield()

    def in_thread(self, thread: int, action: Callable[[], None]) -> None:
        if thread == 0:
            action()
        else:
            self.others[thread - 1].submit(action).result(60)

    @staticmethod
    def short(description: str) -> str:
        return "suspend" if description == "suspend the mailbox loop" else description

    # Rules

    @rule(thread=st.integers(0, 2), send=sends(SCRIPTS))
    def some_thread_sends(self, thread: int, send: Send) -> None:
        self.model.send(send)
        self.in_thread(thread, lambda: self.send(send))

    @rule(thread=st.integers(0, 2))
    def some_thread_suspends(self, thread: int) -> None:
        self.model.do((Suspend(),))
        self.in_thread(thread, self.processor.suspend)

    @rule(default_action=SCRIPTS)
    def turn(self, default_action: Script) -> None:
        self.default_action = default_action
        assert self.processor.turn() == self.model.turn(default_action)

    @rule(priority=PRIORITIES)
    def take(self, priority: int) -> None:
        expected = self.model.take(priority)
        taken = self.mailbox.take(priority) if expected else self.mailbox.try_take(priority)
        assert (self.short(taken.description) if taken else None) == (
            expected.name if expected else None
        )

    @rule()
    def create_batch(self) -> None:
        assert self.mailbox.create_batch() == len(self.model.mails())

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        waiting = len(self.model.mails())
        assert self.mailbox.size() == waiting
        assert self.mailbox.has_mail() == (waiting > 0)
        assert self.mailbox.has_new_mail == (waiting > 0)

    @invariant()
    def has_run_the_same(self) -> None:
        assert [name for name in self.model.trace if name != "suspend"] == self.trace


TestMailboxAgainstModel = MailboxAgainstModel.TestCase
TestMailboxAgainstModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
