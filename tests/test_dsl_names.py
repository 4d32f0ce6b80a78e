"""Defaults of PyFlink 2.3's DSL, and its connectors' names.

tests/test_pyflink_names.py compares names and parameters. This module compares the defaults of parameters. If
PyFlink's default is None and means "not given", ours may be None, too.
"""

from __future__ import annotations

import importlib
import inspect
from operator import attrgetter
from typing import Any

import pytest

DEFAULTS: dict[str, dict[str, Any]] = {
    "stream_execution_environment.StreamExecutionEnvironment": {
        "enable_checkpointing.mode": None,
        "set_python_requirements.requirements_cache_dir": None,
        "add_python_archive.target_dir": None,
        "execute.job_name": None,
        "execute_async.job_name": "Flink Streaming Job",
        "register_cached_file.executable": False,
        "get_execution_environment.configuration": None,
        "create_input.type_info": None,
        "add_source.source_name": "Custom Source",
        "add_source.type_info": None,
        "from_source.type_info": None,
        "from_collection.type_info": None,
    },
    "data_stream.DataStream": {
        "map.output_type": None,
        "flat_map.output_type": None,
        "key_by.key_type": None,
        "process.output_type": None,
        "broadcast.broadcast_state_descriptor": None,
        "execute_and_collect.job_execution_name": None,
        "execute_and_collect.limit": None,
        "print.sink_identifier": None,
    },
    "data_stream.KeyedStream": {
        "map.output_type": None,
        "flat_map.output_type": None,
        "key_by.key_type": None,
        "process.output_type": None,
        "sum.position_to_sum": 0,
        "min.position_to_min": 0,
        "max.position_to_max": 0,
        "min_by.position_to_min_by": 0,
        "max_by.position_to_max_by": 0,
        "count_window.slide": 0,
        "print.sink_identifier": None,
    },
    "data_stream.WindowedStream": {
        "reduce.window_function": None,
        "reduce.output_type": None,
        "aggregate.window_function": None,
        "aggregate.accumulator_type": None,
        "aggregate.output_type": None,
        "apply.output_type": None,
        "process.output_type": None,
    },
    "data_stream.AllWindowedStream": {
        "reduce.window_function": None,
        "reduce.output_type": None,
        "aggregate.window_function": None,
        "aggregate.accumulator_type": None,
        "aggregate.output_type": None,
        "apply.output_type": None,
        "process.output_type": None,
    },
    "data_stream.ConnectedStreams": {
        "key_by.key_type": None,
        "map.output_type": None,
        "flat_map.output_type": None,
        "process.output_type": None,
    },
    "data_stream.BroadcastConnectedStream": {"process.output_type": None},
    "async_data_stream.AsyncDataStream": {
        "unordered_wait.capacity": 100,
        "unordered_wait.output_type": None,
        "unordered_wait_with_retry.capacity": 100,
        "unordered_wait_with_retry.output_type": None,
        "ordered_wait.capacity": 100,
        "ordered_wait.output_type": None,
        "ordered_wait_with_retry.capacity": 100,
        "ordered_wait_with_retry.output_type": None,
    },
}

CONNECTORS: dict[str, dict[str, list[str]]] = {
    "base": {"Source": [], "Sink": [], "DeliveryGuarantee": []},
    "number_seq": {"NumberSequenceSource": ["start", "end"]},
    "file_system": {
        "BucketAssigner": [],
        "FileSink": [],
        "FileSource": [],
        "FileSourceBuilder": [],
        "OutputFileConfig": ["part_prefix", "part_suffix"],
        "RollingPolicy": [],
        "StreamFormat": [],
    },
}
METHODS: dict[str, list[str]] = {
    "file_system.FileSource.for_record_stream_format": ["stream_format", "*paths"],
    "file_system.FileSourceBuilder.monitor_continuously": ["discovery_interval"],
    "file_system.FileSourceBuilder.process_static_file_set": [],
    "file_system.FileSourceBuilder.build": [],
    "file_system.StreamFormat.text_line_format": ["charset_name"],
    "file_system.FileSink.for_row_format": ["base_path", "encoder"],
    "file_system.FileSink.for_bulk_format": ["base_path", "writer_factory"],
    "file_system.FileSink.RowFormatBuilder.with_bucket_check_interval": ["interval"],
    "file_system.FileSink.RowFormatBuilder.with_bucket_assigner": ["bucket_assigner"],
    "file_system.FileSink.RowFormatBuilder.with_output_file_config": ["output_file_config"],
    "file_system.FileSink.RowFormatBuilder.with_rolling_policy": ["rolling_policy"],
    "file_system.FileSink.RowFormatBuilder.enable_compact": ["strategy", "compactor"],
    "file_system.FileSink.BulkFormatBuilder.disable_compact": [],
    "file_system.FileSink.BulkFormatBuilder.build": [],
    "file_system.BucketAssigner.base_path_bucket_assigner": [],
    "file_system.BucketAssigner.date_time_bucket_assigner": ["format_str", "timezone_id"],
    "file_system.RollingPolicy.default_rolling_policy": [
        "part_size",
        "rollover_interval",
        "inactivity_interval",
    ],
    "file_system.RollingPolicy.on_checkpoint_rolling_policy": [],
    "file_system.OutputFileConfig.builder": [],
}


def defaults() -> list[tuple[str, str, str, Any]]:
    return [
        (owner, *parameter.split("."), default)  # type: ignore[misc]
        for owner, parameters in DEFAULTS.items()
        for parameter, default in parameters.items()
    ]


@pytest.mark.parametrize(("owner", "method", "parameter", "default"), defaults())
def test_parameters_have_pyflinks_defaults(
    owner: str, method: str, parameter: str, default: Any
) -> None:
    module, name = owner.split(".")
    found = getattr(importlib.import_module(f"opchain.datastream.{module}"), name)
    ours = inspect.signature(getattr(found, method)).parameters[parameter].default
    assert ours == default
    assert type(ours) is type(default)


@pytest.mark.parametrize("module", CONNECTORS)
def test_connector_modules_have_pyflinks_names(module: str) -> None:
    loaded = importlib.import_module(f"opchain.datastream.connectors.{module}")
    for name, parameters in CONNECTORS[module].items():
        found = getattr(loaded, name)
        if parameters:
            assert list(inspect.signature(found).parameters) == parameters
        assert name in loaded.__all__


@pytest.mark.parametrize("path", METHODS)
def test_methods_of_connectors_have_pyflinks_parameters(path: str) -> None:
    module, _, name = path.partition(".")
    function = attrgetter(name)(importlib.import_module(f"opchain.datastream.connectors.{module}"))
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    names = ["*" * (p.kind is p.VAR_POSITIONAL) + p.name for p in parameters]
    assert names == METHODS[path]


def test_the_connectors_package_exports_the_names_in_its_all() -> None:
    package = importlib.import_module("opchain.datastream.connectors")
    assert {"DeliveryGuarantee", "NumberSequenceSource", "Sink", "Source"} <= set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
        assert name in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018
