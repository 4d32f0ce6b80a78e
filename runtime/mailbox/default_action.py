"""What a task does when it has no mail, and what that action may ask of the loop.

Records are too many to be mail. They are the default action: the loop calls it again and again, one
buffer of input at a time, and looks for mail in between.

Flink: MailboxDefaultAction with its Controller and Suspension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opchain.runtime.mailbox.timer_service import PeriodTimer


class Suspension(Protocol):
    """The state of not running the default action."""

    def resume(self) -> None:
        """Run the default action again.

        From any thread, any number of times, also after the task has ended: only the first call does
        something, and only while this suspension lasts.
        """


class Controller(Protocol):
    """What the default action may ask for; every method is for the mailbox thread."""

    def all_actions_completed(self) -> None:
        """End the loop for good: there is no more input."""

    def suspend_default_action(self, timer: PeriodTimer | None = None) -> Suspension:
        """Do not run the default action before the suspension is resumed; mail still runs.

        Args:
            timer: Runs while the task is blocked for lack of mail: `idle` or `back_pressured` of the
                metrics. Where both input and output are unavailable, Flink counts back-pressure.
        """


DefaultAction = Callable[[Controller], object]
"""Does a bounded amount of work, such as processing one buffer, without blocking."""
