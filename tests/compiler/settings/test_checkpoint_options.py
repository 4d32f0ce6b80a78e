from __future__ import annotations

from opchain.compiler.settings import checkpoint_config as checkpoint_options
from opchain.runtime.configuration.options import ConfigOption

# The keys and defaults of Flink 2.3's CheckpointingOptions, printed by it.
FLINKS = {
    "execution.checkpointing.interval": "None",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.timeout": "10 min",
    "execution.checkpointing.min-pause": "0 ms",
    "execution.checkpointing.max-concurrent-checkpoints": "1",
    "execution.checkpointing.tolerable-failed-checkpoints": "0",
    "execution.checkpointing.externalized-checkpoint-retention": "NO_EXTERNALIZED_CHECKPOINTS",
    "execution.checkpointing.unaligned.enabled": "False",
    "execution.checkpointing.unaligned.forced": "False",
    "execution.checkpointing.aligned-checkpoint-timeout": "0 ms",
}


def test_checkpoint_options_have_flinks_keys_and_defaults() -> None:
    options = [
        option
        for option in vars(checkpoint_options).values()
        if isinstance(option, ConfigOption) and option.key != "execution.runtime-mode"
    ]
    assert {o.key: str(getattr(o.default, "name", o.default)) for o in options} == FLINKS
