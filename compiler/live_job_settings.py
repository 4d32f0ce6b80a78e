"""What a program asks for that a job without an end does not do in this process, where it has no checkpoints."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opchain.compiler.settings.job_settings import JobSettings
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Program

_LOG = logging.getLogger("opchain.job")

_CHANGE_WHAT_IT_DOES = ("restore_from", "allow_non_restored_state", "trigger")
_WITHOUT_USE = (
    "checkpoint_dir",
    "checkpoint_interval_ms",
    "checkpoint_min_pause_ms",
    "retained_checkpoints",
    "tolerable_checkpoint_failures",
    "record_epochs",
    "progress_log",
)


def check_live_job_settings(program: Program, job_name: str) -> None:
    """Refuses to start from a checkpoint or to stop by itself; warns where settings of checkpoints do nothing.

    Raises:
        UnsupportedFeatureError: The job would do something else than what was asked for.
    """
    here = f"job '{job_name}' never ends and runs in this process (execution.target = local), "
    refused = _set(program.settings, _CHANGE_WHAT_IT_DOES)
    if refused:
        raise UnsupportedFeatureError(
            f"{here}where there are neither checkpoints nor epochs, and {', '.join(refused)} asks for them: "
            "run it on Spark (execution.target = spark), or leave that out"
        )
    useless = _set(program.settings, _WITHOUT_USE)
    if program.epoch_listeners:
        useless.append("add_epoch_listener")
    if useless:
        _LOG.warning(
            "%swithout checkpoints: its state ends with it, and %s will do nothing; on Spark it has them",
            here,
            ", ".join(useless),
        )


def _set(settings: JobSettings, names: tuple[str, ...]) -> list[str]:
    """The keys of those settings that are not as by default, with their values."""
    found = []
    for name in names:
        field, value = JobSettings.model_fields[name], getattr(settings, name)
        if value != field.default:
            assert isinstance(field.json_schema_extra, dict)
            found.append(f"{field.json_schema_extra['key']} = {value}")
    return found
