"""Settings that are taken from a program, and do nothing here: a job that starts says so."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from opchain.compiler.settings import checkpoint_config, pipeline_options
from opchain.compiler.settings.settings_reader import known_keys
from opchain.runtime.configuration.options import ConfigOption

if TYPE_CHECKING:
    from opchain.runtime.configuration.configuration import Configuration

_NOTHING_IN_FLIGHT = "nothing is in flight at the end of an epoch"
_BY_PICKLE = "records that are no plain values are pickled"

_WHY = {
    "execution.checkpointing.mode": "checkpoints are exactly once",
    "execution.checkpointing.max-concurrent-checkpoints": "there is one at a time",
    "execution.checkpointing.unaligned.enabled": _NOTHING_IN_FLIGHT,
    "execution.checkpointing.unaligned.forced": _NOTHING_IN_FLIGHT,
    "execution.checkpointing.aligned-checkpoint-timeout": _NOTHING_IN_FLIGHT,
    "execution.checkpointing.snapshot-compression": "files of state are written as they are",
    "pipeline.force-kryo": _BY_PICKLE,
    "pipeline.force-avro": _BY_PICKLE,
    "pipeline.closure-cleaner-level": "Python's functions are pickled as they are",
    "state.changelog.enabled": "checkpoints hold changes anyway",
    "task.cancellation.interval": "Spark ends tasks",
    "task.cancellation.timeout": "Spark ends tasks",
}
"""For the settings that have methods here."""

_FLINKS = (
    *("akka.", "blob.", "classloader.", "client.", "cluster.", "env.", "execution.", "fs."),
    *("heartbeat.", "high-availability", "historyserver.", "io.", "jobmanager.", "jobstore."),
    *("kubernetes.", "metrics.", "parallelism.", "pekko.", "pipeline.", "process.", "python."),
    *("queryable-state.", "resourcemanager.", "rest.", "restart-strategy", "security.", "slot"),
    *("sql", "state.", "table.", "task.", "taskmanager.", "traces.", "web.", "yarn.", "zookeeper."),
)
"""How Flink's keys begin. Others are the program's own."""


def settings_without_effect(configuration: Configuration) -> tuple[str, ...]:
    """The keys of Flink's that are set, to something else than their default, and do nothing; each with the reason."""
    options, known = declared_options(), known_keys()
    found = []
    for key in sorted(configuration.key_set()):
        is_known = key in known or any(key.startswith(f"{name}.") for name in _MAPS)
        if is_known or not key.startswith(_FLINKS):
            continue
        option = options.get(key)
        if option is not None and configuration.get(option) == option.default:
            continue
        found.append(f"{key} ({_WHY.get(key, 'it has no counterpart here')})")
    return tuple(found)


_MAPS = ("pipeline.global-job-parameters",)


@cache
def declared_options() -> dict[str, ConfigOption[Any]]:
    """The options behind methods of the environment and its configurations, by key."""
    return {
        option.key: option
        for module in (pipeline_options, checkpoint_config)
        for option in vars(module).values()
        if isinstance(option, ConfigOption)
    }
