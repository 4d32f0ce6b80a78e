from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.connectors.file_buckets import OutputFileConfig, RollingPolicy


def test_a_part_file_name_has_prefix_writer_id_counter_and_suffix() -> None:
    assert OutputFileConfig.builder().build().name("8f3a", 7) == "part-8f3a-7"
    config = OutputFileConfig.builder().with_part_prefix("out").with_part_suffix(".txt").build()
    assert config.name("8f3a", 1) == "out-8f3a-1.txt"
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("out", ".txt")


@pytest.mark.parametrize("text", ["a/b", 5])
def test_a_prefix_or_suffix_that_is_a_path_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="with_part_prefix"):
        OutputFileConfig.builder().with_part_prefix(text)
    with pytest.raises(ValueError, match="with_part_suffix"):
        OutputFileConfig.builder().with_part_suffix(text)


@pytest.mark.parametrize(("size", "is_full"), [(0, False), (9, False), (10, False), (11, True)])
def test_a_file_is_full_above_the_part_size(size: int, is_full: bool) -> None:
    assert RollingPolicy.default_rolling_policy(part_size=10).is_full(size) is is_full
    assert not RollingPolicy.on_checkpoint_rolling_policy().is_full(size)


def test_the_default_part_size_is_that_of_flink() -> None:
    assert RollingPolicy.default_rolling_policy().part_size == 128 * 1024 * 1024


@pytest.mark.parametrize("name", ["part_size", "rollover_interval", "inactivity_interval"])
@pytest.mark.parametrize("value", [0, "1"])
def test_a_part_size_must_be_positive(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value!r}; it must be at least 1"):
        RollingPolicy.default_rolling_policy(**{name: value})
